//! How stages ask the language model: within the organization's tokens, and without holding a search's turn.

use std::sync::Arc;
use std::time::Instant;

use loupe_wire::{Object, Value};
use secrecy::SecretString;

use super::around::Metered;
use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, Member, member};
use super::{RunError, tokens};
use crate::embed::{EmbedError, LanguageModel, Question, Usage};

/// Tokens of an answer, where the stage sets no limit.
const ANSWER_TOKENS: u64 = 1_000;
/// What tokens are counted in; models differ a little.
const COUNTED_IN: &str = "cl100k_base";
/// More tokens than that are counted by their characters.
const MOST_COUNTED: usize = 200_000;
/// Tokens that a picture of the size that is sent is counted as.
const OF_A_PICTURE: u64 = 800;

/// Who `provider` may name.
const PROVIDERS: &[&str] = &["openai", "google", "anthropic", "typesafe"];

/// The parameter that names whose models are meant.
pub(super) const PROVIDER: Member = member(
    "provider",
    Kind::Choice(PROVIDERS),
    "",
    "Whose models are meant; the server's configured endpoint answers, and where that is another's the answer says so",
);

/// The parameter that names a model by a feature's address.
pub(super) const FEATURE_URI: Member = member(
    "feature_uri",
    Kind::Text,
    "",
    "The model as a feature's address: its last part, where neither `model_name` nor `inference_name` is given",
);

/// The parameter that names a key of one's own.
pub(super) const API_KEY: Member = member(
    "api_key",
    Kind::Verbatim,
    "",
    "The name of a secret of the organization, alone or as {{ secret.NAME }}: the key that the configured endpoint is asked with, in the place of the server's",
);

/// The name of the secret that an `api_key` means.
pub(super) fn secret_named(written: &str) -> &str {
    let text = written.trim();
    let inside = text
        .strip_prefix("{{")
        .and_then(|rest| rest.strip_suffix("}}"));
    let named = inside.and_then(|inside| {
        let (scope, name) = inside.trim().split_once('.')?;
        let scope = scope.to_ascii_lowercase();
        matches!(scope.as_str(), "secret" | "secrets").then_some(name)
    });
    named.unwrap_or(text).trim()
}

/// The key of one's own that the stage names; none where it names none.
pub(super) fn key(at: &Execution, p: &Parameters) -> Result<Option<SecretString>, RunError> {
    let Some(written) = p.text("api_key") else {
        return Ok(None);
    };
    let name = secret_named(&written);
    match at.run.secrets.get(name) {
        Some(value) => Ok(Some(SecretString::from(value.clone()))),
        None => Err(RunError::Invalid(format!(
            "stage `{}`: there is no secret `{name}`",
            at.stage
        ))),
    }
}

/// The model that the stage names; the configured one where it names none.
pub(super) fn model_named(p: &Parameters) -> Option<String> {
    let by_name = p.text("model_name").or_else(|| p.text("inference_name"));
    by_name.or_else(|| {
        let uri = p.text("feature_uri")?;
        let last = uri.trim_end_matches('/').rsplit('/').next()?;
        (!last.is_empty()).then(|| last.to_owned())
    })
}

/// Tells where the stage means the models of somebody whose endpoint is not configured.
pub(super) fn tell_provider(at: &mut Execution, p: &Parameters) {
    let Some(meant) = p.text("provider") else {
        return;
    };
    let known = at.run.encoders.language();
    let own = known
        .as_ref()
        .and_then(|model| model.provider().map(str::to_owned));
    if known.is_some() && own.as_ref() != Some(&meant) {
        let own = own.unwrap_or_else(|| "the configured endpoint".to_owned());
        at.warn(format!(
            "stage `{}`: the provider `{meant}` is not configured; {own} took its place",
            at.stage
        ));
    }
}

/// The configured model, or a sentence saying what to configure.
pub(crate) fn model(at: &Execution) -> Result<Arc<LanguageModel>, RunError> {
    at.run.encoders.language().ok_or_else(|| {
        RunError::Embed(EmbedError::Unavailable(format!(
            "stage `{}`: no language model is configured; set `models.language` of the server",
            at.stage
        )))
    })
}

/// Tokens that a question was counted as before it was asked, until its answer tells what it took.
#[must_use]
pub(crate) struct Taken {
    tokens: u64,
    since: Instant,
}

/// What a question is likely to cost: what it says, and all that may come back.
fn estimate(question: &Question) -> u64 {
    let asked = tokens::tokenizer(COUNTED_IN).map_or(0, |bpe| {
        [&question.task, &question.text]
            .into_iter()
            .map(|text| tokens::count(bpe, text, MOST_COUNTED))
            .sum::<usize>()
    });
    let answer = question
        .most_tokens
        .and_then(|most| u64::try_from(most).ok())
        .unwrap_or(ANSWER_TOKENS);
    let seen = question.pictures.len() as u64 * OF_A_PICTURE;
    asked as u64 + seen + answer
}

/// Takes the tokens of one question from the organization's of this minute.
fn take(at: &mut Execution, tokens: u64) -> Result<Taken, RunError> {
    at.spend(Metered::LanguageTokens, tokens)?;
    at.report.llm_calls += 1;
    at.report.tokens += tokens;
    Ok(Taken {
        tokens,
        since: Instant::now(),
    })
}

/// Puts what an answer took in the place of what was counted for it; where nobody says what it took, that stays.
pub(crate) fn settle(at: &mut Execution, taken: Taken, used: Option<Usage>) {
    let Some(used) = used.map(Usage::total) else {
        return;
    };
    let report = &mut at.report;
    report.tokens = report.tokens.saturating_sub(taken.tokens) + used;
    if let Some(around) = &at.run.around {
        let lasted = taken.since.elapsed();
        around.settle(Metered::LanguageTokens, taken.tokens, used, lasted);
    }
}

/// Gives back what a question was counted as that is not asked.
fn give_back(at: &mut Execution, taken: Taken) {
    at.report.llm_calls = at.report.llm_calls.saturating_sub(1);
    settle(at, taken, Some(Usage::default()));
}

/// One question, answered in words.
pub(crate) async fn words(
    at: &mut Execution,
    question: Question,
) -> Result<Result<String, EmbedError>, RunError> {
    let model = model(at)?;
    let taken = take(at, estimate(&question))?;
    let answered = at.away(async move { model.counted_words(&question).await });
    let answered = answered.await;
    settle(at, taken, answered.used);
    Ok(answered.said)
}

/// One question, answered with a JSON object.
pub(crate) async fn object(at: &mut Execution, question: Question) -> Result<Object, RunError> {
    let model = model(at)?;
    let taken = take(at, estimate(&question))?;
    let answered = at.away(async move { model.counted_object(&question).await });
    let answered = answered.await;
    settle(at, taken, answered.used);
    Ok(answered.said?)
}

/// Several questions at once, so many of them under way; the answers in the order of the questions.
pub(crate) async fn answers(
    at: &mut Execution,
    questions: Vec<Question>,
    at_once: usize,
) -> Result<Vec<Result<Value, EmbedError>>, RunError> {
    use futures::StreamExt as _;
    let model = model(at)?;
    let taken = take_all(at, questions.iter().map(estimate))?;
    let work = questions.into_iter().map(|question| {
        let model = Arc::clone(&model);
        async move {
            if question.shape.is_some() {
                let answered = model.counted_object(&question).await;
                (answered.said.map(Value::Object), answered.used)
            } else {
                let answered = model.counted_words(&question).await;
                (answered.said.map(Value::String), answered.used)
            }
        }
    });
    let all = futures::stream::iter(work)
        .buffered(at_once.max(1))
        .collect::<Vec<_>>();
    let answered = at.away(all).await;
    let settled = taken
        .into_iter()
        .zip(answered)
        .map(|(taken, (said, used))| {
            settle(at, taken, used);
            said
        });
    Ok(settled.collect())
}

/// The tokens of all questions, or of none.
pub(crate) fn take_all(
    at: &mut Execution,
    questions: impl Iterator<Item = u64>,
) -> Result<Vec<Taken>, RunError> {
    let mut all = Vec::new();
    for tokens in questions {
        match take(at, tokens) {
            Ok(taken) => all.push(taken),
            Err(error) => {
                all.into_iter().for_each(|taken| give_back(at, taken));
                return Err(error);
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::secret_named;

    #[test]
    fn a_key_is_named_alone_or_as_templates_name_it() {
        for written in [
            "mine",
            " mine ",
            "{{ secret.mine }}",
            "{{SECRETS.mine}}",
            "{{secrets.mine }}",
        ] {
            assert_eq!(secret_named(written), "mine", "{written}");
        }
        assert_eq!(secret_named("{{ INPUT.mine }}"), "{{ INPUT.mine }}");
    }
}
