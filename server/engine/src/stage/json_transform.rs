//! `json_transform`: each document given another shape by a template of JSON.

use loupe_wire::{Object, StageCategory, Value};

use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, member};
use super::working::{Row, Working};
use super::{Definition, RunError};
use crate::template::render_text;

/// What a row keeps unless the template gives it: pages, groups and later stages name rows by them.
const KEPT: [&str; 3] = ["document_id", "collection_id", "score"];

pub(crate) static DEFINITION: Definition = Definition {
    id: "json_transform",
    aliases: &[],
    category: StageCategory::Apply,
    icon: "braces",
    about: "Gives each document another shape: a template that renders to a JSON object",
    members: &[
        member(
            "template",
            Kind::Template,
            r#""{{ DOC | tojson }}""#,
            r#"Such as {"title": {{ DOC.title | tojson }}, "place": {{ CONTEXT.INDEX }}}"#,
        ),
        member(
            "fail_on_error",
            Kind::Boolean,
            "false",
            "Whether a document that cannot be transformed ends the execution; else it stays as it is",
        ),
    ],
};

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let (template, strict) = (p.word("template"), p.flag("fail_on_error"));
    let mut rows = at.rows(set).await?;
    let (mut failed, mut first) = (0, None);
    for (index, row) in rows.iter_mut().enumerate() {
        match transform(at, row, index, &template) {
            Ok(made) => *row = made,
            Err(reason) if strict => {
                return Err(RunError::Invalid(format!(
                    "stage `{}`: document `{}`: {reason}",
                    at.stage,
                    row.id()
                )));
            }
            Err(reason) => {
                failed += 1;
                first.get_or_insert_with(|| format!("`{}`: {reason}", row.id()));
            }
        }
    }
    if let Some(first) = first {
        at.warn(format!(
            "stage `{}`: {failed} documents stayed as they were, the first is {first}",
            at.stage
        ));
    }
    Ok(Working::Rows(rows))
}

fn transform(at: &Execution, row: &Row, index: usize, template: &str) -> Result<Row, String> {
    let text = render_text(template, &at.context_of(row, index)).map_err(|e| e.0)?;
    let made: Value =
        serde_json::from_str(&text).map_err(|e| format!("the template does not give JSON: {e}"))?;
    let Value::Object(mut made) = made else {
        return Err("the template does not give a JSON object".to_owned());
    };
    let mut object = Object::new();
    for name in KEPT {
        let value = made.shift_remove(name);
        if let Some(value) = value.or_else(|| row.value.get(name).cloned()) {
            object.insert(name.to_owned(), value);
        }
    }
    object.extend(made);
    Ok(Row {
        value: object.into(),
    })
}
