//! Which collections a batch fills, tier by tier: those over its objects first, then those over what these hold, and so
//! on.

use std::collections::{BTreeMap, BTreeSet};

use loupe_wire::{CollectionResponse, ExtractorJobInfo, SourceType, TaskStatusEnum, TierTaskInfo};

use crate::{
    app::App,
    error::{ApiError, Result},
    v1::collections::{
        COLLECTIONS,
        lifecycle::{is_active, is_away},
    },
};

/// The collections that a collection reads.
fn sources(collection: &CollectionResponse) -> &[String] {
    match collection.source.r#type {
        SourceType::Collection => collection.source.collection_ids.as_deref().unwrap_or(&[]),
        _ => &[],
    }
}

fn id(collection: &CollectionResponse) -> &str {
    collection.collection_id.as_deref().unwrap_or_default()
}

/// Whether objects of the bucket come into the collection: at once, or over other collections.
fn is_over(collection: &CollectionResponse, bucket_id: &str) -> bool {
    let source = &collection.source;
    let named = source.bucket_ids.iter().chain(&source.inherited_bucket_ids);
    named.flatten().any(|id| id == bucket_id)
}

/// The tiers of a batch of a bucket: the collections named, else every enabled one over the bucket, and every enabled one
/// over those.
///
/// # Errors
/// 404 for a collection that is not there, 400 when none would be filled.
pub async fn of_bucket(
    app: &App,
    namespace_id: &str,
    bucket_id: &str,
    named: Option<&Vec<String>>,
) -> Result<Vec<Vec<CollectionResponse>>> {
    let all = filled(app, namespace_id).await?;
    let first: Vec<CollectionResponse> = match named {
        Some(named) => {
            let named = find(app, namespace_id, named, &all).await?.into_iter();
            named.filter(|one| is_over(one, bucket_id)).collect()
        }
        None => {
            let direct = |one: &&CollectionResponse| {
                one.source.r#type == SourceType::Bucket && is_over(one, bucket_id)
            };
            all.iter().filter(direct).cloned().collect()
        }
    };
    if first.is_empty() {
        let message = "no enabled collection has this bucket as its source: make one first";
        return Err(ApiError::bad_request("", message).with("bucket_id", bucket_id));
    }
    Ok(arrange(first, &all))
}

/// The tiers of a batch of documents that these collections read, and every enabled collection over them.
///
/// # Errors
/// 404 for a collection that is not there, 400 when none would be filled.
pub async fn of_collections(
    app: &App,
    namespace_id: &str,
    named: &[String],
) -> Result<Vec<Vec<CollectionResponse>>> {
    let all = filled(app, namespace_id).await?;
    let first = find(app, namespace_id, named, &all).await?;
    if first.is_empty() {
        let message = "the collection is disabled, or a collection that it reads is archived: enable it, or bring that back first";
        return Err(ApiError::bad_request("", message));
    }
    Ok(arrange(first, &all))
}

/// The collections that batches fill: enabled and active ones, whose sources can be read. One over a source that is put
/// away would lose what was made of it.
async fn filled(app: &App, namespace_id: &str) -> Result<Vec<CollectionResponse>> {
    let all = COLLECTIONS.all(app.db(), namespace_id).await?;
    let away = all.iter().filter(|one| is_away(one));
    let away: BTreeSet<String> = away.map(|one| one.id.clone()).collect();
    let takes = |one: &CollectionResponse| {
        one.enabled && is_active(one) && !sources(one).iter().any(|id| away.contains(id))
    };
    let all = all.into_iter().map(|record| record.data.0);
    Ok(all.filter(takes).collect())
}

/// Those of these ids that collections of the namespace have still.
///
/// # Errors
/// The database does not answer.
pub async fn left(app: &App, namespace_id: &str, mut ids: Vec<String>) -> Result<Vec<String>> {
    let all = COLLECTIONS.all(app.db(), namespace_id).await?;
    ids.retain(|id| all.iter().any(|one| one.id == *id));
    Ok(ids)
}

/// Those of the named ones that are filled, each once.
async fn find(
    app: &App,
    namespace_id: &str,
    named: &[String],
    filled: &[CollectionResponse],
) -> Result<Vec<CollectionResponse>> {
    let mut found: Vec<CollectionResponse> = Vec::new();
    for identifier in named {
        let record = COLLECTIONS.find(app.db(), namespace_id, identifier).await?;
        let takes = filled.iter().any(|one| id(one) == record.id);
        if takes && found.iter().all(|other| id(other) != record.id) {
            found.push(record.data.0);
        }
    }
    Ok(found)
}

/// Every one after all that it reads of the others.
fn arrange(
    first: Vec<CollectionResponse>,
    all: &[CollectionResponse],
) -> Vec<Vec<CollectionResponse>> {
    let mut taken = first;
    loop {
        let over = |one: &&CollectionResponse| {
            let reads = |other: &CollectionResponse| sources(one).iter().any(|s| s == id(other));
            taken.iter().all(|other| id(other) != id(one)) && taken.iter().any(reads)
        };
        let more: Vec<CollectionResponse> = all.iter().filter(over).cloned().collect();
        if more.is_empty() {
            break;
        }
        taken.extend(more);
    }
    // A circle, which no collection can be made into, would end here with as many tiers as collections.
    let mut tiers: BTreeMap<&str, usize> = taken.iter().map(|one| (id(one), 0)).collect();
    for _ in 0..taken.len() {
        for one in &taken {
            let below = sources(one).iter().filter_map(|s| tiers.get(s.as_str()));
            let tier = below.map(|tier| tier + 1).max().unwrap_or(0);
            tiers.insert(id(one), tier.min(taken.len() - 1));
        }
    }
    let count = tiers.values().max().map_or(0, |last| last + 1);
    let of_tier = |tier: usize| {
        let members = taken.iter().filter(|one| tiers.get(id(one)) == Some(&tier));
        members.cloned().collect::<Vec<_>>()
    };
    (0..count)
        .map(of_tier)
        .filter(|tier| !tier.is_empty())
        .collect()
}

/// The ids, tier by tier.
pub fn ids(tiers: &[Vec<CollectionResponse>]) -> Vec<Vec<String>> {
    let of = |tier: &Vec<CollectionResponse>| tier.iter().map(|one| id(one).to_owned()).collect();
    tiers.iter().map(of).collect()
}

/// The tiers as a batch shows them before they run.
pub fn shown(tiers: &[Vec<CollectionResponse>], task_id: &str) -> Vec<TierTaskInfo> {
    let tiers = (0..).zip(tiers);
    tiers
        .map(|(tier_num, collections)| {
            let mut read: Vec<String> = Vec::new();
            for source in collections.iter().flat_map(sources) {
                if !read.contains(source) {
                    read.push(source.clone());
                }
            }
            TierTaskInfo {
                tier_num,
                task_id: Some(task_id.to_owned()),
                status: match tier_num {
                    0 => TaskStatusEnum::Queued,
                    _ => TaskStatusEnum::Pending,
                },
                collection_ids: collections.iter().map(|one| id(one).to_owned()).collect(),
                extractor_jobs: collections.iter().map(job).collect(),
                source_type: if read.is_empty() {
                    "bucket"
                } else {
                    "collection"
                }
                .into(),
                source_collection_ids: (!read.is_empty()).then_some(read),
                ..Default::default()
            }
        })
        .collect()
}

fn job(collection: &CollectionResponse) -> ExtractorJobInfo {
    let extractor = &collection.feature_extractor;
    ExtractorJobInfo {
        extractor_type: extractor.feature_extractor_name.clone(),
        extractor_id: Some(extractor.feature_extractor_id.clone()),
        collection_ids: vec![id(collection).to_owned()],
        // By this name a job is canceled.
        ray_job_id: Some(crate::id::new("job_")),
        status: TaskStatusEnum::Queued,
        documents_written: Some(0),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn collection(id: &str, sources: &[&str]) -> CollectionResponse {
        let source = match sources {
            [] => json!({"type": "bucket", "bucket_ids": ["bkt_1"]}),
            _ => json!({"type": "collection", "collection_ids": sources}),
        };
        let extractor = json!({
            "feature_extractor_name": "text_extractor", "version": "v1", "feature_extractor_id": "text_extractor_v1",
        });
        serde_json::from_value(json!({
            "collection_id": id, "collection_name": id, "source": source, "feature_extractor": extractor,
        }))
        .unwrap()
    }

    #[test]
    fn a_collection_comes_after_all_that_it_reads() {
        let all = [
            collection("summaries", &["chunks", "pages"]),
            collection("chunks", &["pages"]),
            collection("pages", &[]),
            collection("apart", &["elsewhere"]),
            collection("others", &[]),
        ];
        let tiers = ids(&arrange(vec![all[2].clone()], &all));
        assert_eq!(tiers, [["pages"], ["chunks"], ["summaries"]]);
        let tiers = ids(&arrange(vec![all[4].clone(), all[2].clone()], &all));
        assert_eq!(tiers[0], ["others", "pages"]);
        // Named by itself it is the first tier, and what reads it comes after.
        let tiers = ids(&arrange(vec![all[1].clone()], &all));
        assert_eq!(tiers, [["chunks"], ["summaries"]]);
    }

    #[test]
    fn a_circle_ends() {
        let all = [collection("a", &["b"]), collection("b", &["a"])];
        let tiers = ids(&arrange(vec![all[0].clone()], &all));
        assert_eq!(tiers.iter().flatten().count(), 2, "{tiers:?}");
    }
}
