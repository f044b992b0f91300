//! Texts that documents hold, embedded again: `reembed` of a collection's trigger.

use std::sync::{Arc, Mutex};

use axum::{Json, Router, extract::State, routing::post};
use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    harness::Server,
    machine::with_embedder,
};

const BREAD: &str = "Knead flour and yeast and bake the dough.";
const ICE: &str = "A slow river of ice carves the valley.";

struct Shelf {
    namespace: String,
    collection: String,
}

impl Shelf {
    /// A document with its vectors.
    async fn read(&self, server: &Server, id: &str) -> Value {
        let path = format!(
            "/v1/collections/{}/documents/{id}?return_vectors=true",
            self.collection
        );
        server
            .call_in(&self.namespace, "GET", &path, Value::Null)
            .await
            .ok()
    }

    async fn vector(&self, server: &Server, id: &str) -> Vec<f64> {
        let read = self.read(server, id).await;
        let vectors = read["vectors"].as_object().unwrap();
        let first = vectors.values().next();
        let numbers = first.and_then(Value::as_array).cloned();
        let numbers = numbers.unwrap_or_default();
        numbers.iter().filter_map(Value::as_f64).collect()
    }

    /// Embeds again; answers what the task tells.
    async fn reembed(&self, server: &Server, asked: Value) -> (Value, Value) {
        let path = format!("/v1/collections/{}/trigger", self.collection);
        let body = json!({ "reembed": asked });
        let begun = server.call_in(&self.namespace, "POST", &path, body).await;
        assert_eq!(begun.status, 202, "{:#}", begun.body);
        let task = server
            .task_end(begun.body["task_id"].as_str().unwrap())
            .await;
        assert_eq!(
            (&task["status"], &task["task_type"]),
            (&json!("COMPLETED"), &json!("api_collections_reembed")),
            "{task:#}"
        );
        let told = &task["outputs"][0];
        (told["documents"].clone(), told["embedded"].clone())
    }
}

/// A collection with a document of its caller, without vectors; answers that one's id, too.
async fn with_own_document(server: &Server) -> (Shelf, String) {
    let (namespace, _, collection) = library(server, "text_extractor", "text").await;
    let documents = format!("/v1/collections/{collection}/documents");
    let own = json!({"title": "own", "text": BREAD});
    let own = server
        .call_in(&namespace, "POST", &documents, own)
        .await
        .ok();
    let id = own["document_id"].as_str().unwrap().to_owned();
    let shelf = Shelf {
        namespace,
        collection,
    };
    (shelf, id)
}

/// How near two vectors of length 1 are.
fn likeness(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// A model that tells texts apart by their first letters. Before it answers it sends what a test wants sent meanwhile.
#[derive(Clone, Default)]
struct Model(Arc<Mutex<Option<reqwest::RequestBuilder>>>);

async fn embed(State(model): State<Model>, Json(body): Json<Value>) -> Json<Value> {
    let meanwhile = model.0.lock().unwrap().take();
    if let Some(request) = meanwhile {
        Server::send(request).await.ok();
    }
    let texts = body["inputs"].as_array().unwrap().iter();
    let vectors = texts.map(|text| {
        let mut vector = vec![0.0; 384];
        vector[place(text.as_str().unwrap())] = 1.0;
        vector
    });
    Json(vectors.collect())
}

/// Where the vector of a text is not zero.
fn place(text: &str) -> usize {
    usize::from(text.as_bytes()[0])
}

/// The server again, with the model.
async fn with_model(server: Server) -> (Server, Model) {
    let model = Model::default();
    let router = Router::new()
        .route("/embed", post(embed))
        .with_state(model.clone());
    (with_embedder(server, router).await, model)
}

both! {
    async fn what_is_changed_while_texts_are_embedded_stays(server) {
        let (server, model) = with_model(server).await;
        let (shelf, id) = with_own_document(&server).await;
        let (id, path) = (id.as_str(), format!("/v1/collections/{}/documents/{id}", shelf.collection));
        let meanwhile = |change: Value| {
            let request = server.request("PATCH", &path).bearer_auth(&server.key);
            let request = request.header("x-namespace", &shelf.namespace).json(&change);
            *model.0.lock().unwrap() = Some(request);
        };
        // Another text is the one that is embedded.
        meanwhile(json!({"text": ICE}));
        assert_eq!(shelf.reembed(&server, json!({})).await, (json!(1), json!(1)));
        let (kept, vector) = (shelf.read(&server, id).await, shelf.vector(&server, id).await);
        assert_eq!((&kept["title"], &kept["text"]), (&json!("own"), &json!(ICE)), "{kept:#}");
        assert!((vector[place(ICE)] - 1.0).abs() < 1e-6, "{vector:?}");
        // Another field is kept beside the vector.
        server.call_in(&shelf.namespace, "PATCH", &path, json!({"text": BREAD})).await.ok();
        meanwhile(json!({"title": "other"}));
        assert_eq!(shelf.reembed(&server, json!({"only_missing": false})).await, (json!(1), json!(1)));
        let (kept, vector) = (shelf.read(&server, id).await, shelf.vector(&server, id).await);
        assert_eq!((&kept["title"], &kept["text"]), (&json!("other"), &json!(BREAD)), "{kept:#}");
        assert!((vector[place(BREAD)] - 1.0).abs() < 1e-6, "{vector:?}");
        // One that is removed does not come back.
        *model.0.lock().unwrap() = Some(server.request("DELETE", &path).bearer_auth(&server.key).header("x-namespace", &shelf.namespace));
        assert_eq!(shelf.reembed(&server, json!({"only_missing": false})).await, (json!(1), json!(0)));
        server.call_in(&shelf.namespace, "GET", &path, Value::Null).await.error(404, "NotFoundError");
    }

    /// Each keeps what the others set, and the vector.
    async fn changes_that_come_while_texts_are_embedded_are_all_kept(server) {
        let (shelf, id) = with_own_document(&server).await;
        let (id, path) = (id.as_str(), format!("/v1/collections/{}/documents/{id}", shelf.collection));
        let changes = async {
            for number in 0..40 {
                let change = json!({ format!("field_{number}"): number });
                server.call_in(&shelf.namespace, "PATCH", &path, change).await.ok();
            }
        };
        let embeddings = async {
            for _ in 0..4 {
                shelf.reembed(&server, json!({"only_missing": false})).await;
            }
        };
        tokio::join!(changes, embeddings);
        let kept = shelf.read(&server, id).await;
        for number in 0..40 {
            assert_eq!(kept[format!("field_{number}")], json!(number), "{kept:#}");
        }
        assert!(!shelf.vector(&server, id).await.is_empty());
    }

    async fn texts_that_changed_or_have_no_vectors_are_embedded_again(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        for (title, text) in [("bread", BREAD), ("ice", ICE)] {
            let text = json!({"property": "text", "type": "text", "data": text});
            object(&server, &namespace, &bucket, title, text).await;
        }
        process(&server, &namespace, &bucket).await;
        let shelf = Shelf { namespace, collection };
        let documents = format!("/v1/collections/{}/documents", shelf.collection);
        let list = json!({"sort": {"field": "title", "direction": "asc"}});
        let made = server.call_in(&shelf.namespace, "POST", &format!("{documents}/list"), list).await.ok();
        let [bread, ice] = [0, 1].map(|number| made["results"][number]["document_id"].as_str().unwrap().to_owned());
        let (of_bread, of_ice) = (shelf.vector(&server, &bread).await, shelf.vector(&server, &ice).await);
        assert!(likeness(&of_bread, &of_ice) < 0.9);

        // A change of the text leaves the vector as it was.
        let path = format!("{documents}/{bread}");
        server.call_in(&shelf.namespace, "PATCH", &path, json!({"text": ICE})).await.ok();
        assert_eq!(shelf.vector(&server, &bread).await, of_bread);
        // Both have vectors: only what is missing is embedded unless told otherwise, and counting changes nothing.
        assert_eq!(shelf.reembed(&server, json!({})).await, (json!(0), json!(0)));
        assert_eq!(shelf.reembed(&server, json!({"only_missing": false, "dry_run": true})).await, (json!(2), json!(0)));
        assert_eq!(shelf.vector(&server, &bread).await, of_bread);
        // Nobody speaks in them.
        let spoken = json!({"only_missing": false, "outputs": ["transcription_embedding"]});
        assert_eq!(shelf.reembed(&server, spoken).await, (json!(0), json!(0)));
        assert_eq!(shelf.reembed(&server, json!({"only_missing": false, "document_ids": [bread, "doc_unknown"]})).await, (json!(1), json!(1)));
        let now = shelf.vector(&server, &bread).await;
        assert!(likeness(&now, &of_ice) > 0.999, "{}", likeness(&now, &of_ice));
        let kept = shelf.read(&server, &bread).await;
        assert_eq!((&kept["title"], &kept["text"]), (&json!("bread"), &json!(ICE)), "{kept:#}");
        let told = server.events("document.updated").await;
        assert_eq!(told.len(), 2, "the change, and the vector: {told:#?}");

        // A document of a caller comes without vectors.
        let own = server.call_in(&shelf.namespace, "POST", &documents, json!({"title": "own", "text": ICE})).await.ok();
        let own = own["document_id"].as_str().unwrap();
        assert_eq!(shelf.vector(&server, own).await, Vec::<f64>::new());
        let uri = "loupe://text_extractor@v1/all_minilm_l6_v2_v1";
        assert_eq!(shelf.reembed(&server, json!({"target_feature_uri": uri})).await, (json!(1), json!(1)));
        assert!(likeness(&shelf.vector(&server, own).await, &of_ice) > 0.999);
    }

    async fn what_cannot_be_embedded_again_is_refused(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let trigger = async |collection: &str, body: Value| {
            server.call_in(&namespace, "POST", &format!("/v1/collections/{collection}/trigger"), body).await
        };
        for (asked, member) in [
            (json!({"outputs": ["pictures"]}), "outputs"),
            (json!({"target_feature_uri": "loupe://text_extractor@v1/other"}), "target_feature_uri"),
        ] {
            trigger(&collection, json!({ "reembed": asked })).await.invalid(&["body", "reembed", member], "value_error");
        }
        trigger(&collection, json!({"reembed": {"document_ids": []}})).await.invalid(&["body", "reembed", "document_ids"], "too_short");
        trigger(&collection, json!({"reembed": {}, "object_ids": ["obj_1"]})).await.invalid(&["body", "object_ids"], "value_error");
        let passed = json!({"collection_name": "passed", "source": {"type": "bucket", "bucket_ids": [bucket]},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        server.call_in(&namespace, "POST", "/v1/collections", passed).await.ok();
        trigger("passed", json!({"reembed": {}})).await.invalid(&["body", "reembed", "target_feature_uri"], "value_error");
        // That of another namespace, or none: the same answer.
        let other = server.namespace("other").await;
        server.call_in(&other, "POST", &format!("/v1/collections/{collection}/trigger"), json!({"reembed": {}})).await.error(404, "NotFoundError");
    }
}
