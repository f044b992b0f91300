use std::time::Duration;

use axum::{
    extract::{RawQuery, Request, State},
    http::header,
    response::{IntoResponse, Response},
};
use loupe_wire::{
    ApplyMode, ApplyResult, DiffResult, LintResponse, ManifestForm, ValidateResult, Value,
    WrittenManifest,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{applying::Wishes, exporting::Detail, upload::Upload};
use crate::{
    app::App,
    auth::{Org, Read, Write},
    body,
    error::{ApiError, Result, Violation},
    json::Json,
    list::{Params, within},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(apply_manifest))
        .routes(routes!(diff_manifest))
        .routes(routes!(export_manifest, export_manifest_of))
        .routes(routes!(generate_manifest))
        .routes(routes!(lint_manifest))
        .routes(routes!(validate_manifest))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ApplyQuery {
    /// Only tells what would be done.
    dry_run: Option<bool>,
    /// No further resource is begun after so many seconds, 1 to 1800; a request lasts no longer than any other.
    deadline_seconds: Option<f64>,
    /// Not available: manifests hold no objects.
    wait_for_seed: Option<bool>,
    /// Not available: manifests hold no acceptance tests.
    run_acceptance: Option<bool>,
    /// What becomes of what is there: `upsert` (changed, where absent), `create_missing` (left) or `create_only` (nothing is
    /// made).
    #[param(inline)]
    mode: Option<ApplyMode>,
}

impl ApplyQuery {
    fn wishes(self, app: &App) -> Result<Wishes> {
        for (name, sent) in [
            ("wait_for_seed", self.wait_for_seed),
            ("run_acceptance", self.run_acceptance),
        ] {
            if sent == Some(true) {
                let message = "manifests hold neither objects nor acceptance tests: leave it out";
                return Err(Violation::query(name, "not_enabled", message, true.into()).into());
            }
        }
        // Some of a request's time is left for the answer.
        let longest = app.config().limits.request_seconds.max(2) as f64 * 0.8;
        let sent = self.deadline_seconds;
        let seconds = within(
            "deadline_seconds",
            sent,
            longest.clamp(1.0, 1_800.0),
            (1.0, 1_800.0),
        )?;
        Ok(Wishes {
            mode: self.mode.unwrap_or_default(),
            dry_run: self.dry_run == Some(true),
            most: Duration::from_secs_f64(seconds.min(longest)),
        })
    }
}

/// Makes what a manifest describes and is missing, and changes what is otherwise, each as its own operation does. What was made
/// stays if a later resource fails: the same manifest again goes on from there.
#[utoipa::path(post, path = "/v1/manifest/apply", tag = "manifest", params(ApplyQuery), request_body(content = ManifestForm, content_type = "multipart/form-data"), responses((status = 200, body = ApplyResult)))]
async fn apply_manifest(
    State(app): State<App>,
    org: Org<Write>,
    Params(query): Params<ApplyQuery>,
    upload: Upload,
) -> Result<Json<ApplyResult>> {
    let wishes = query.wishes(&app)?;
    super::apply(&app, &org.caller, upload, wishes)
        .await
        .map(Json)
}

/// What an apply of this manifest would make and change, and what its namespaces hold beside it.
#[utoipa::path(post, path = "/v1/manifest/diff", tag = "manifest", request_body(content = ManifestForm, content_type = "multipart/form-data"), responses((status = 200, body = DiffResult)))]
async fn diff_manifest(
    State(app): State<App>,
    org: Org<Read>,
    upload: Upload,
) -> Result<Json<DiffResult>> {
    super::diff(&app, &org.caller, upload).await.map(Json)
}

/// Whether a manifest can be applied; each fault tells its line and its path.
#[utoipa::path(post, path = "/v1/manifest/validate", tag = "manifest", request_body(content = ManifestForm, content_type = "multipart/form-data"), responses((status = 200, body = ValidateResult)))]
async fn validate_manifest(
    State(app): State<App>,
    org: Org<Read>,
    upload: Upload,
) -> Result<Json<ValidateResult>> {
    super::validate(&app, &org.caller, upload).await.map(Json)
}

/// What is wrong with a manifest, and what could be better.
#[utoipa::path(post, path = "/v1/manifest/lint", tag = "manifest", params(("skip_rules" = Option<Vec<String>>, Query, description = "Codes of rules that are not applied")), request_body(content = ManifestForm, content_type = "multipart/form-data"), responses((status = 200, body = LintResponse)))]
async fn lint_manifest(
    State(app): State<App>,
    org: Org<Read>,
    RawQuery(query): RawQuery,
    upload: Upload,
) -> Result<Json<LintResponse>> {
    let query = query.unwrap_or_default();
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    let skipped = pairs.filter(|(name, _)| name == "skip_rules" || name == "skip_rules[]");
    let skipped = skipped.flat_map(|(_, codes)| {
        let codes = codes.split(',').map(|code| code.trim().to_owned());
        codes.collect::<Vec<_>>()
    });
    let skipped: Vec<String> = skipped.collect();
    super::lint(&app, &org.caller, upload, &skipped)
        .await
        .map(Json)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ExportQuery {
    /// One namespace, by its id or name; every one that the key may read where absent.
    namespace_id: Option<String>,
    /// yaml (default): a file; json: the manifest itself.
    format: Option<String>,
    manifest_name: Option<String>,
    /// full (default) or summary: names and descriptions.
    detail: Option<String>,
}

/// The name of a manifest that nobody named.
const EXPORTED: &str = "exported-manifest";

/// A manifest of what is there, which makes the same elsewhere: names in place of ids, placeholders in place of secrets.
#[utoipa::path(get, path = "/v1/manifest/export", tag = "manifest", params(ExportQuery), responses((status = 200, content((Value = "application/yaml"), (Value = "application/json")))))]
async fn export_manifest(
    State(app): State<App>,
    org: Org<Read>,
    Params(query): Params<ExportQuery>,
) -> Result<Response> {
    let name = query.manifest_name.as_deref().unwrap_or(EXPORTED);
    let detail = Detail::read(query.detail.as_deref())?;
    let as_json = match query.format.as_deref() {
        None | Some("yaml") => false,
        Some("json") => true,
        Some(other) => {
            let message = "a manifest is written as yaml or json";
            return Err(Violation::query("format", "enum", message, other.into()).into());
        }
    };
    let named: Vec<String> = query.namespace_id.into_iter().collect();
    let written = super::exporting::export(&app, &org.caller, &named, (name, detail)).await?;
    Ok(match as_json {
        true => Json(written.manifest).into_response(),
        false => {
            let headers = [
                (header::CONTENT_TYPE, "application/yaml; charset=utf-8"),
                (
                    header::CONTENT_DISPOSITION,
                    "attachment; filename=\"manifest.yaml\"",
                ),
            ];
            (headers, written.yaml()).into_response()
        }
    })
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ExportOfQuery {
    manifest_name: Option<String>,
    /// full (default) or summary: names and descriptions.
    detail: Option<String>,
}

/// As the GET, for several namespaces: a list of ids or names, or an object with `namespace_ids`.
#[utoipa::path(post, path = "/v1/manifest/export", tag = "manifest", params(ExportOfQuery), request_body = Option<Value>, responses((status = 200, body = WrittenManifest)))]
async fn export_manifest_of(
    State(app): State<App>,
    org: Org<Read>,
    Params(query): Params<ExportOfQuery>,
    request: Request,
) -> Result<Json<WrittenManifest>> {
    let (sent, _) = body::receive(request, &app).await?;
    let (named, own) = wanted(&sent)?;
    let name = own.or(query.manifest_name);
    let name = name.unwrap_or_else(|| EXPORTED.to_owned());
    let detail = Detail::read(query.detail.as_deref())?;
    let about = (name.as_str(), detail);
    let written = super::exporting::export(&app, &org.caller, &named, about).await?;
    Ok(Json(WrittenManifest {
        manifest: written.yaml(),
        format: "yaml".into(),
        manifest_name: name,
        description: None,
    }))
}

fn refuse(path: &[&str], kind: &str, message: &str) -> ApiError {
    Violation::body(path, kind, message, Value::Null).into()
}

/// The namespaces that a part of a body names.
fn texts(value: &Value, path: &[&str]) -> Result<Vec<String>> {
    let items = match value {
        Value::Null => return Ok(Vec::new()),
        Value::String(one) => return Ok(vec![one.clone()]),
        Value::Array(items) => items,
        _ => {
            let message = "namespaces are a list of ids or names";
            return Err(refuse(path, "list_type", message));
        }
    };
    let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
    texts
        .collect::<Option<Vec<String>>>()
        .ok_or_else(|| refuse(path, "string_type", "namespaces are named by texts"))
}

/// The namespaces that a body names, and the name that it gives.
fn wanted(sent: &Value) -> Result<(Vec<String>, Option<String>)> {
    let Value::Object(members) = sent else {
        return Ok((texts(sent, &[])?, None));
    };
    let (mut named, mut name) = (Vec::new(), None);
    for (member, value) in members {
        let path = [member.as_str()];
        match member.as_str() {
            "namespace_ids" | "namespace_id" => named.extend(texts(value, &path)?),
            "manifest_name" => name = value.as_str().map(str::to_owned),
            _ => {
                let message = "extra inputs are not permitted";
                return Err(refuse(&path, "extra_forbidden", message));
            }
        }
    }
    Ok((named, name))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct GenerateQuery {
    /// What is needed, in words.
    description: String,
    manifest_name: Option<String>,
}

/// Has a language model write a manifest from a description. It is checked, and not applied.
#[utoipa::path(post, path = "/v1/manifest/generate", tag = "manifest", params(GenerateQuery), responses((status = 200, body = WrittenManifest)))]
async fn generate_manifest(
    State(app): State<App>,
    org: Org<Read>,
    Params(query): Params<GenerateQuery>,
) -> Result<Json<WrittenManifest>> {
    let name = query.manifest_name.as_deref();
    let name = name.unwrap_or("generated-manifest");
    super::generating::generate(&app, &org.caller, &query.description, name)
        .await
        .map(Json)
}
