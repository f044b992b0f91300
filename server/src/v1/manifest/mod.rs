//! Manifests: one file that describes namespaces with what they hold, checked, compared with what is there, applied, and written
//! from it.

mod applying;
mod checking;
mod compare;
mod document;
mod exporting;
mod generating;
mod kinds;
mod linting;
mod order;
mod placeholders;
mod references;
mod routes;
mod state;
mod upload;
pub mod yaml;

use indexmap::IndexMap;
use loupe_wire::{ApplyResult, DiffItem, DiffResult, LintResponse, LintSeverity, ValidateResult};

pub use document::{EXAMPLE, VERSION};
pub use routes::router;

use self::{
    applying::{Standing, Wishes},
    document::{Fault, Manifest},
    kinds::Kind,
    order::Step,
    state::State,
    upload::Upload,
};
use crate::{
    app::App,
    auth::Caller,
    error::{ApiError, Result},
};

/// A manifest beside what is there, and the steps in which it is applied. What is wrong is in its faults.
struct Checked {
    manifest: Manifest,
    state: State,
    steps: Vec<Step>,
}

impl Checked {
    async fn new(app: &App, caller: &Caller, upload: Upload) -> Result<Self> {
        let Upload { text, parameters } = upload;
        let reading = move || Manifest::read(&text, &parameters);
        // A large text takes a while.
        let read = tokio::task::spawn_blocking(reading).await;
        let mut manifest = read.map_err(ApiError::internal)?;
        let state = State::of(app, caller, &manifest).await?;
        let checking = move || {
            // What is left out for its faults would be missing everywhere.
            let steps = match manifest.faults.is_empty() {
                true => checking::check(&mut manifest, &state),
                false => Vec::new(),
            };
            Self {
                manifest,
                state,
                steps,
            }
        };
        let checked = tokio::task::spawn_blocking(checking).await;
        checked.map_err(ApiError::internal)
    }

    /// # Errors
    /// The 422 list of its faults.
    fn without_faults(mut self) -> Result<Self> {
        match self.manifest.faults.is_empty() {
            true => Ok(self),
            false => Err(document::refuse(std::mem::take(&mut self.manifest.faults))),
        }
    }
}

async fn apply(app: &App, caller: &Caller, upload: Upload, wishes: Wishes) -> Result<ApplyResult> {
    let checked = Checked::new(app, caller, upload).await?.without_faults()?;
    let Checked {
        manifest,
        state,
        steps,
    } = checked;
    applying::apply(app, caller, (&manifest, &state, steps), wishes).await
}

async fn validate(app: &App, caller: &Caller, upload: Upload) -> Result<ValidateResult> {
    let Checked {
        manifest, state, ..
    } = Checked::new(app, caller, upload).await?;
    let mut resources: IndexMap<String, i64> = IndexMap::new();
    for one in &manifest.resources {
        *resources.entry(one.kind.section().to_owned()).or_insert(0) += 1;
    }
    let known = state.secrets.as_ref();
    let missing = known.map(|known| checking::missing_secrets(&manifest, known));
    let mut missing_secrets: Vec<String> = missing
        .unwrap_or_default()
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    missing_secrets.sort();
    missing_secrets.dedup();
    let advice = linting::lint(&manifest, &[]).results.into_iter();
    let advice = advice.filter(|one| one.severity == LintSeverity::Warning);
    Ok(ValidateResult {
        valid: manifest.faults.is_empty(),
        resources,
        missing_secrets,
        errors: manifest.faults.iter().map(Fault::sentence).collect(),
        warnings: advice
            .map(|one| format!("{}: {}", one.location, one.message))
            .collect(),
        parameters: manifest.parameters,
    })
}

async fn lint(
    app: &App,
    caller: &Caller,
    upload: Upload,
    skipped: &[String],
) -> Result<LintResponse> {
    let checked = Checked::new(app, caller, upload).await?;
    Ok(linting::lint(&checked.manifest, skipped))
}

async fn diff(app: &App, caller: &Caller, upload: Upload) -> Result<DiffResult> {
    let checked = Checked::new(app, caller, upload).await?.without_faults()?;
    let (manifest, state) = (&checked.manifest, &checked.state);
    let mut result = DiffResult::default();
    for one in &manifest.resources {
        let item =
            |action: &str, details: Option<String>| item(one.kind, &one.name, action, details);
        match applying::standing(state, one, &one.said) {
            Standing::Absent => result.to_create.push(item("create", None)),
            Standing::Several(many) => {
                let details = format!("{many} of them are called the same");
                result.differences.push(item("conflict", Some(details)));
            }
            Standing::There(_, found) if found.drift.is_empty() => {}
            Standing::There(_, found) => {
                let refused = applying::refused(one.kind, &found.drift);
                let drift = found.drift.join(", ");
                result.differences.push(match refused.is_empty() {
                    true => item("update", Some(format!("differs in {drift}"))),
                    false => {
                        let fixed = refused.join(", ");
                        let details =
                            format!("differs in {drift}; cannot be changed in place: {fixed}");
                        item("conflict", Some(details))
                    }
                });
            }
        }
    }
    result.in_system_only = beside(manifest, state);
    Ok(result)
}

fn item(kind: Kind, name: &str, action: &str, details: Option<String>) -> DiffItem {
    DiffItem {
        resource_type: kind.name().into(),
        name: name.to_owned(),
        action: action.to_owned(),
        details,
    }
}

/// What the namespaces of a manifest hold that it does not describe.
fn beside(manifest: &Manifest, state: &State) -> Vec<DiffItem> {
    let mut spaces: Vec<_> = state.spaces.iter().collect();
    spaces.sort_by_key(|(namespace, _)| *namespace);
    let mut found = Vec::new();
    for (namespace, space) in spaces {
        let described = |kind: Kind, name: &str| {
            let mut all = manifest.resources.iter();
            all.any(|one| (one.kind, &one.namespace, one.name.as_str()) == (kind, namespace, name))
        };
        let others = space.resources.iter();
        let others = others.filter(|one| !described(one.kind, &one.name));
        found.extend(others.map(|one| {
            item(
                one.kind,
                &one.name,
                "none",
                Some(format!("in the namespace '{namespace}'")),
            )
        }));
    }
    found
}
