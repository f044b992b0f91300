//! A hybrid search over chosen collections, written down for the owner: addresses of features are never typed.

use serde_json::{Value, json};

use crate::record::Record;

/// The features of `collections`, each once: those that words can be matched with, and those of pictures.
fn features(collections: &[Record]) -> (Vec<String>, Vec<String>) {
    let (mut words, mut pictures) = (Vec::new(), Vec::new());
    for collection in collections {
        for index in collection.list("vector_indexes") {
            let Some(uri) = index.opt("feature_uri") else {
                continue;
            };
            // What a picture classifier sees has no direction for words.
            let list = if uri.starts_with("loupe://image_extractor@") {
                &mut pictures
            } else {
                &mut words
            };
            if !list.contains(&uri) {
                list.push(uri);
            }
        }
    }
    (words, pictures)
}

/// Every feature of `collections`.
pub fn uris(collections: &[Record]) -> Vec<String> {
    let (words, pictures) = features(collections);
    [words, pictures].concat()
}

/// Stages that search by meaning and by letter, fused by rank; by likeness where only pictures are there.
pub fn stages(collections: &[Record]) -> Value {
    let (words, pictures) = features(collections);
    let text = json!({"input_mode": "text", "value": "{{INPUT.query}}"});
    let mut searches = Vec::new();
    for uri in &words {
        searches.push(json!({"feature_uri": uri, "query": text, "top_k": 100}));
    }
    if let Some(uri) = words.first() {
        searches.push(json!({"feature_uri": uri, "query": text, "lexical": true, "top_k": 50}));
    }
    if words.is_empty() {
        let like = json!({"input_mode": "document", "document_ref": {"document_id": "{{INPUT.similar_to}}"}});
        searches.extend(
            pictures
                .iter()
                .map(|uri| json!({"feature_uri": uri, "query": like, "top_k": 100})),
        );
    }
    if searches.is_empty() {
        return json!([]);
    }
    json!([{
        "stage_name": "search", "stage_type": "filter",
        "config": {"stage_id": "feature_search", "parameters": {"searches": searches, "fusion": "rrf", "final_top_k": 50}},
    }])
}

/// What the stages above ask for.
pub fn inputs(collections: &[Record]) -> Value {
    let (words, pictures) = features(collections);
    match (words.is_empty(), pictures.is_empty()) {
        (false, _) => {
            json!({"query": {"type": "string", "description": "What to look for", "required": true}})
        }
        (true, false) => {
            json!({"similar_to": {"type": "document_reference", "description": "A document whose like is wanted", "required": true}})
        }
        (true, true) => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use loupe_wire::{CollectionResponse, CollectionVectorIndex};

    use super::*;
    use crate::record::tests::sent;

    fn collection(uris: &[&str]) -> Record {
        let index = |uri: &&str| CollectionVectorIndex {
            feature_uri: Some(uri.to_string()),
            ..Default::default()
        };
        sent(&CollectionResponse {
            vector_indexes: uris.iter().map(index).collect(),
            ..Default::default()
        })
    }

    #[test]
    fn words_are_searched_by_meaning_and_by_letter() {
        let both = [
            collection(&["loupe://text_extractor@v1/a"]),
            collection(&["loupe://text_extractor@v1/a"]),
        ];
        let stages = stages(&both);
        let searches = stages[0]["config"]["parameters"]["searches"]
            .as_array()
            .expect("searches");
        assert_eq!(searches.len(), 2);
        assert_eq!(searches[1]["lexical"], true);
        assert!(inputs(&both).get("query").is_some());
    }

    #[test]
    fn pictures_alone_are_searched_by_likeness() {
        let one = [collection(&["loupe://image_extractor@v1/b"])];
        assert_eq!(
            stages(&one)[0]["config"]["parameters"]["searches"][0]["query"]["input_mode"],
            "document"
        );
        assert!(inputs(&one).get("similar_to").is_some());
        assert_eq!(stages(&[collection(&[])]), json!([]));
    }
}
