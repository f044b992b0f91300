//! What a look finds, and what is told of looks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Place;
use crate::harness::Server;

/// What is known is fetched once: as a file that is the same, and as one with the content of another.
pub(super) async fn known_content_makes_no_object(server: &Server, place: &Place, sync: &str) {
    // Nothing new: nothing is fetched, nothing is made.
    let same = place.look(server, sync).await;
    assert_eq!(
        (
            &same["stats"]["last_run_objects_synced"],
            &same["stats"]["last_run_objects_verified"]
        ),
        (&json!(0), &json!(4))
    );

    // The content of an object that is there makes none, and takes none along when it goes.
    place.put("in/1920/copy/letter 1920 c.txt", "dear you");
    let twin = place.look(server, sync).await;
    assert_eq!(
        (
            &twin["stats"]["last_run_objects_synced"],
            place.objects(server).await.len()
        ),
        (&json!(1), 4)
    );
    place
        .files
        .lock()
        .unwrap()
        .remove("in/1920/copy/letter 1920 c.txt");
    place.look(server, sync).await;
    assert_eq!(place.objects(server).await.len(), 4);
}

/// Looks are told, and one by one.
pub(super) async fn looks_are_told(server: &Server, place: &Place, sync: &str) {
    let jobs = place
        .call(
            server,
            "POST",
            &format!("{sync}/jobs?include_total=true&limit=2"),
            json!({"status": "completed"}),
        )
        .await;
    assert_eq!(
        (&jobs["total"], jobs["results"].as_array().unwrap().len()),
        (&json!(5), 2)
    );
    let job = &jobs["results"][0];
    assert_eq!(
        (
            &job["trigger"],
            &job["files_synced"],
            &job["metadata"]["files_removed"]
        ),
        (&json!("manual"), &json!(2), &json!(1)),
        "{job:#}"
    );
    let one = place
        .call(
            server,
            "GET",
            &format!("{sync}/jobs/{}", job["sync_job_id"].as_str().unwrap()),
            Value::Null,
        )
        .await;
    assert_eq!(one["status"], "completed");
    let listed = place
        .call(
            server,
            "POST",
            &format!("{}/list", place.path()),
            json!({"is_active": true}),
        )
        .await;
    assert_eq!(listed["results"].as_array().unwrap().len(), 1);
}

/// Waits until a collection has so many documents, which `path` counts.
pub(super) async fn documents_are(server: &Server, place: &Place, path: &str, count: i64) {
    let began = Instant::now();
    loop {
        let found = place.call(server, "GET", path, Value::Null).await;
        if found["count"] == count {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(180), "{found}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
