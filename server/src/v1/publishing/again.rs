//! Publishing again: what a request does not say stays as it was.

use loupe_wire::{
    DisplayConfig, PublishRetrieverRequest, PublishedRetrieverResponse, RetrieverMetadata,
};

use super::display::sentence;

/// The request with what it leaves to the page that is there.
pub(super) fn filled(
    mut request: PublishRetrieverRequest,
    before: PublishedRetrieverResponse,
) -> PublishRetrieverRequest {
    let display = request.display_config.take();
    let metadata = before.retriever_metadata.as_ref();
    let display = display.unwrap_or_else(|| renamed(before.display_config, metadata, &request));
    let tells = before.retriever_metadata.is_some();
    PublishRetrieverRequest {
        description: request.description.or(Some(before.description)),
        icon_base64: request.icon_base64.or(Some(before.icon_base64)),
        display_config: Some(display),
        rate_limit_config: request.rate_limit_config.or(Some(before.rate_limit_config)),
        include_metadata: request.include_metadata.or(Some(tells)),
        tags: request.tags.or(Some(before.tags)),
        category: request.category.or(Some(before.category)),
        ..request
    }
}

/// The page as it looked, under the title and the description that a request gives it.
fn renamed(
    mut display: DisplayConfig,
    metadata: Option<&RetrieverMetadata>,
    request: &PublishRetrieverRequest,
) -> DisplayConfig {
    let mut seo = display.seo.take().unwrap_or_default();
    // It names collections where nobody described the page: whoever keeps them to themselves from now on is heeded here, too.
    let said = display.description.as_deref();
    let said = said.filter(|text| !text.trim().is_empty());
    let told = said.map_or_else(|| sentence(&display.title, metadata), ToOwned::to_owned);
    forget(&mut seo.meta_description, &told, 160);
    if let Some(title) = &request.display_name {
        forget(&mut seo.meta_title, &display.title, 60);
        display.title.clone_from(title);
    }
    if let Some(text) = &request.description {
        display.description.clone_from(text);
    }
    display.seo = Some(seo);
    display
}

/// What was made of a text is made anew.
fn forget(made: &mut Option<String>, of: &str, most: usize) {
    let is_made = |made: &str| made.chars().eq(of.chars().take(most));
    if made.as_deref().is_some_and(is_made) {
        *made = None;
    }
}
