//! Bodies that ask a retriever, read the same wherever they are sent to: the API, a page, an app. Their inputs are of any shape, a
//! vector of a thousand numbers maybe: they are taken as they came, past the layers that find unknown keys.

use axum::{
    extract::{FromRef, FromRequest, Request},
    http::Extensions,
};
use loupe_wire::{
    AdhocExecuteRequest, ExecuteRetrieverRequest, Object, PublicAppSearchRequest,
    RetrieverExecutionRequest, RetrieverPagination, Value, reading,
};
use serde::{Deserialize, de::DeserializeOwned};
use utoipa::ToSchema;
use validator::Validate;

use super::paging;
use crate::{
    app::App,
    body,
    error::{ApiError, Result, Violation},
    hosting::api::Only,
};

/// A body that has inputs.
pub trait Asks: DeserializeOwned + Validate + ToSchema + Send {
    fn inputs(&mut self) -> &mut Option<Object>;
}

macro_rules! asks {
    ($($body:ty),+) => {
        $(impl Asks for $body {
            fn inputs(&mut self) -> &mut Option<Object> {
                &mut self.inputs
            }
        })+
    };
}

asks!(
    ExecuteRetrieverRequest,
    AdhocExecuteRequest,
    RetrieverExecutionRequest,
    PublicAppSearchRequest
);

/// A question with its inputs.
pub struct Asked<T>(pub T);

impl<T: Asks, S: Send + Sync> FromRequest<S> for Asked<T>
where
    App: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let is_visitors = is_visitors(request.extensions());
        let (mut value, ignored) = body::receive(request, &App::from_ref(state)).await?;
        if is_visitors {
            writes_nothing(&value)?;
        }
        let inputs = value.get_mut("inputs").and_then(Value::as_object_mut);
        let inputs = inputs.map(std::mem::take);
        paging::check(&value, &["pagination"], ignored.as_ref())?;
        let mut asked: T = body::from_value(value, ignored.as_ref())?;
        if inputs.is_some() {
            *asked.inputs() = inputs;
        }
        Ok(Self(asked))
    }
}

/// Whether a visitor of an app asks.
fn is_visitors(extensions: &Extensions) -> bool {
    extensions.get::<Only>().is_some()
}

/// An app that lets its visitors search lets nobody write: whatever its rules open, an execution is none of what writes.
fn writes_nothing(body: &Value) -> Result<()> {
    match body.get("target_collection_id") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(ApiError::forbidden(
            "permission_denied",
            "visitors of an app write nothing by an execution: leave target_collection_id out",
        )),
    }
}

/// What questions say beside their inputs where they have one member for it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub limit: Option<i64>,
    pub pagination: Option<RetrieverPagination>,
    pub filters: Option<Object>,
    pub expand: Vec<String>,
    pub skip_cache: bool,
}

impl Settings {
    /// The settings as they were sent.
    ///
    /// # Errors
    /// 422 for what settings do not have, and for bounds that are broken.
    pub fn read(sent: Option<Object>) -> Result<Self> {
        let sent = Value::Object(sent.unwrap_or_default());
        // What settings do not have is refused whatever the day.
        paging::check(&sent, &["settings", "pagination"], None)?;
        let settings: Self = reading::from_value(&sent).map_err(|error| {
            let msg =
                format!("settings are limit, pagination, filters, expand, skip_cache: {error}");
            ApiError::from(Violation::body(&["settings"], "value_error", msg, sent))
        })?;
        settings.within_bounds()?;
        Ok(settings)
    }

    fn within_bounds(&self) -> Result<()> {
        if let Some(limit) = self.limit.filter(|limit| !(1..=500).contains(limit)) {
            let (path, msg) = (["settings", "limit"], "must be between 1 and 500");
            return Err(Violation::body(&path, "out_of_range", msg, limit.into()).into());
        }
        let page = self.pagination.as_ref();
        if page.is_some_and(|page| page.validate().is_err()) {
            let msg = "the size, the number or the time of the page is out of its bounds";
            let place = ["settings", "pagination"];
            return Err(Violation::body(&place, "out_of_range", msg, Value::Null).into());
        }
        Ok(())
    }
}
