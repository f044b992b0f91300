//! Manifests written by a language model, from what somebody says they need.

use loupe_engine::{
    embed::Question,
    extract,
    stage::{self, Around as _, Metered},
};
use loupe_wire::{Object, Value, WrittenManifest};

use super::{
    document::{EXAMPLE, Fault, Manifest, NEEDS_VALUE},
    kinds::Kind,
    yaml,
};
use crate::{
    app::App,
    auth::Caller,
    error::{ApiError, Result, Violation},
    limits::quota,
    v1::retrievers::{self, Held},
};

/// Characters of what is asked for.
const MOST: usize = 10_000;
/// Tokens of an answer.
const TOKENS: i64 = 6_000;
/// How often a model is asked: the second time it is told what was wrong.
const TRIES: usize = 2;

/// Has a manifest written. It was read before it is answered, so it can be applied, but for what it names outside.
///
/// # Errors
/// 422 for no description or a long one, 503 where no language model is configured or it does not answer, 500 where it
/// writes nothing that can be read.
pub async fn generate(
    app: &App,
    caller: &Caller,
    description: &str,
    name: &str,
) -> Result<WrittenManifest> {
    if description.trim().is_empty() || description.chars().count() > MOST {
        let message = format!("say in 1 to {MOST} characters what you need");
        let input = Value::Null;
        return Err(Violation::query("description", "value_error", message, input).into());
    }
    quota::check_spend(app, &caller.org_id).await?;
    let language = app.encoders().language().ok_or_else(|| {
        let message = "no language model is configured on this server ([models.language])";
        ApiError::model_unavailable("", message)
    })?;
    let held = Held::new(app, &caller.org_id, app.turns.take().await?);
    let mut question = Question {
        task: task(app),
        text: description.to_owned(),
        most_tokens: Some(TOKENS),
        ..Default::default()
    };
    let mut faults = Vec::new();
    for _ in 0..TRIES {
        let length = (question.task.len() + question.text.len()) as u64;
        let tokens = length / 4 + TOKENS.unsigned_abs();
        held.spend(Metered::LanguageTokens, tokens)
            .map_err(|wait| {
                let message =
                    "the organization has used its tokens of language models of this minute";
                retrievers::used_up(Metered::LanguageTokens, message, wait)
            })?;
        // Others search while another machine thinks.
        held.leave();
        let words = language.words(&question).await?;
        match read(&words, name) {
            Ok(manifest) => {
                return Ok(WrittenManifest {
                    manifest,
                    format: "yaml".into(),
                    manifest_name: name.to_owned(),
                    description: Some(description.to_owned()),
                });
            }
            Err(found) => faults = found,
        }
        question.text = format!(
            "{description}\n\nThis was written before:\n{words}\n\nIt is wrong:\n{}\nWrite it again without these faults.",
            faults.join("\n")
        );
    }
    let message = "the language model wrote no manifest that can be applied: say it in other words";
    Err(ApiError::processing("", message).with("errors", faults))
}

/// What a model wrote, under the name that was asked for.
fn read(words: &str, name: &str) -> Result<String, Vec<String>> {
    let manifest = Manifest::read(fenced(words), &Object::new());
    let faults = manifest.faults.iter();
    let faults: Vec<String> = faults
        .filter(|fault| fault.message != NEEDS_VALUE)
        .map(Fault::sentence)
        .collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    if manifest.resources.is_empty() {
        return Err(vec!["it describes no resource".into()]);
    }
    let Ok(mut text) = yaml::read(fenced(words)) else {
        return Err(vec!["it is no YAML".into()]);
    };
    text.value["metadata"]["name"] = name.into();
    Ok(yaml::write(&text.value))
}

/// What stands between fences, if there are any.
fn fenced(words: &str) -> &str {
    let Some((_, rest)) = words.split_once("```") else {
        return words;
    };
    let rest = rest.split_once('\n').map_or(rest, |(_, rest)| rest);
    rest.split_once("```").map_or(rest, |(inside, _)| inside)
}

fn task(app: &App) -> String {
    let sections = Kind::ALL.map(|kind| {
        let members = kind.members().join(", ");
        format!("{} (each with name, namespace, {members})", kind.section())
    });
    let extractors = extract::catalogue().iter();
    let extractors = extractors
        .filter(|one| one.unavailable(app.outputs()).is_none())
        .map(|one| format!("{}@{}: {}", one.name, one.version, one.description));
    let stages = stage::catalogue(retrievers::configured(app)).into_iter();
    let stages = stages.map(|one| format!("{}: {}", one.stage_id, one.description));
    format!(
        "Write a manifest in YAML for what is asked: one document, no words around it, no aliases. Its sections are lists: \
         {}. Resources name each other by their names. Extractors of collections:\n{}\nStages of retrievers:\n{}\n\n\
         An example:\n{EXAMPLE}",
        sections.join("; "),
        extractors.collect::<Vec<_>>().join("\n"),
        stages.collect::<Vec<_>>().join("\n"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_wrote_is_read_before_it_is_answered() {
        let words = format!("Here it is:\n```yaml\n{EXAMPLE}```\nEnjoy.");
        let manifest = read(&words, "mine").unwrap();
        let again = yaml::read(&manifest).unwrap().value;
        assert_eq!(again["metadata"]["name"], "mine");
        assert_eq!(again["buckets"][0]["name"], "plots");
        assert!(read("version: \"1.0\"", "mine").is_err());
        let wrong = read("version: \"1.0\"\nbuckets: [{name: a}]", "mine").unwrap_err();
        assert!(wrong[0].contains("buckets.0"), "{wrong:?}");
    }
}
