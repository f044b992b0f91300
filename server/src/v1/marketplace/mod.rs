//! The catalogue: the published retrievers that lists of public pages show, under the names and shapes of a marketplace. What
//! they show and do is what pages do; nothing is sold.

mod routes;

use loupe_wire::{
    DisplayConfig, ListingStatus, ListingVisibility, MarketplaceListing, Object,
    PublishedRetrieverResponse, RetrieverInputSchemaField, SubscriptionTier,
    SubscriptionTierConfig, Value,
};
use serde_json::json;

pub use routes::router;

use super::{
    public::Open,
    publishing::{self, Published},
};
use crate::{app::App, error::Result, limits::page};

/// Publications that are read at once while a category or a tag is looked for, and how often: those beyond are not looked
/// through.
const READ: i64 = 100;
const READS: i64 = 20;

/// What a caller looks for in the catalogue.
#[derive(Debug, Clone, Default)]
struct Asked {
    words: String,
    category: Option<String>,
    group: Option<String>,
    /// Those that a listing has all of.
    tags: Vec<String>,
    skip: i64,
    limit: i64,
}

impl Asked {
    /// Whether words are all that is asked for: the database finds them by itself.
    fn is_plain(&self) -> bool {
        self.category.is_none() && self.group.is_none() && self.tags.is_empty()
    }

    fn fits(&self, published: &PublishedRetrieverResponse) -> bool {
        let category = published.category.as_deref();
        let same = self
            .category
            .as_deref()
            .is_none_or(|wanted| category == Some(wanted));
        same && self.tags.iter().all(|tag| published.tags.contains(tag))
    }
}

/// Some of the catalogue, the newest first.
async fn list(app: &App, asked: &Asked) -> Result<Vec<MarketplaceListing>> {
    let found = if asked.is_plain() {
        let page = publishing::list_open(app.db(), &asked.words, asked.limit, asked.skip);
        page.await?.0
    } else {
        search(app, asked).await?
    };
    let listings = found.into_iter().map(|one| {
        let of = (one.org_id.as_str(), one.namespace_id.as_str());
        let mut told = listing(app, of, one.data.0);
        told.display_config = None;
        told
    });
    Ok(listings.collect())
}

/// Those that fit, page by page.
async fn search(app: &App, asked: &Asked) -> Result<Vec<Published>> {
    // No publication is in a group.
    if asked.group.is_some() {
        return Ok(Vec::new());
    }
    // It reads as much as a search.
    let _turn = app.turns.take().await?;
    let (mut skipped, mut found) = (0, Vec::new());
    let wanted = usize::try_from(asked.limit).unwrap_or(0);
    for number in 0..READS {
        let page = publishing::list_open(app.db(), &asked.words, READ, number * READ);
        let (page, total) = page.await?;
        for one in page.into_iter().filter(|one| asked.fits(&one.data)) {
            if skipped < asked.skip {
                skipped += 1;
            } else if found.len() < wanted {
                found.push(one);
            }
        }
        if found.len() >= wanted || (number + 1) * READ >= total {
            break;
        }
    }
    Ok(found)
}

/// A publication as one of the catalogue.
fn listing(
    app: &App,
    (org_id, namespace_id): (&str, &str),
    published: PublishedRetrieverResponse,
) -> MarketplaceListing {
    let unlisted = published.password_protected || publishing::is_preview(&published);
    let display = published.display_config;
    MarketplaceListing {
        app_url: publishing::public_url(app, &published.public_name),
        listing_id: published.public_id,
        internal_id: org_id.to_owned(),
        namespace_id: namespace_id.to_owned(),
        retriever_id: published.retriever_id,
        title: display.title.clone(),
        description: description(&display, published.description),
        public_name: published.public_name,
        category: published.category,
        tags: published.tags,
        logo_url: display.logo_url.clone(),
        icon_base64: display.icon_base64.clone().or(published.icon_base64),
        available_tiers: vec![SubscriptionTierConfig {
            tier: SubscriptionTier::Free,
            limits: page::told(&published.rate_limit_config),
            ..Default::default()
        }],
        status: ListingStatus::Published,
        visibility: if unlisted {
            ListingVisibility::Unlisted
        } else {
            ListingVisibility::Listed
        },
        is_active: published.is_active,
        created_at: published.created_at,
        updated_at: published.updated_at,
        published_at: Some(published.created_at),
        display_config: Some(display),
        ..Default::default()
    }
}

fn description(display: &DisplayConfig, own: Option<String>) -> String {
    display.description.clone().or(own).unwrap_or_default()
}

/// One listing with what its searches take.
fn whole(app: &App, open: &Open) -> MarketplaceListing {
    let fields = &open.retriever.input_schema;
    let inputs = fields
        .iter()
        .filter_map(|(name, field)| Some((name.clone(), example(field)?)));
    let inputs: Object = inputs.collect();
    let limits = page::told(&open.published.rate_limit_config);
    MarketplaceListing {
        input_schema: Some(fields.clone()),
        example_request: Some(Object::from_iter([("inputs".to_owned(), json!(inputs))])),
        anonymous_rate_limit: Some(limits),
        ..listing(
            app,
            (open.org_id(), open.namespace_id()),
            open.published.clone(),
        )
    }
}

/// What an input may be, as its schema tells.
fn example(field: &RetrieverInputSchemaField) -> Option<Value> {
    let told = field
        .examples
        .as_ref()
        .and_then(|examples| examples.first());
    let named = field.r#enum.as_ref().and_then(|values| values.first());
    told.or(field.default.as_ref()).or(named).cloned()
}
