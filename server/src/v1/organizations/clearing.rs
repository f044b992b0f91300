//! Changes in which null is no silence: it takes away what is there.

use axum::extract::{FromRef, FromRequest, Request};
use serde::de::DeserializeOwned;
use utoipa::ToSchema;
use validator::Validate;

use crate::{
    app::App,
    body,
    error::{ApiError, Result},
};

/// As [`body::Body`], with the names of the members that were sent as null.
pub struct Clearing<T> {
    pub request: T,
    pub nulls: Nulls,
}

/// Names of members that were sent as null.
pub struct Nulls(Vec<String>);

impl Nulls {
    /// Whether a member was sent as null.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|null| null == name)
    }

    /// What becomes of a member: what was sent, nothing where that was null, and what it was where nothing was sent.
    pub fn after<V>(&self, name: &str, sent: Option<V>, before: Option<V>) -> Option<V> {
        match self.has(name) {
            true => None,
            false => sent.or(before),
        }
    }
}

impl<T, S> FromRequest<S> for Clearing<T>
where
    T: DeserializeOwned + Validate + ToSchema + Send,
    S: Send + Sync,
    App: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let (value, ignored) = body::receive(request, &App::from_ref(state)).await?;
        let members = value.as_object().into_iter().flatten();
        let nulls = members.filter(|(_, value)| value.is_null());
        let nulls = Nulls(nulls.map(|(name, _)| name.clone()).collect());
        let request = body::from_value(value, ignored.as_ref())?;
        Ok(Self { request, nulls })
    }
}
