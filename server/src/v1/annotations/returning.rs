//! Annotations as snapshots keep them: put back where they were, or copied beside copies of the documents that they are of.

use std::collections::{BTreeMap, HashMap};

use loupe_engine::store::document_id;
use loupe_wire::{AnnotationResponse, AuditAction, Value};
use serde::{Deserialize, Serialize};

use super::{
    ANY, Edit, about, edited, prior,
    signal::{self, Changed},
    store::{self, NEVER},
    tell,
};
use crate::{
    app::App,
    args,
    auth::Caller,
    db::{Arg, Db, Json, Tx},
    error::Result,
    v1::audit,
};

crate::sql! {
    // In the order of the index that leads to them.
    const PAGE = "SELECT created_at, valid_from, data FROM annotations WHERE namespace_id = $1 AND valid_to = $2 AND created_at <= $3 AND (created_at < $3 OR annotation_id > $4) ORDER BY created_at DESC, annotation_id LIMIT $5";
    const EARLIER = "SELECT valid_from, valid_to, data FROM annotations WHERE namespace_id = $1 AND annotation_id = $2 AND version < $3 ORDER BY version";
    // Also of what was deleted, as long as that is kept.
    const LAST = "SELECT created_at, valid_to, data FROM annotations WHERE namespace_id = $1 AND annotation_id = $2 ORDER BY version DESC LIMIT 1";
    const PUT = "INSERT INTO annotations (annotation_id, version, namespace_id, document_id, collection_id, label, actor_id, retriever_id, created_at, valid_from, valid_to, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING";
}

/// An annotation with all that it has said.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    created_at: i64,
    valid_from: i64,
    annotation: AnnotationResponse,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<Earlier>,
}

/// A version that another one took the place of.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Earlier {
    valid_from: i64,
    valid_to: i64,
    annotation: AnnotationResponse,
}

impl Line {
    fn id(&self) -> &str {
        self.annotation.annotation_id.as_deref().unwrap_or_default()
    }

    /// Where it stands among the others.
    pub fn place(&self) -> (i64, String) {
        (self.created_at, self.id().to_owned())
    }

    /// The document that it is of.
    pub fn document_id(&self) -> &str {
        &self.annotation.document_id
    }
}

/// Where the annotations of a namespace begin: moment and id, the newest first.
pub const NEWEST: (i64, String) = (i64::MAX, String::new());

/// Annotations behind a place, the newest first.
///
/// # Errors
/// The database does not answer.
pub async fn page(
    db: &Db,
    namespace_id: &str,
    (at, id): &(i64, String),
    most: usize,
) -> Result<Vec<Line>> {
    let args = args![namespace_id, NEVER, *at, id, most];
    let rows: Vec<(i64, i64, Json<AnnotationResponse>)> = db.all(PAGE, args).await?;
    let mut lines = Vec::with_capacity(rows.len());
    for (created_at, valid_from, Json(annotation)) in rows {
        let mut line = Line {
            created_at,
            valid_from,
            annotation,
            earlier: Vec::new(),
        };
        if line.annotation.version > 1 {
            line.earlier = earlier(db, namespace_id, &line).await?;
        }
        lines.push(line);
    }
    Ok(lines)
}

async fn earlier(db: &Db, namespace_id: &str, line: &Line) -> Result<Vec<Earlier>> {
    let args = args![namespace_id, line.id(), line.annotation.version];
    let rows: Vec<(i64, i64, Json<AnnotationResponse>)> = db.all(EARLIER, args).await?;
    let rows = rows.into_iter();
    Ok(rows
        .map(|(valid_from, valid_to, Json(annotation))| Earlier {
            valid_from,
            valid_to,
            annotation,
        })
        .collect())
}

/// Writes all versions of an annotation as they were kept; whether it was not there yet.
async fn write(tx: &mut Tx, line: &Line) -> Result<bool> {
    let earlier = line.earlier.iter();
    for one in earlier {
        let times = (line.created_at, one.valid_from, one.valid_to);
        write_version(tx, &one.annotation, times).await?;
    }
    let times = (line.created_at, line.valid_from, NEVER);
    write_version(tx, &line.annotation, times).await
}

async fn write_version(
    tx: &mut Tx,
    annotation: &AnnotationResponse,
    (created_at, valid_from, valid_to): (i64, i64, i64),
) -> Result<bool> {
    let row = args![
        annotation.annotation_id.as_deref().unwrap_or_default(),
        annotation.version,
        &annotation.namespace_id,
        &annotation.document_id,
        annotation.collection_id.as_deref().unwrap_or_default(),
        &annotation.label,
        &annotation.actor_id,
        annotation.retriever_id.as_deref().unwrap_or_default(),
        created_at,
        valid_from,
        valid_to,
        Arg::json(annotation)
    ];
    Ok(tx.run(PUT, row).await? > 0)
}

/// Puts annotations back: one that was edited since says again what it said, as its next version, and so does one that was
/// deleted; one that nobody remembers any more is what was kept of it.
///
/// # Errors
/// The database does not answer.
pub async fn put_back(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    mut lines: Vec<Line>,
) -> Result<()> {
    // In one order for all who hold several: no two wait for each other.
    lines.sort_by(|one, other| one.id().cmp(other.id()));
    let edit = Edit::new(app, &Caller::system(org_id));
    let changed = app
        .db()
        .write(move |tx| Box::pin(async move { edit.put_all(tx, lines).await }))
        .await?;
    signal::mirror(app, namespace_id, changed).await;
    Ok(())
}

/// What is told of an annotation that was put back.
struct Put {
    what: (&'static str, AuditAction),
    annotation: AnnotationResponse,
    changes: Value,
}

impl Edit {
    async fn put_all(&self, tx: &mut Tx, lines: Vec<Line>) -> Result<Changed> {
        // Events come last: the first of them is a lock.
        let mut put = Vec::new();
        for line in lines {
            put.extend(self.put(tx, line).await?);
        }
        let mut changed = Changed::default();
        for one in put {
            self.tell(tx, one.what, &one.annotation, one.changes)
                .await?;
            changed.current(&one.annotation);
        }
        Ok(changed)
    }

    /// None where it says what it said.
    async fn put(&self, tx: &mut Tx, line: Line) -> Result<Option<Put>> {
        let created = ("annotation.created", AuditAction::AnnotationCreated);
        loop {
            let args = args![&line.annotation.namespace_id, line.id()];
            let last: Option<(i64, i64, Json<AnnotationResponse>)> = tx.one(LAST, args).await?;
            let Some((created_at, valid_to, Json(mut before))) = last else {
                write(tx, &line).await?;
                return Ok(Some(Put {
                    what: created,
                    changes: about(&line.annotation),
                    annotation: line.annotation,
                }));
            };
            let mut after = said(&before, &line.annotation);
            let changes = audit::difference(&edited(&before), &edited(&after));
            let (prior, is_there) = (prior(&changes), valid_to == NEVER);
            if is_there && prior.is_empty() {
                return Ok(None);
            }
            self.revise(&before, &mut after, prior);
            before.revisions.clear();
            // One that came between left another version.
            if is_there && !store::supersede(tx, &before, self.now).await? {
                continue;
            }
            store::insert(tx, &after, created_at, self.now).await?;
            let updated = ("annotation.updated", AuditAction::AnnotationUpdated);
            return Ok(Some(match is_there {
                true => Put {
                    what: updated,
                    annotation: after,
                    changes,
                },
                false => Put {
                    what: created,
                    changes: about(&after),
                    annotation: after,
                },
            }));
        }
    }
}

/// An annotation that says what it said then.
fn said(now: &AnnotationResponse, then: &AnnotationResponse) -> AnnotationResponse {
    AnnotationResponse {
        label: then.label.clone(),
        confidence: then.confidence,
        reasoning: then.reasoning.clone(),
        payload: then.payload.clone(),
        metadata: then.metadata.clone(),
        ..now.clone()
    }
}

/// Where annotations are copied to, and what has which id there.
pub struct Target<'t> {
    pub org_id: &'t str,
    pub namespace_id: &'t str,
    pub collections: &'t BTreeMap<String, String>,
    pub retrievers: &'t BTreeMap<String, String>,
}

impl Target<'_> {
    /// The same id whenever it is asked: a copy that was cut off starts again.
    fn id(&self, annotation_id: &str) -> String {
        let id = document_id(self.namespace_id, annotation_id, "copy");
        id.replacen("doc_", ANY, 1)
    }

    fn line(&self, documents: &HashMap<String, String>, mut line: Line) -> Line {
        let earlier = line.earlier.iter_mut().map(|one| &mut one.annotation);
        for annotation in earlier.chain([&mut line.annotation]) {
            // A document that is gone stays gone.
            if let Some(id) = documents.get(&annotation.document_id) {
                annotation.document_id.clone_from(id);
            }
            self.annotation(annotation);
        }
        line
    }

    /// What it names of the other namespace is of this one.
    fn annotation(&self, annotation: &mut AnnotationResponse) {
        annotation.annotation_id = annotation.annotation_id.as_deref().map(|id| self.id(id));
        self.namespace_id.clone_into(&mut annotation.namespace_id);
        for (named, ids) in [
            (&mut annotation.collection_id, self.collections),
            (&mut annotation.retriever_id, self.retrievers),
        ] {
            let new = named.as_ref().and_then(|id| ids.get(id));
            *named = new.cloned().or(named.take());
        }
    }
}

/// Copies annotations into another namespace, with all that they have said, beside the copies that `documents` names. The record
/// of that namespace is theirs too.
///
/// # Errors
/// The database does not answer.
pub async fn copy(
    app: &App,
    target: &Target<'_>,
    documents: &HashMap<String, String>,
    lines: Vec<Line>,
) -> Result<()> {
    let lines = lines.into_iter();
    let lines: Vec<Line> = lines.map(|line| target.line(documents, line)).collect();
    let (org_id, now) = (target.org_id.to_owned(), app.clock().micros());
    let changed = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut made = Vec::with_capacity(lines.len());
                for line in lines {
                    if write(tx, &line).await? {
                        made.push(line.annotation);
                    }
                }
                let mut changed = Changed::default();
                for annotation in made {
                    tell(tx, &org_id, "annotation.created", &annotation, now).await?;
                    signal::note(tx, &annotation, now).await?;
                    changed.current(&annotation);
                }
                Ok(changed)
            })
        })
        .await?;
    signal::mirror(app, target.namespace_id, changed).await;
    Ok(())
}
