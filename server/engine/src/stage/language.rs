//! How stages ask the language model: within the organization's tokens, and without holding a search's turn.

use std::sync::Arc;

use loupe_wire::{Object, Value};

use super::RunError;
use super::around::Metered;
use super::execution::Execution;
use super::tokens;
use crate::embed::{EmbedError, LanguageModel, Question};

/// Tokens of an answer, where the stage sets no limit.
const ANSWER_TOKENS: u64 = 1_000;
/// What tokens are counted in; models differ a little.
const COUNTED_IN: &str = "cl100k_base";
/// More tokens than that are counted by their characters.
const MOST_COUNTED: usize = 200_000;
/// Tokens that a picture of the size that is sent is counted as.
const OF_A_PICTURE: u64 = 800;

/// The configured model, or a sentence saying what to configure.
pub(crate) fn model(at: &Execution) -> Result<Arc<LanguageModel>, RunError> {
    at.run.encoders.language().ok_or_else(|| {
        RunError::Embed(EmbedError::Unavailable(format!(
            "stage `{}`: no language model is configured; set `models.language` of the server",
            at.stage
        )))
    })
}

/// Takes what a question will cost from the organization's tokens of this minute.
pub(crate) fn spend(at: &mut Execution, question: &Question) -> Result<(), RunError> {
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
    spend_tokens(at, asked as u64 + seen + answer)
}

/// Takes the tokens of one question from those of this minute.
pub(crate) fn spend_tokens(at: &mut Execution, amount: u64) -> Result<(), RunError> {
    at.spend(Metered::LanguageTokens, amount)?;
    at.report.llm_calls += 1;
    at.report.tokens += amount;
    Ok(())
}

/// One question, answered with a JSON object.
pub(crate) async fn object(at: &mut Execution, question: Question) -> Result<Object, RunError> {
    let model = model(at)?;
    spend(at, &question)?;
    Ok(at
        .away(async move { model.object(&question).await })
        .await?)
}

/// Several questions at once, so many of them under way; the answers in the order of the questions.
pub(crate) async fn answers(
    at: &mut Execution,
    questions: Vec<Question>,
    at_once: usize,
) -> Result<Vec<Result<Value, EmbedError>>, RunError> {
    use futures::StreamExt as _;
    let model = model(at)?;
    for question in &questions {
        spend(at, question)?;
    }
    let work = questions.into_iter().map(|question| {
        let model = Arc::clone(&model);
        async move {
            if question.shape.is_some() {
                model.object(&question).await.map(Value::Object)
            } else {
                model.words(&question).await.map(Value::String)
            }
        }
    });
    let all = futures::stream::iter(work)
        .buffered(at_once.max(1))
        .collect::<Vec<_>>();
    Ok(at.away(all).await)
}
