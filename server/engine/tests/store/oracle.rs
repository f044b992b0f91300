//! The exact store: everything in memory, every answer by looking at every document.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use loupe_engine::filter::{Filter, sort_values, value_at, values_at};
use loupe_engine::store::{Direction, Distance, Document, Reach, Sort, VectorSpec, view};
use loupe_wire::Value;

/// Documents by namespace and id.
#[derive(Default)]
pub struct Oracle {
    documents: BTreeMap<(String, String), Document>,
}

impl Oracle {
    pub fn upsert(&mut self, namespace: &str, documents: &[Document]) {
        for document in documents {
            let key = (namespace.to_owned(), document.document_id.clone());
            self.documents.insert(key, document.clone());
        }
    }

    pub fn delete(&mut self, namespace: &str, ids: &[String]) {
        for id in ids {
            self.documents.remove(&(namespace.to_owned(), id.clone()));
        }
    }

    /// By document id.
    pub fn matching(&self, reach: &Reach, filter: Option<&Filter>) -> Vec<&Document> {
        self.documents
            .iter()
            .filter(|((namespace, _), document)| {
                *namespace == reach.namespace_id
                    && reach.collection_ids.contains(&document.collection_id)
                    && reach
                        .principal
                        .as_ref()
                        .is_none_or(|p| allowed(document, p))
                    && filter.is_none_or(|filter| filter.matches(&view(document)))
            })
            .map(|(_, document)| document)
            .collect()
    }

    pub fn sorted(&self, reach: &Reach, filter: Option<&Filter>, sort: &Sort) -> Vec<&Document> {
        let mut found = self.matching(reach, filter);
        found.sort_by(|a, b| {
            let (a, b) = (view(a), view(b));
            let key = |view| value_at(view, &sort.field).filter(|v| !v.is_null());
            match (key(&a), key(&b)) {
                (None, None) => Ordering::Equal,
                (None, _) => Ordering::Greater,
                (_, None) => Ordering::Less,
                (a, b) if sort.direction == Direction::Descending => sort_values(b, a),
                (a, b) => sort_values(a, b),
            }
        });
        found
    }

    /// Ids and scores, best first.
    pub fn nearest(
        &self,
        reach: &Reach,
        filter: Option<&Filter>,
        spec: &VectorSpec,
        query: &[f32],
        limit: usize,
    ) -> Vec<(String, f32)> {
        let mut found: Vec<(String, f32)> = self
            .matching(reach, filter)
            .into_iter()
            .filter_map(|d| {
                Some((
                    d.document_id.clone(),
                    score(spec.distance, d.vectors.get(&spec.name)?, query),
                ))
            })
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        found.truncate(limit);
        found
    }

    pub fn facet(
        &self,
        reach: &Reach,
        filter: Option<&Filter>,
        field: &str,
    ) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for document in self.matching(reach, filter) {
            let view = view(document);
            let mut values: Vec<String> = values_at(&view, field)
                .into_iter()
                .flat_map(|v| {
                    v.as_array()
                        .map_or_else(|| vec![v], |items| items.iter().collect())
                })
                .filter(|v| !matches!(v, Value::Null | Value::Array(_) | Value::Object(_)))
                .map(Value::to_string)
                .collect();
            values.sort();
            values.dedup();
            for value in values {
                *counts.entry(value).or_default() += 1;
            }
        }
        counts
    }
}

fn allowed(document: &Document, principal: &str) -> bool {
    let acl = &document.payload["_internal"]["_acl"];
    let listed = |key: &str| {
        acl[key]
            .as_array()
            .is_some_and(|list| list.iter().any(|p| p == principal))
    };
    acl["public"] == true || acl["owner"] == principal || listed("read") || listed("write")
}

fn score(distance: Distance, a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    match distance {
        Distance::Cosine => dot(a, b) / (dot(a, a).sqrt() * dot(b, b).sqrt()),
        Distance::Dot => dot(a, b),
        Distance::Euclid => {
            1.0 / (1.0
                + a.iter()
                    .zip(b)
                    .map(|(x, y)| (x - y).powi(2))
                    .sum::<f32>()
                    .sqrt())
        }
    }
}
