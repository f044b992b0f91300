//! Retrievers that say which objects of a bucket, or of a sync, are processed.

use loupe_wire::{IngestFilter, Value};

use crate::{
    app::App,
    auth::{Scope, Write},
    error::{ApiError, Result, Violation},
    v1::retrievers,
};

/// Seconds that one object is judged for, at most.
const LONGEST: i64 = 300;

fn fault(member: &str, kind: &str, msg: impl Into<String>, input: Value) -> ApiError {
    Violation::body(&["ingest_filter", member], kind, msg, input).into()
}

/// Checks a filter, and puts the id of its retriever in place of a name.
///
/// # Errors
/// 404 for a retriever that is not there, 403 for one out of the key's scopes, 422 for none, another version of it, or no time.
pub async fn check(
    app: &App,
    scope: &Scope<Write>,
    filter: Option<IngestFilter>,
) -> Result<Option<IngestFilter>> {
    let Some(mut filter) = filter else {
        return Ok(None);
    };
    if filter.retriever_id.is_empty() {
        let msg = "name a retriever";
        return Err(fault("retriever_id", "string_too_short", msg, "".into()));
    }
    if !(1..=LONGEST).contains(&filter.timeout_seconds) {
        let msg = format!("must be between 1 and {LONGEST}");
        let kind = match filter.timeout_seconds > LONGEST {
            true => "less_than_equal",
            false => "greater_than_equal",
        };
        let input = filter.timeout_seconds.into();
        return Err(fault("timeout_seconds", kind, msg, input));
    }
    let retriever = retrievers::known(app, scope, &filter.retriever_id).await?;
    if let Some(asked) = filter
        .retriever_version
        .filter(|asked| *asked != retriever.version)
    {
        let msg = format!(
            "the retriever has the version {} alone: with other stages it is another one",
            retriever.version
        );
        return Err(fault("retriever_version", "value_error", msg, asked.into()));
    }
    filter.retriever_id.clone_from(&retriever.id);
    Ok(Some(filter))
}

/// The same for a member of a change: absent it leaves the filter as it is, `null` takes it away.
pub async fn change(
    app: &App,
    scope: &Scope<Write>,
    sent: Option<Option<IngestFilter>>,
) -> Result<Option<Option<IngestFilter>>> {
    match sent {
        Some(filter) => check(app, scope, filter).await.map(Some),
        None => Ok(None),
    }
}
