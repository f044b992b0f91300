//! An execution as a file: a row for every document, with its cluster and its place in the picture.

use axum::{
    extract::{Path, State},
    http::header,
    response::{IntoResponse, Response},
};
use loupe_wire::Value;
use serde::Deserialize;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::showing::{self, Grouped};
use crate::{
    app::App,
    auth::{Read, Scope},
    error::{Result, Violation},
    list::Params,
    openapi::routes,
    v1::exports,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(export_execution))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Json,
    Lines,
}

impl Format {
    fn read(sent: Option<&str>) -> Result<Self> {
        match sent.unwrap_or("csv") {
            "csv" => Ok(Self::Csv),
            "json" => Ok(Self::Json),
            "jsonl" | "ndjson" => Ok(Self::Lines),
            other => {
                let msg = "format is csv, json or jsonl";
                Err(Violation::query("format", "enum", msg, other.into()).into())
            }
        }
    }

    const fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::Csv => ("text/csv; charset=utf-8", "csv"),
            Self::Json => ("application/json", "json"),
            Self::Lines => ("application/x-ndjson", "jsonl"),
        }
    }
}

const COLUMNS: [&str; 6] = [
    "document_id",
    "collection_id",
    "cluster_id",
    "cluster_label",
    "x",
    "y",
];

fn row(one: &Grouped) -> [Value; 6] {
    let at = |axis: usize| one.at.get(axis).map_or(Value::Null, |at| json!(at));
    [
        json!(one.document_id),
        json!(one.collection_id),
        json!(one.cluster_id),
        json!(one.label),
        at(0),
        at(1),
    ]
}

fn object(one: &Grouped) -> Value {
    let members = COLUMNS.map(ToOwned::to_owned).into_iter().zip(row(one));
    Value::Object(members.collect())
}

fn written(format: Format, rows: &[Grouped]) -> Vec<u8> {
    let mut out = Vec::new();
    match format {
        Format::Csv => {
            let names = COLUMNS.map(Value::from);
            out.extend(exports::csv(names.iter().map(Some)));
            for one in rows {
                out.extend(exports::csv(row(one).iter().map(Some)));
            }
        }
        Format::Json => out.extend(
            Value::from_iter(rows.iter().map(object))
                .to_string()
                .bytes(),
        ),
        Format::Lines => {
            for one in rows {
                out.extend(object(one).to_string().bytes());
                out.push(b'\n');
            }
        }
    }
    out
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ExportQuery {
    /// csv (default), json or jsonl.
    format: Option<String>,
    /// Documents of the clusters with this label alone.
    cluster_label: Option<String>,
}

/// The documents of an execution with their clusters, as a file to download.
#[utoipa::path(get, path = "/v1/clusters/{cluster_id}/executions/{run_id}/export", tag = "clusters", params(ExportQuery), responses((status = 200, content_type = "text/csv", body = String)))]
async fn export_execution(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((identifier, run_id)): Path<(String, String)>,
    Params(query): Params<ExportQuery>,
) -> Result<Response> {
    let format = Format::read(query.format.as_deref())?;
    let label = query.cluster_label.as_deref();
    let rows = showing::grouped(&app, &scope, &identifier, &run_id, label).await?;
    let (kind, ending) = format.named();
    let name = format!("attachment; filename=\"{run_id}.{ending}\"");
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, written(format, &rows)).into_response())
}
