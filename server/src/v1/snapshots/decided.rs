//! Annotations of a snapshot: put back behind the documents that they are of, or copied behind the copies of these.

use std::collections::HashMap;

use loupe_wire::{SnapshotModel, reading};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, Lines};

use super::{ANNOTATIONS, restore::STEP};
use crate::{
    app::App,
    error::{ApiError, Result},
    jobs::Claim,
    v1::annotations::{self, Line, Target},
};

/// The annotations that a snapshot keeps, some at once.
struct Pages<R>(Lines<R>);

impl<R: AsyncBufRead + Unpin> Pages<R> {
    /// The next ones; none at the end.
    async fn next(&mut self) -> Result<Option<Vec<Line>>> {
        let mut page = Vec::new();
        while page.len() < STEP {
            let line = self.0.next_line().await.map_err(ApiError::internal)?;
            let Some(line) = line else { break };
            page.push(reading::from_str(&line).map_err(ApiError::internal)?);
        }
        Ok((!page.is_empty()).then_some(page))
    }
}

/// None where the snapshot was taken before snapshots had any.
async fn open(
    app: &App,
    snapshot: &SnapshotModel,
) -> Result<Option<Pages<impl AsyncBufRead + Unpin + Send + use<>>>> {
    let manifest = snapshot.manifest.as_ref();
    let frontier = manifest.and_then(|manifest| manifest.frontier.as_ref());
    if !frontier.is_some_and(|frontier| frontier.digests.contains_key(ANNOTATIONS)) {
        return Ok(None);
    }
    let key = format!("{}/{ANNOTATIONS}", snapshot.s3_prefix);
    let reader = app.blobs().reader(&key).await?;
    Ok(Some(Pages(reader.lines())))
}

/// Puts them back where they were.
pub(super) async fn put_back(app: &App, claim: &Claim, snapshot: &SnapshotModel) -> Result<()> {
    let Some(mut pages) = open(app, snapshot).await? else {
        return Ok(());
    };
    while let Some(lines) = pages.next().await? {
        annotations::put_back(app, &claim.org_id, &snapshot.namespace_id, lines).await?;
    }
    Ok(())
}

/// Documents that are annotated, with the ids of their copies as far as these are made.
#[derive(Debug, Default)]
pub(super) struct Annotated(HashMap<String, String>);

impl Annotated {
    pub(super) async fn read(app: &App, snapshot: &SnapshotModel) -> Result<Self> {
        let mut annotated = Self::default();
        if let Some(mut pages) = open(app, snapshot).await? {
            while let Some(lines) = pages.next().await? {
                let ids = lines.iter().map(|line| line.document_id().to_owned());
                annotated.0.extend(ids.map(|id| (id.clone(), id)));
            }
        }
        Ok(annotated)
    }

    pub(super) fn note(&mut self, document_id: &str, copy: String) {
        if let Some(known) = self.0.get_mut(document_id) {
            *known = copy;
        }
    }

    /// Copies the annotations into the namespace of the copies.
    pub(super) async fn copy(
        &self,
        app: &App,
        snapshot: &SnapshotModel,
        target: &Target<'_>,
    ) -> Result<()> {
        let Some(mut pages) = open(app, snapshot).await? else {
            return Ok(());
        };
        while let Some(lines) = pages.next().await? {
            annotations::copy(app, target, &self.0, lines).await?;
        }
        Ok(())
    }
}
