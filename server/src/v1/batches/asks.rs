//! What queries ask of batches, beside bodies that say the same.

use loupe_wire::NamespaceOperation;
use serde::Deserialize;

use super::store;
use crate::{
    app::App,
    auth::{Scope, Write},
    error::{ApiError, Result, Violation},
    unresolved::is_nowhere,
};

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct CheckQuery {
    /// Leaves out the ids that no object of the bucket has, instead of refusing all; default false.
    skip_validation: Option<bool>,
}

impl CheckQuery {
    /// The ids that are asked for. Of those of nothing alone nothing is left out: they are refused.
    ///
    /// # Errors
    /// 404 for a bucket that is not there.
    pub(super) async fn of(
        &self,
        app: &App,
        scope: &Scope<Write>,
        bucket: &str,
        ids: Vec<String>,
    ) -> Result<Vec<String>> {
        if self.skip_validation != Some(true) {
            return Ok(ids);
        }
        let operation = NamespaceOperation::ExecuteJob;
        let bucket_id = super::bucket_id(app, scope, bucket, operation).await?;
        let known = store::known(app.db(), &scope.namespace_id, &bucket_id, &ids).await?;
        Ok(if known.is_empty() { ids } else { known })
    }
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ResubmitQuery {
    /// Objects that came as far as this tier, counted from 0, begin there again, whatever became of them.
    from_tier: Option<i64>,
    /// A batch that is resubmitted is queued: false is refused.
    auto_submit: Option<bool>,
    /// The same.
    trigger_processing: Option<bool>,
}

impl ResubmitQuery {
    /// The tier to begin at.
    ///
    /// # Errors
    /// 422 for a batch that is not to be queued.
    pub(super) fn tier(&self) -> Result<Option<i64>> {
        let asked = [
            ("auto_submit", self.auto_submit),
            ("trigger_processing", self.trigger_processing),
        ];
        match asked.into_iter().find(|(_, sent)| *sent == Some(false)) {
            Some((name, _)) => {
                let msg = "a batch that is resubmitted is queued: leave this out";
                Err(Violation::query(name, "not_enabled", msg, false.into()).into())
            }
            None => Ok(self.from_tier),
        }
    }
}

/// The namespace whose batches are listed, of the header or the body; empty for all of the organization.
///
/// # Errors
/// 400 when they name different ones.
pub(super) fn namespace(header: Option<String>, body: Option<&str>) -> Result<String> {
    match (header, body) {
        (Some(header), Some(body)) if header != body && !is_nowhere(&header) => {
            Err(ApiError::bad_request(
                "namespace_mismatch",
                "X-Namespace and namespace_id name different namespaces",
            ))
        }
        (header, body) => Ok(header.unwrap_or_else(|| body.unwrap_or_default().to_owned())),
    }
}
