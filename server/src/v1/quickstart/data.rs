//! The demo's data: the repository's folder `demo/`, inside the program.

use base64::{Engine, engine::general_purpose::STANDARD};
use loupe_wire::{CreateObjectRequest, Object, Value, reading};
use rust_embed::RustEmbed;
use serde::Deserialize;
use serde_json::json;

use crate::error::{ApiError, Result};

/// The licences of the data stay beside it.
#[derive(RustEmbed)]
#[folder = "../demo"]
struct Files;

/// One line of `objects.jsonl`.
#[derive(Debug, Deserialize)]
struct Line {
    id: String,
    title: String,
    description: String,
    kind: String,
    tags: Vec<String>,
    also_called: Vec<String>,
    picture: String,
    /// Members that the objects keep as they are.
    #[serde(flatten)]
    rest: Object,
}

impl Line {
    /// What is embedded: the description alone often does not name its subject.
    fn words(&self) -> String {
        let mut words = format!("{}. {}", self.title, self.description);
        if !self.also_called.is_empty() {
            words += &format!(" Also called {}.", self.also_called.join(", "));
        }
        let kinds: Vec<&str> = std::iter::once(self.kind.as_str())
            .chain(
                self.tags
                    .iter()
                    .map(String::as_str)
                    .filter(|tag| *tag != self.kind),
            )
            .take(4)
            .collect();
        words + &format!(" A kind of {}.", kinds.join(", "))
    }

    fn request(self) -> Result<CreateObjectRequest> {
        let file = Files::get(&self.picture)
            .ok_or_else(|| ApiError::internal(format!("the demo has no file {}", self.picture)))?;
        let filename = self.picture.rsplit('/').next().unwrap_or_default();
        let mut object = json!({
            "words": self.words(),
            "slug": self.id, "title": self.title, "description": self.description, "kind": self.kind,
            "tags": self.tags, "also_called": self.also_called,
            "blobs": [{
                "property": "picture", "type": "image", "data": STANDARD.encode(&file.data),
                "metadata": {"filename": filename},
            }],
        });
        if let Some(members) = object.as_object_mut() {
            members.extend(self.rest);
        }
        reading::from_value(&object).map_err(ApiError::internal)
    }
}

fn lines() -> Result<Vec<Line>> {
    let file = Files::get("objects.jsonl")
        .ok_or_else(|| ApiError::internal("the demo has no objects.jsonl"))?;
    let text = std::str::from_utf8(&file.data).map_err(ApiError::internal)?;
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| reading::from_str(line).map_err(ApiError::internal))
        .collect()
}

/// How many objects the demo has.
pub fn count() -> Result<usize> {
    lines().map(|lines| lines.len())
}

/// The objects, ready to be sent to the bucket. Blocking: reads and encodes every picture.
pub fn objects() -> Result<Vec<CreateObjectRequest>> {
    lines()?.into_iter().map(Line::request).collect()
}

/// Reads a literal of this module as a request.
pub fn request<T: serde::de::DeserializeOwned>(literal: Value) -> Result<T> {
    reading::from_value(&literal).map_err(ApiError::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_has_a_picture_and_words_of_its_own() {
        let objects = objects().unwrap();
        assert_eq!(objects.len(), count().unwrap());
        assert!(objects.len() > 200);
        let mut words: Vec<&str> = objects
            .iter()
            .map(|one| one.extra["words"].as_str().unwrap())
            .collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), objects.len());
        for object in &objects {
            let data = object.blobs.as_ref().unwrap()[0]
                .data
                .as_ref()
                .unwrap()
                .as_str()
                .unwrap();
            assert!(
                data.starts_with("/9j/"),
                "a JPEG: {}",
                object.extra["title"]
            );
        }
    }
}
