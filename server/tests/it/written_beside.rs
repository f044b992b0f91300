//! Documents that another process writes beside this one: no change is lost, and none is made of what is not so any more. What the
//! other one does is done by hand: it journals and tells of what the document store does not have yet.

use loupe_engine::store::{CollectionSpec, Document, Reach, WithVectors};
use loupe_server::{
    args,
    auth::{Caller, Scope, Write},
    db::Arg,
    v1::{
        collections::{self, COLLECTIONS},
        documents,
        namespaces::push_event,
    },
};
use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server},
};

const NAMESPACE: &str = "films";
const UPSERT: &str = "/v1/namespaces/films/documents/upsert";
const DOCUMENTS: &str = "/v1/collections/documents/documents";
const JOURNAL: &str = "INSERT INTO document_journal (seq, namespace_id, collection_id, operation, created_at, data) VALUES ($1, $2, $3, $4, $5, $6)";

/// One film under an id of its own.
struct Film {
    server: Server,
    org_id: String,
    spec: CollectionSpec,
    id: String,
}

impl Film {
    async fn new(server: Server) -> Self {
        server.app.journalled.share();
        let body = json!({"namespace_id": NAMESPACE, "vector_configs": [{"name": "plot", "dimension": 3}]});
        server
            .call("POST", "/v1/namespaces/standalone", body)
            .await
            .ok();
        let id = Self::send(&server, "first").await.ok()["document_ids"][0].clone();
        let me = server.call("GET", "/v1/me", Value::Null).await.ok();
        let collection = COLLECTIONS.find(server.app.db(), NAMESPACE, "documents");
        let spec = collections::spec(&server.app, NAMESPACE, &collection.await.unwrap());
        Self {
            org_id: me["organization_id"].as_str().unwrap().to_owned(),
            id: id.as_str().unwrap().to_owned(),
            server,
            spec,
        }
    }

    async fn send(server: &Server, title: &str) -> Answer {
        let film = json!({"document_id": "film", "vectors": {"plot": [1, 0, 0]}, "payload": {"title": title}});
        server
            .call("POST", UPSERT, json!({"documents": [film]}))
            .await
    }

    async fn call(&self, method: &str, body: Value) -> Answer {
        let path = format!("{DOCUMENTS}/{}", self.id);
        self.server.call_in(NAMESPACE, method, &path, body).await
    }

    /// What becomes of a member that is set in bulk.
    async fn set(&self, name: &str) -> Value {
        let update = json!({"document_id": self.id, "update_data": {name: true}});
        let path = format!("{DOCUMENTS}/batch");
        let body = json!({ "updates": [update] });
        let told = self.server.call_in(NAMESPACE, "POST", &path, body).await;
        told.ok()["results"][0].clone()
    }

    async fn stored(&self) -> Document {
        let reach = Reach {
            namespace_id: NAMESPACE.into(),
            collection_ids: vec![self.spec.collection_id.clone()],
            principal: None,
        };
        let ids = [self.id.clone()];
        let found = self.server.app.store().get(&reach, &ids, WithVectors::Yes);
        found.await.unwrap().pop().unwrap()
    }

    /// The document as another process writes it, with one member set.
    async fn theirs(&self, name: &str, value: Value) -> Value {
        let mut document = self.stored().await;
        document.payload.insert(name.to_owned(), value);
        json!({"operation": "upsert", "collection": self.spec, "documents": [document]})
    }

    fn removal(&self) -> Value {
        json!({
            "operation": "delete", "namespace_id": NAMESPACE, "collection_id": self.spec.collection_id,
            "document_ids": [self.id],
        })
    }

    /// Another process journals this and tells of it. It lives: nobody does its work for it, however long a busy machine takes.
    async fn journal(&self, entry: Value) {
        let app = &self.server.app;
        app.clock().hold();
        let (seq, now) = (app.next_journal_seq(), app.clock().micros());
        let (org_id, collection_id) = (self.org_id.clone(), self.spec.collection_id.clone());
        let told = json!({"collection_id": collection_id, "document_id": self.id});
        let (operation, kind) = match entry["operation"] == "delete" {
            true => ("delete", "document.deleted"),
            false => ("upsert", "document.updated"),
        };
        let write = app.db().write(move |tx| {
            Box::pin(async move {
                push_event(tx, &org_id, NAMESPACE, kind, told, now).await?;
                let args = args![
                    seq,
                    NAMESPACE,
                    collection_id,
                    operation,
                    now,
                    Arg::json(&entry)
                ];
                tx.run(JOURNAL, args).await
            })
        });
        write.await.unwrap();
    }

    async fn run(&self, statements: Vec<&'static str>) {
        let write = self.server.app.db().write(move |tx| {
            Box::pin(async move {
                for sql in statements {
                    tx.run(sql, vec![]).await?;
                }
                Ok(())
            })
        });
        write.await.unwrap();
    }

    /// Another process journals this right behind what this one does to the same document, and comes to the store first.
    async fn behind(&self, entry: Value) {
        documents::trim(&self.server.app).await.unwrap();
        self.journal(entry).await;
        let kept = "CREATE TABLE behind AS SELECT namespace_id, collection_id, operation, created_at, data FROM document_journal WHERE seq = (SELECT MAX(seq) FROM document_journal)";
        let mut statements = vec![kept, "DELETE FROM document_journal"];
        statements.extend(match self.server.app.db().is_postgres() {
            true => vec![
                "CREATE FUNCTION journal_behind() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO document_journal (seq, namespace_id, collection_id, operation, created_at, data) SELECT NEW.seq + 1, b.namespace_id, b.collection_id, b.operation, b.created_at, b.data FROM behind b WHERE b.operation <> NEW.operation; RETURN NULL; END'",
                "CREATE TRIGGER behind_it AFTER INSERT ON document_journal FOR EACH ROW EXECUTE FUNCTION journal_behind()",
            ],
            false => vec![
                "CREATE TRIGGER behind_it AFTER INSERT ON document_journal BEGIN INSERT INTO document_journal (seq, namespace_id, collection_id, operation, created_at, data) SELECT NEW.seq + 1, b.namespace_id, b.collection_id, b.operation, b.created_at, b.data FROM behind b WHERE b.operation <> NEW.operation; END",
            ],
        });
        self.run(statements).await;
    }
}

both! {
    async fn what_another_process_journalled_is_changed_and_kept(server) {
        let film = Film::new(server).await;
        film.journal(film.theirs("shelf", json!("top")).await).await;
        let changed = film.call("PATCH", json!({"title": "ours"})).await.ok();
        assert_eq!((&changed["title"], &changed["shelf"]), (&json!("ours"), &json!("top")), "{changed:#}");

        film.journal(film.theirs("shelf", json!("bottom")).await).await;
        let told = film.set("seen").await;
        assert_eq!(told["success"], true, "{told:#}");
        let shown = film.call("GET", Value::Null).await.ok();
        assert_eq!((&shown["title"], &shown["shelf"], &shown["seen"]), (&json!("ours"), &json!("bottom"), &json!(true)), "{shown:#}");

        // The other one comes to the store at last, with what it wrote first, and has not mended that yet.
        let mut late = film.stored().await;
        late.payload.retain(|name, _| name == "_internal" || name == "shelf");
        film.server.app.store().upsert(&film.spec, vec![late]).await.unwrap();
        let changed = film.call("PATCH", json!({"year": 1931})).await.ok();
        assert_eq!((&changed["title"], &changed["seen"], &changed["year"]), (&json!("ours"), &json!(true), &json!(1931)), "{changed:#}");
    }

    async fn what_a_batch_made_is_not_taken_back(server) {
        let film = Film::new(server).await;
        film.call("PATCH", json!({"title": "ours"})).await.ok();
        let mut made = film.stored().await;
        made.payload.insert("title".into(), json!("made"));
        film.server.app.store().upsert(&film.spec, vec![made]).await.unwrap();
        let changed = film.call("PATCH", json!({"year": 1931})).await.ok();
        assert_eq!((&changed["title"], &changed["year"]), (&json!("made"), &json!(1931)), "{changed:#}");
    }

    async fn what_another_process_removed_is_not_there_to_be_changed(server) {
        let film = Film::new(server).await;
        film.journal(film.removal()).await;
        film.call("PATCH", json!({"title": "ours"})).await.error(404, "NotFoundError");
        assert_eq!(film.set("seen").await["success"], false);
        // Whoever sends it again makes it anew.
        Film::send(&film.server, "again").await.ok();
        assert_eq!(film.server.events("document.created").await.len(), 2);
        assert_eq!(film.call("GET", Value::Null).await.ok()["title"], "again");
    }

    async fn what_is_sent_again_is_shared_as_another_process_says(server) {
        let film = Film::new(server).await;
        let mut theirs = film.theirs("title", json!("theirs")).await;
        let acl = json!({"read": ["ada"], "write": [], "public": true});
        theirs["documents"][0]["payload"]["_internal"]["_acl"] = acl.clone();
        film.journal(theirs).await;
        Film::send(&film.server, "again").await.ok();
        let shown = film.call("GET", Value::Null).await.ok();
        assert_eq!((&shown["title"], &shown["_internal"]["_acl"]), (&json!("again"), &acl), "{shown:#}");
    }

    async fn what_others_go_on_changing_is_not_written_over(server) {
        let film = Film::new(server).await;
        // As if another process told of the same document each time, right before this one does.
        let (begin, end) = match film.server.app.db().is_postgres() {
            true => (vec![
                "CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.seq < 1000000000 THEN INSERT INTO events (org_id, seq, namespace_id, event_type, operation, payload, created_at) VALUES (NEW.org_id, NEW.seq + 1000000000, NEW.namespace_id, NEW.event_type, NEW.operation, NEW.payload, NEW.created_at); END IF; RETURN NULL; END'",
                "CREATE TRIGGER telling AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION told()",
            ], "DROP TRIGGER telling ON events"),
            false => (vec![
                "CREATE TRIGGER telling AFTER INSERT ON events WHEN NEW.seq < 1000000000 BEGIN INSERT INTO events (org_id, seq, namespace_id, event_type, operation, payload, created_at) VALUES (NEW.org_id, NEW.seq + 1000000000, NEW.namespace_id, NEW.event_type, NEW.operation, NEW.payload, NEW.created_at); END",
            ], "DROP TRIGGER telling"),
        };
        film.run(begin).await;
        for refused in [film.call("PATCH", json!({"title": "ours"})).await, Film::send(&film.server, "again").await] {
            let refused = refused.error(409, "ConflictError");
            assert_eq!(refused["error"]["code"], "document_changed", "{refused:#}");
        }
        let told = film.set("seen").await;
        assert_eq!(told["success"], false, "{told:#}");
        assert!(told["error"].as_str().unwrap().contains("changed meanwhile"), "{told:#}");
        // Work of the server is tried again.
        let scope: Scope<Write> = Scope::internal(Caller::system(&film.org_id), NAMESPACE.to_owned());
        let change = |document: &mut Document| document.payload.insert("told".into(), json!(true)).is_none();
        let ids = [film.id.clone()];
        let refused = documents::rewrite(&film.server.app, &scope, &film.spec, &ids, &change).await;
        assert!(refused.unwrap_err().is_transient());
        film.run(vec![end]).await;
        let shown = film.call("GET", Value::Null).await.ok();
        assert_eq!((&shown["title"], shown.get("seen")), (&json!("first"), None), "{shown:#}");
        assert_eq!(film.set("seen").await["success"], true);
        assert_eq!(film.call("PATCH", json!({"title": "ours"})).await.ok()["title"], "ours");
    }

    async fn what_is_written_behind_a_removal_stays(server) {
        let film = Film::new(server).await;
        film.behind(film.theirs("title", json!("theirs")).await).await;
        film.call("DELETE", Value::Null).await.ok();
        assert_eq!(film.call("GET", Value::Null).await.ok()["title"], "theirs");
    }

    async fn what_is_removed_behind_a_document_that_is_sent_stays_away(server) {
        let film = Film::new(server).await;
        film.behind(film.removal()).await;
        Film::send(&film.server, "again").await.ok();
        film.call("GET", Value::Null).await.error(404, "NotFoundError");
    }
}
