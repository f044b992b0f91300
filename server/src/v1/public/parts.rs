//! What else was made of the file behind an item: the moments of a recording, the pages of a PDF.

use loupe_engine::{
    filter::{Filter, Operator},
    stage::Plan,
    store::{Direction, Document, ListQuery, Sort},
};
use loupe_hosted::{Hit, Media, MediaKind};
use loupe_wire::Value;

use super::{Open, documents, host, publishing};
use crate::app::App;

/// Parts of one file that are read up to the place that is shown, and as many beyond it.
const MOST: usize = 150;

/// What a document was made of, and where its other parts are.
pub(super) struct Whole {
    collection_id: String,
    object_id: String,
}

impl Whole {
    /// Of a document that was made of an object; none of one that was written.
    pub(super) fn of(document: &Document) -> Option<Self> {
        let lineage = document.payload.get("_internal")?.get("lineage")?;
        let object_id = lineage.get("root_object_id").and_then(Value::as_str)?;
        Some(Self {
            collection_id: document.collection_id.clone(),
            object_id: object_id.to_owned(),
        })
    }
}

/// What comes up to the place of `media` in the object's file, nearest first, and what comes after it.
fn around(media: &Media, object_id: &str) -> [ListQuery; 2] {
    let (field, here) = match media.kind {
        MediaKind::Pdf => ("page_number", media.page.unwrap_or_default().into()),
        MediaKind::Video | MediaKind::Audio => {
            ("start_time", media.start.unwrap_or_default().into())
        }
    };
    let after = Filter::leaf(field, Operator::Gt, here);
    // What has no place is not after it.
    let before = Filter::None(vec![after.clone()]);
    let query = |place: Filter, direction| ListQuery {
        filter: Some(Filter::eq("_internal.lineage.root_object_id", object_id).and(place)),
        sort: Some(Sort {
            field: field.to_owned(),
            direction,
        }),
        limit: MOST,
        ..ListQuery::default()
    };
    [
        query(before, Direction::Descending),
        query(after, Direction::Ascending),
    ]
}

impl Open {
    /// The documents of a file that this page shows, those around the place of `media`, each with its own: exposed fields
    /// only. An item is whole without them: an overload leaves them out, and what keeps the store from answering is its
    /// owner's to know.
    pub(super) async fn parts(
        &self,
        app: &App,
        plan: &Plan,
        media: &Media,
        whole: Whole,
    ) -> Vec<Hit> {
        // It reads every document of the file, and takes its turn as a search does.
        let Ok(_turn) = app.turns.take().await else {
            return Vec::new();
        };
        let reach = self.scope.reach(vec![whole.collection_id]);
        let mut listed = Vec::new();
        for query in around(media, &whole.object_id) {
            match app.store().list(&reach, query).await {
                Ok(page) => listed.extend(page.documents),
                Err(error) => {
                    let public_name = &self.published.public_name;
                    tracing::warn!(%error, public_name, "the parts of a file could not be read");
                    return Vec::new();
                }
            }
        }
        let admitted = listed.into_iter().filter(|part| plan.admits(part));
        admitted
            .filter_map(|part| self.part(app, media, part))
            .collect()
    }

    /// One document of the file; none where it is of another file of the object.
    fn part(&self, app: &App, whole: &Media, document: Document) -> Option<Hit> {
        let shape = documents::Shape {
            presigned_urls: true,
            ..Default::default()
        };
        let document = documents::view(app, document, &shape);
        let exposed = &self.published.display_config.exposed_fields;
        let media = publishing::media_of(exposed, &document)?;
        (media.url == whole.url).then(|| Hit {
            media: Some(media),
            ..host::hit(self.show(&document))
        })
    }
}
