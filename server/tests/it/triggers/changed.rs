//! Triggers that are changed: what begins anew with that, and what each firing is told of.

use serde_json::{Value, json};

use super::{counted, executed, id, make, search, write};
use crate::{both, harness::retriever};

both! {
    async fn another_schedule_begins_at_once_where_it_says_so(server) {
        let (namespace, retriever) = retriever(&server, "begun").await;
        let id = id(&make(&server, &namespace, search(&retriever, "interval", json!({"interval_seconds": 86_400}))).await);
        let path = format!("/v1/triggers/{id}");
        let patch = async || {
            let schedule = json!({"interval_seconds": 43_200, "start_immediately": true});
            server.call_in(&namespace, "PATCH", &path, json!({"schedule_config": schedule})).await.ok();
            loupe_server::v1::triggers::tick(&server.app).await.unwrap();
            executed(&server, &namespace, &id, 1).await
        };
        patch().await;
        // The same again is no other one.
        let same = patch().await;
        assert_eq!(same["schedule_config"]["start_immediately"], true);
    }

    async fn a_trigger_that_is_set_active_again_has_its_patience_again(server) {
        let (namespace, retriever) = retriever(&server, "patient").await;
        let mut body = search(&retriever, "interval", json!({"interval_seconds": 60}));
        body["action_config"]["acceptance"] = json!({"min_results": 1});
        let id = id(&make(&server, &namespace, body).await);
        let path = format!("/v1/triggers/{id}");
        let mut last = Value::Null;
        for count in 1..=5 {
            server.app.clock().advance(61);
            last = executed(&server, &namespace, &id, count).await;
        }
        assert_eq!((&last["status"], &last["consecutive_failures"]), (&json!("failed"), &json!(5)), "{last:#}");
        let again = server.call_in(&namespace, "PATCH", &path, json!({"status": "active"})).await.ok();
        assert_eq!((&again["status"], &again["consecutive_failures"]), (&json!("active"), &json!(0)), "{again:#}");
        server.app.clock().advance(61);
        let failed = executed(&server, &namespace, &id, 6).await;
        assert_eq!((&failed["status"], &failed["consecutive_failures"]), (&json!("active"), &json!(1)), "{failed:#}");
    }

    async fn what_waits_for_the_end_of_a_cooldown_waits_over_a_pause(server) {
        let (namespace, retriever) = retriever(&server, "resting").await;
        let schedule = json!({"event_type": "document.created", "cooldown_seconds": 600});
        let id = id(&make(&server, &namespace, search(&retriever, "event", schedule)).await);
        let path = format!("/v1/triggers/{id}");
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await.ok();
        write(&server, &namespace, "one").await;
        let first = executed(&server, &namespace, &id, 1).await;
        write(&server, &namespace, "two").await;
        let waiting = counted(&server, &namespace, &id, 1).await;
        let (pause, resume) = (format!("{path}/pause"), format!("{path}/resume"));
        let by_request = [("POST", pause.as_str(), Value::Null), ("POST", resume.as_str(), Value::Null)];
        let by_change = [("PATCH", path.as_str(), json!({"status": "paused"})), ("PATCH", path.as_str(), json!({"status": "active"}))];
        for [off, on] in [by_request, by_change] {
            assert_eq!(call(off.0, off.1, off.2).await["next_scheduled_at"], Value::Null);
            let again = call(on.0, on.1, on.2).await;
            assert_eq!((&again["event_counter"], &again["next_scheduled_at"]), (&json!(1), &waiting["next_scheduled_at"]), "{again:#}");
        }
        // It fires without another event, and rests again.
        server.app.clock().advance(601);
        let second = executed(&server, &namespace, &id, 2).await;
        assert_ne!(second["last_cooldown_at"], first["last_cooldown_at"], "{second:#}");
        // A cooldown that ends in the pause has ended.
        write(&server, &namespace, "three").await;
        counted(&server, &namespace, &id, 1).await;
        call("POST", &pause, Value::Null).await;
        server.app.clock().advance(601);
        call("POST", &resume, Value::Null).await;
        executed(&server, &namespace, &id, 3).await;
    }

    async fn each_firing_is_told_of_as_itself(server) {
        let (namespace, retriever) = retriever(&server, "together").await;
        let id = id(&make(&server, &namespace, search(&retriever, "cron", json!({"cron": "0 0 1 1 *"}))).await);
        let path = format!("/v1/triggers/{id}/execute");
        let fired = (0..4).map(|_| server.call_in(&namespace, "POST", &path, Value::Null));
        let fired = futures::future::join_all(fired).await;
        let mut tasks: Vec<Value> = fired.into_iter().map(|task| task.ok()["task_id"].clone()).collect();
        for task in &tasks {
            let ended = server.task_end(task.as_str().unwrap()).await;
            assert_eq!(ended["status"], "COMPLETED", "{ended:#}");
        }
        let told = server.events("trigger.execution.completed").await.into_iter();
        let mut told: Vec<Value> = told.map(|event| event["payload"]["task_id"].clone()).collect();
        told.sort_by_key(Value::to_string);
        tasks.sort_by_key(Value::to_string);
        assert_eq!(told, tasks);
        let last = executed(&server, &namespace, &id, 4).await;
        assert!(tasks.contains(&last["last_execution_task_id"]), "{last:#}");
        assert_eq!(last["last_execution_status"], "COMPLETED", "{last:#}");
    }
}
