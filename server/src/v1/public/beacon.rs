//! Interactions that pages send.

use loupe_wire::{
    BulkInteractionsResponse, InteractionResponse, PublicInteractionRequest, SearchInteraction,
};

use super::Open;
use crate::{
    app::App,
    error::{ApiError, Result},
    front, limits,
    v1::interactions::{self, Origin},
};

impl Open {
    /// Records what a visitor did with one result.
    ///
    /// # Errors
    /// 429 when the page, or the visitor's address, has told too much.
    pub async fn tell(
        &self,
        app: &App,
        session: Option<String>,
        request: PublicInteractionRequest,
    ) -> Result<InteractionResponse> {
        let mut kept = self.record(app, session, vec![request]).await?;
        let one = kept.pop();
        let mut one = one.ok_or_else(|| ApiError::internal("nothing was recorded"))?;
        // Which retriever is behind the page is not told to strangers.
        one.retriever_id = None;
        Ok(one)
    }

    /// Records what a visitor did with several.
    ///
    /// # Errors
    /// As [`Open::tell`].
    pub async fn tell_all(
        &self,
        app: &App,
        session: Option<String>,
        requests: Vec<PublicInteractionRequest>,
    ) -> Result<BulkInteractionsResponse> {
        let places: Vec<usize> = (0..requests.len()).collect();
        let kept = self.record(app, session, requests).await?;
        Ok(interactions::told(&kept, &places, Vec::new()))
    }

    async fn record(
        &self,
        app: &App,
        session: Option<String>,
        requests: Vec<PublicInteractionRequest>,
    ) -> Result<Vec<InteractionResponse>> {
        let page = &self.published.public_id;
        limits::page::take_beacons(app, page, front::address(), requests.len())?;
        let origin = Origin {
            namespace_id: self.scope.namespace_id.clone(),
            public_id: page.clone(),
        };
        let session = session.filter(|session| session.len() <= 256);
        let all = requests.into_iter().map(|sent| SearchInteraction {
            feature_id: sent.document_id,
            interaction_type: sent.interaction_type,
            position: sent.position,
            metadata: sent.metadata,
            session_id: sent.session_id.or_else(|| session.clone()),
            execution_id: sent.execution_id,
            retriever_id: Some(self.published.retriever_id.clone()),
            query_snapshot: sent.query_snapshot,
            document_score: sent.document_score,
            result_set_size: sent.result_set_size,
            ..Default::default()
        });
        interactions::record(app, &origin, all.collect()).await
    }
}
