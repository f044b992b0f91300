//! `response_shape`: a language model reads each part and fills in its members.

use futures::{StreamExt, TryStreamExt};
use loupe_wire::Object;

use crate::{
    embed::{EmbedError, Encoders, Question, object_in},
    extract::{ExtractError, Part, needs::Need, needs::Services, shape::Shape},
};

/// Questions asked at once for one object.
const AT_ONCE: usize = 4;
/// What an object fails of whose answer has no members.
const NO_OBJECT: &str = "the language model did not answer with a JSON object";

/// Asks for every part that has words; answers how many members of answers there was no room for. A part that cannot be
/// answered fails the object.
pub(super) async fn fill(
    encoders: &dyn Encoders,
    shape: &Shape,
    model: Option<&str>,
    parts: &mut [Part],
) -> Result<usize, ExtractError> {
    let Some(language) = encoders.language() else {
        let words = Services::default().lacks(Need::Language);
        return Err(ExtractError::permanent(words.unwrap_or_default()));
    };
    let ask = |number: usize, text: String| {
        let language = &language;
        let question = Question {
            task: shape.task(),
            text,
            shape: shape.schema(),
            model: model.map(str::to_owned),
            ..Question::default()
        };
        async move {
            let words = language.words(&question).await.map_err(failed)?;
            // Asked the same, it says the same again.
            let answer = object_in(&words).ok_or_else(|| ExtractError::permanent(NO_OBJECT))?;
            Ok::<(usize, Object), ExtractError>((number, answer))
        }
    };
    let asked: Vec<_> = parts
        .iter()
        .enumerate()
        .filter_map(|(number, part)| Some((number, part.text.clone()?)))
        .collect();
    let answers: Vec<(usize, Object)> = futures::stream::iter(asked)
        .map(|(number, text)| ask(number, text))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let mut left = 0;
    for (number, answer) in answers {
        let (taken, more) = shape.taken(answer);
        left += more;
        for (name, value) in taken {
            parts[number].fields.entry(name).or_insert(value);
        }
    }
    Ok(left)
}

/// A model's failure as that of an object.
pub(super) fn failed(error: EmbedError) -> ExtractError {
    match error {
        EmbedError::Invalid(_) | EmbedError::Refused(_) => {
            ExtractError::permanent(error.to_string())
        }
        EmbedError::Unavailable(_) => ExtractError::transient(error.to_string()),
        EmbedError::Failed(_) => ExtractError::away(error.to_string()),
    }
}
