//! What of a batch's objects is in no document: counted by its jobs, told with the batch, its task and its log.

use std::collections::BTreeMap;

use loupe_engine::extract::Dropped;
use loupe_wire::{BatchModel, ExtractorJobInfo, Object};
use serde_json::json;

use super::store::ObjectEnd;

/// Objects that a job tells of by name; the batch's log has them all.
const NAMED: usize = 50;
/// Bytes of what is noted with one object.
const LONGEST: usize = 1_000;

/// What a collection holds nothing of.
#[derive(Debug, Clone)]
pub struct LeftOut {
    pub collection_id: String,
    pub object_id: String,
    pub what: Dropped,
}

/// Notes with a completed object what was left out of it.
pub fn tell(object: &mut ObjectEnd, what: &Dropped) {
    if object.status != "COMPLETED" {
        return;
    }
    let told = what.told();
    // What has a type besides is a note that stays.
    let before = object.error.take().filter(|_| object.error_type.is_some());
    object.error = Some(match before {
        Some(before) if before.len() > LONGEST => before,
        Some(before) => format!("{before}; {told}"),
        None => told,
    });
    object.error_type.get_or_insert_with(|| "permanent".into());
}

/// Adds what a chunk of a tier left out to the jobs that did.
pub(super) fn note(batch: &mut BatchModel, tier: i64, left_out: &[LeftOut]) {
    for one in left_out {
        let tiers = batch.tier_tasks.iter_mut();
        let jobs = tiers
            .filter(|running| running.tier_num == tier)
            .flat_map(|running| &mut running.extractor_jobs);
        for job in jobs.filter(|job| job.collection_ids.contains(&one.collection_id)) {
            count(job, one);
        }
    }
}

fn count(job: &mut ExtractorJobInfo, one: &LeftOut) {
    for (reason, more) in &one.what.pages {
        let counted = job.pages_dropped_reasons.entry(reason.clone());
        *counted.or_insert(0) += more;
        *job.pages_dropped.get_or_insert(0) += more;
    }
    for (reason, more) in &one.what.segments {
        let counted = job.segments_dropped_reasons.entry(reason.clone());
        *counted.or_insert(0) += more;
        *job.segments_dropped.get_or_insert(0) += more;
    }
    let warnings = &mut job.warnings;
    match warnings.len() {
        0..NAMED => warnings.push(format!("object {}: {}", one.object_id, one.what.told())),
        NAMED => warnings.push("more objects are told of in the batch's logs".into()),
        _ => {}
    }
}

/// Pages and segments that the jobs of a batch left out.
fn of(batch: &BatchModel) -> Dropped {
    let mut all = Dropped::default();
    let tiers = batch.tier_tasks.iter();
    for job in tiers.flat_map(|tier| &tier.extractor_jobs) {
        for (reason, more) in &job.pages_dropped_reasons {
            *all.pages.entry(reason.clone()).or_default() += more;
        }
        for (reason, more) in &job.segments_dropped_reasons {
            *all.segments.entry(reason.clone()).or_default() += more;
        }
    }
    all
}

/// Shows with a batch what its jobs left out; answers it in words for people.
pub(super) fn show(batch: &mut BatchModel) -> Vec<String> {
    let all = of(batch);
    if all.is_empty() {
        return Vec::new();
    }
    let told = all.told();
    let sum =
        |counts: &BTreeMap<String, i64>| (!counts.is_empty()).then(|| counts.values().sum::<i64>());
    batch.pages_dropped = sum(&all.pages);
    batch.segments_dropped = sum(&all.segments);
    batch.pages_dropped_reasons = all.pages.into_iter().collect();
    batch.segments_dropped_reasons = all.segments.into_iter().collect();
    vec![told]
}

/// The same for the batch's task.
pub(super) fn shown(batch: &BatchModel) -> Object {
    let all = of(batch);
    let mut shown = Object::new();
    for (name, counts) in [
        ("pages_dropped", &all.pages),
        ("segments_dropped", &all.segments),
    ] {
        if !counts.is_empty() {
            let sum: i64 = counts.values().sum();
            shown.insert(name.into(), sum.into());
            shown.insert(format!("{name}_reasons"), json!(counts));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use loupe_wire::TierTaskInfo;

    use super::*;

    fn left_out(object: usize, pages: usize) -> LeftOut {
        let mut what = Dropped::default();
        what.add_pages("unreadable", pages);
        what.add_others("thumbnails", 1);
        LeftOut {
            collection_id: "col_1".into(),
            object_id: format!("obj_{object}"),
            what,
        }
    }

    #[test]
    fn what_is_left_out_is_summed_over_the_jobs_of_its_collection() {
        let job = |collection: &str| ExtractorJobInfo {
            collection_ids: vec![collection.into()],
            ..Default::default()
        };
        let mut batch = BatchModel {
            tier_tasks: vec![TierTaskInfo {
                extractor_jobs: vec![job("col_1"), job("col_2")],
                ..Default::default()
            }],
            ..Default::default()
        };
        assert!(show(&mut batch).is_empty());
        assert!(shown(&batch).is_empty());
        let all: Vec<LeftOut> = (0..NAMED + 9).map(|one| left_out(one, 2)).collect();
        note(&mut batch, 0, &all);
        note(&mut batch, 1, &all);
        let sum = 2 * i64::try_from(all.len()).unwrap();
        let jobs = &batch.tier_tasks[0].extractor_jobs;
        assert_eq!(jobs[0].pages_dropped, Some(sum));
        assert_eq!(
            jobs[0].warnings[0],
            "object obj_0: left out: 2 pages (unreadable), 1 thumbnails"
        );
        assert_eq!(jobs[0].warnings.len(), NAMED + 1, "the last says so");
        assert_eq!((jobs[1].pages_dropped, jobs[1].warnings.len()), (None, 0));
        assert_eq!(
            show(&mut batch),
            [format!("left out: {sum} pages (unreadable)")]
        );
        assert_eq!(
            (batch.pages_dropped, batch.segments_dropped),
            (Some(sum), None)
        );
        assert_eq!(shown(&batch)["pages_dropped_reasons"]["unreadable"], sum);
    }
}
