//! Publishing again: what a request does not say stays as it was, and what was made of the page is made anew.

use loupe_wire::{
    DisplayConfig, PublishRetrieverRequest, PublishedRetrieverResponse, RetrieverModelOutput,
    SEOConfig,
};

use super::{
    display::{About, told},
    public_url,
};
use crate::app::App;

/// What search engines were told of a page where its owner said nothing. Whoever sends it again, as it was read, has not chosen it.
pub(super) struct Made {
    seo: SEOConfig,
    address: String,
}

impl Made {
    pub fn of(
        app: &App,
        page: &PublishedRetrieverResponse,
        retriever: &RetrieverModelOutput,
    ) -> Self {
        let about = About {
            description: page.description.as_deref(),
            tags: &page.tags,
            metadata: page.retriever_metadata.as_ref(),
        };
        let display = DisplayConfig {
            seo: None,
            ..page.display_config.clone()
        };
        Self {
            seo: told(&display, retriever, &about),
            address: public_url(app, &page.public_name),
        }
    }

    /// Takes it away, so that it is made anew.
    pub fn forget(&self, display: &mut DisplayConfig) {
        let Some(seo) = &mut display.seo else { return };
        let made = &self.seo;
        forget(&mut seo.meta_title, made.meta_title.as_deref());
        forget(&mut seo.meta_description, made.meta_description.as_deref());
        if seo.keywords == made.keywords {
            seo.keywords.clear();
        }
        // The page has another address under another name.
        forget(&mut seo.canonical_url, Some(&self.address));
    }
}

/// The request with what it leaves to the page that is there.
pub(super) fn filled(
    mut request: PublishRetrieverRequest,
    before: PublishedRetrieverResponse,
    made: &Made,
) -> PublishRetrieverRequest {
    let display = request.display_config.take();
    let tells = before.retriever_metadata.is_some();
    let mut display = display.unwrap_or_else(|| renamed(before.display_config, &request));
    made.forget(&mut display);
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
fn renamed(mut display: DisplayConfig, request: &PublishRetrieverRequest) -> DisplayConfig {
    if let Some(title) = &request.display_name {
        display.title.clone_from(title);
    }
    if let Some(text) = &request.description {
        display.description.clone_from(text);
    }
    display
}

fn forget(told: &mut Option<String>, made: Option<&str>) {
    if told.as_deref() == made {
        *told = None;
    }
}
