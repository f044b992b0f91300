//! `response_shape`: a language model reads each part and fills in its members.

use futures::{StreamExt, TryStreamExt};
use loupe_wire::Object;

use crate::{
    embed::{EmbedError, Encoders, Question},
    extract::{ExtractError, Part, needs::Need, needs::Services, shape::Shape},
};

/// Questions asked at once for one object.
const AT_ONCE: usize = 4;

/// Asks for every part that has words. One that cannot be answered fails the object.
pub(super) async fn fill(
    encoders: &dyn Encoders,
    shape: &Shape,
    model: Option<&str>,
    parts: &mut [Part],
) -> Result<(), ExtractError> {
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
            let answer = language.object(&question).await.map_err(failed)?;
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
    for (number, answer) in answers {
        for (name, value) in shape.taken(answer) {
            parts[number].fields.entry(name).or_insert(value);
        }
    }
    Ok(())
}

/// A model's failure as that of an object.
pub(super) fn failed(error: EmbedError) -> ExtractError {
    match error {
        EmbedError::Invalid(_) => ExtractError::permanent(error.to_string()),
        EmbedError::Unavailable(_) | EmbedError::Failed(_) => {
            ExtractError::transient(error.to_string())
        }
    }
}
