//! The namespace that an app works in: what its calls without a retriever's name are about.

use super::{Hosted, NAMESPACE, variable};
use crate::{
    app::App,
    error::Result,
    v1::namespaces::{self, NAMESPACES},
};

/// The namespace that an app names: by its variable, else as it was made or changed.
pub fn named(hosted: &Hosted) -> Option<&str> {
    variable(hosted, NAMESPACE).or(hosted.namespace_id.as_deref())
}

/// The namespace of a new app: where none was sent, the only one there is. Another one that comes later changes nothing for
/// its visitors.
pub(super) async fn kept(app: &App, org_id: &str, sent: Option<String>) -> Result<Option<String>> {
    match sent {
        Some(sent) => Ok(Some(sent)),
        None => namespaces::only_one(app.db(), org_id).await,
    }
}

/// What an owner is told of an app whose visitors are refused.
pub(super) async fn warning(app: &App, org_id: &str, hosted: &Hosted) -> Result<Option<String>> {
    const MEND: &str =
        "choose one in the settings of the app, or change it with the header X-Namespace";
    let Some(id) = named(hosted) else {
        let several = namespaces::first_two(app.db(), org_id).await?.len() > 1;
        return Ok(several.then(|| {
            format!("no namespace is set and there are several: calls of visitors that name no retriever are refused; {MEND}")
        }));
    };
    match NAMESPACES.find(app.db(), org_id, id).await {
        // Apps name ids only.
        Ok(found) if found.id == id => Ok(None),
        Err(error) if !error.is_not_found() => Err(error),
        _ => {
            let mend = match variable(hosted, NAMESPACE) {
                Some(_) => "change build_config.env_vars.LOUPE_NAMESPACE",
                None => MEND,
            };
            Ok(Some(format!(
                "its namespace {id} is gone: calls of visitors are refused; {mend}"
            )))
        }
    }
}
