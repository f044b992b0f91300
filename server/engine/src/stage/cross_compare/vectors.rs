//! The vectors that items are compared by: of their meaning, and of the look of their documents.

use std::collections::HashSet;

use super::Item;
use crate::stage::execution::Execution;
use crate::stage::targets::targets;
use crate::stage::{RunError, Searchable};
use crate::store::WithVectors;

/// Tells how many documents could not be compared: that they match nothing says nothing of them.
fn tell_lacking(at: &mut Execution, what: &str, items: &[Item], lacks: impl Fn(&Item) -> bool) {
    let documents = |items: &mut dyn Iterator<Item = &Item>| {
        let places: HashSet<usize> = items.map(|item| item.document).collect();
        places.len()
    };
    let lacking = documents(&mut items.iter().filter(|item| lacks(item)));
    if lacking > 0 {
        let all = documents(&mut items.iter());
        at.warn(format!(
            "stage `{}`: {lacking} of {all} {what} and were not compared by it",
            at.stage
        ));
    }
}

/// What the collections have vectors of.
fn outputs<'c>(collections: impl Iterator<Item = &'c Searchable>) -> Vec<String> {
    let outputs = collections.flat_map(|one| one.indexes.iter().map(|index| index.output.clone()));
    outputs.collect()
}

/// Gives the items the vectors of their texts, by the model that the reference collection's texts were read with.
pub(super) async fn meanings(
    at: &mut Execution,
    collections: &[Searchable],
    sources: &mut [Item],
    others: &mut [Item],
) -> Result<(), RunError> {
    let outputs = outputs(collections.iter().chain(&at.run.collections));
    for output in outputs {
        let Ok(encoder) = at.run.encoders.text(&output).await else {
            continue;
        };
        let mut all: Vec<&mut Item> = sources.iter_mut().chain(others.iter_mut()).collect();
        all.retain(|item| !item.text.is_empty());
        let texts = all.iter().map(|item| item.text.clone()).collect();
        let vectors = encoder.embed(texts).await?;
        for (item, vector) in all.into_iter().zip(vectors) {
            item.meaning = Some(vector);
        }
        let is_mute = |item: &Item| item.meaning.is_none();
        tell_lacking(at, "documents have no text", sources, is_mute);
        tell_lacking(at, "references have no text", others, is_mute);
        return Ok(());
    }
    let stage = at.stage.clone();
    at.degrade(
        "stage",
        &stage,
        "no collection has texts with a model, so meanings were not compared",
        "compare with a collection that has a text feature",
    );
    Ok(())
}

/// Gives the items the vectors of their documents in the first space of pictures that both sides have.
pub(super) async fn looks(
    at: &mut Execution,
    collections: &[Searchable],
    sources: &mut [Item],
    others: &mut [Item],
) -> Result<(), RunError> {
    let outputs = outputs(collections.iter());
    for output in outputs {
        if at.run.encoders.image(&output).await.is_err() {
            continue;
        }
        let feature = format!("loupe://any@v1/{output}");
        for (items, of) in [
            (&mut *sources, at.run.collections.clone()),
            (&mut *others, collections.to_vec()),
        ] {
            let names: Vec<String> = targets(&of, &feature, &[])
                .into_iter()
                .map(|t| t.index)
                .collect();
            let reach = at.reach_of(&of);
            let ids: Vec<String> = items.iter().map(|item| item.document_id.clone()).collect();
            let documents = at.run.store.get(&reach, &ids, WithVectors::Yes).await?;
            for document in documents {
                let vector = names.iter().find_map(|name| document.vectors.get(name));
                for item in items
                    .iter_mut()
                    .filter(|i| i.document_id == document.document_id)
                {
                    item.look = vector.cloned();
                }
            }
        }
        let is_blind = |item: &Item| item.look.is_none();
        tell_lacking(
            at,
            "documents have no vector of a picture",
            sources,
            is_blind,
        );
        tell_lacking(
            at,
            "references have no vector of a picture",
            others,
            is_blind,
        );
        return Ok(());
    }
    let stage = at.stage.clone();
    at.degrade(
        "stage",
        &stage,
        "the reference collection has no pictures with a model, so looks were not compared",
        "compare with a collection that has a picture feature",
    );
    Ok(())
}
