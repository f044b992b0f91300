//! Changes of documents. Each is read as it was journalled last, changed and written back whole in one turn, so nobody of this
//! process writes it in between; whoever finds that another process did reads it again.

use loupe_engine::store::{CollectionSpec, Document, WithVectors};
use loupe_wire::{
    CollectionResponse, DocumentPatchRequest, DocumentReplaceRequest, NamespaceOperation, Object,
    UpdateDocumentACLRequest, Value,
};

use super::{
    checking, files,
    keeping::without_nul,
    noted::Noted,
    others, sharing,
    writing::{Beside, CHANGED, SYSTEM, check_id, save},
};
use crate::{
    app::App,
    auth::{Level, Scope, Write},
    db::Record,
    error::{ApiError, Result},
    v1::{collections, events},
};

/// Documents that several processes change at once are read again so many times; then the change is refused.
const TRIES: usize = 10;

/// The tries of a change: reads what it is to be as read after, and asks whether another try is due.
pub(super) struct Tries<'t> {
    app: &'t App,
    org_id: &'t str,
    left: usize,
}

impl<'t> Tries<'t> {
    pub fn new(app: &'t App, scope: &'t Scope<impl Level>) -> Self {
        Self {
            app,
            org_id: &scope.caller.org_id,
            left: TRIES,
        }
    }

    /// The event after which the documents of this try are read.
    pub async fn since(&self) -> Result<i64> {
        events::newest(self.app.db(), self.org_id).await
    }

    /// The outcome of a try; none where another process came between.
    pub fn outcome<T>(&mut self, outcome: Result<T>) -> Option<Result<T>> {
        match outcome {
            Err(error) if error.has_code(CHANGED) && self.left > 0 => {
                self.left -= 1;
                None
            }
            outcome => Some(outcome),
        }
    }
}

/// What is to become of a document.
#[derive(Clone, Copy)]
enum Change<'c> {
    /// User fields over it, or in place of those that it has.
    Fields { fields: &'c Object, replace: bool },
    /// Others than before see it.
    Sight(&'c UpdateDocumentACLRequest),
}

struct Edit<'e> {
    app: &'e App,
    scope: &'e Scope<Write>,
    collection: &'e str,
    document_id: &'e str,
    change: Change<'e>,
}

impl Edit<'_> {
    async fn run(self) -> Result<Document> {
        let mut tries = Tries::new(self.app, self.scope);
        loop {
            let edited = self.once(&tries).await;
            if let Some(edited) = tries.outcome(edited) {
                return edited;
            }
        }
    }

    fn operation(&self) -> NamespaceOperation {
        match self.change {
            Change::Fields { .. } => NamespaceOperation::WriteData,
            Change::Sight(_) => NamespaceOperation::ManagePermissions,
        }
    }

    /// Changes the document as it is now.
    async fn once(&self, tries: &Tries<'_>) -> Result<Document> {
        let (app, scope) = (self.app, self.scope);
        let own = [self.document_id.to_owned()];
        let turn = app.writers.turn(&own).await;
        let since = tries.since().await?;
        let found = super::find(
            app,
            scope,
            self.collection,
            self.document_id,
            self.operation(),
            WithVectors::Yes,
        );
        let (collection, document) = found.await?;
        let (document, noted) = self.changed(&collection, document).await?;
        let beside = Beside {
            noted,
            since: Some(since),
            turn: Some(turn),
            ..Beside::default()
        };
        let spec = collections::spec(app, &scope.namespace_id, &collection);
        save(app, scope, &spec, vec![document.clone()], beside).await?;
        Ok(document)
    }

    async fn changed(
        &self,
        collection: &Record<CollectionResponse>,
        mut document: Document,
    ) -> Result<(Document, Option<Noted>)> {
        let at = self.app.clock().now().to_rfc3339();
        match self.change {
            Change::Sight(request) => {
                let noted = sharing::share(&mut document, request, &at);
                Ok((document, noted))
            }
            Change::Fields { fields, replace } => {
                let own = [collection.id.as_str(), collection.name.as_str()];
                check_id(fields, "document_id", &[document.document_id.as_str()])?;
                check_id(fields, "collection_id", &own)?;
                change(&mut document, fields.clone(), replace, &at);
                let document = checking::admit(collection, document).await?;
                Ok((document, None))
            }
        }
    }
}

/// Puts user fields over a document; `replace` drops the ones not named. System fields and vectors stay.
pub(super) fn change(document: &mut Document, mut fields: Object, replace: bool, at: &str) {
    fields.retain(|name, sent| !files::is_told(document, name, sent));
    if replace {
        document.payload.retain(|name, _| name == "_internal");
    }
    for (name, value) in fields {
        if !SYSTEM.contains(&name.as_str()) {
            document.payload.insert(name, value);
        }
    }
    if let Some(internal) = document.payload.get_mut("_internal") {
        internal["updated_at"] = at.into();
    }
}

fn with_metadata(mut fields: Object, metadata: Option<Object>) -> Object {
    if let Some(metadata) = metadata {
        fields.insert("metadata".into(), Value::Object(metadata));
    }
    fields
}

async fn edit(
    app: &App,
    scope: &Scope<Write>,
    (collection, document_id): (&str, &str),
    change: Change<'_>,
) -> Result<Document> {
    let edit = Edit {
        app,
        scope,
        collection,
        document_id,
        change,
    };
    edit.run().await
}

/// Sets the members sent, keeps the others.
pub async fn patch(
    app: &App,
    scope: &Scope<Write>,
    collection: &str,
    document_id: &str,
    request: DocumentPatchRequest,
) -> Result<Document> {
    let fields = &with_metadata(request.extra, request.metadata);
    let replace = false;
    let change = Change::Fields { fields, replace };
    edit(app, scope, (collection, document_id), change).await
}

/// Replaces every user field.
pub async fn replace(
    app: &App,
    scope: &Scope<Write>,
    collection: &str,
    document_id: &str,
    request: DocumentReplaceRequest,
) -> Result<Document> {
    let fields = &with_metadata(request.extra, request.metadata);
    let replace = true;
    let change = Change::Fields { fields, replace };
    edit(app, scope, (collection, document_id), change).await
}

/// Who may see and change a document.
pub async fn set_acl(
    app: &App,
    scope: &Scope<Write>,
    collection: &str,
    document_id: &str,
    request: UpdateDocumentACLRequest,
) -> Result<Document> {
    let change = Change::Sight(&request);
    edit(app, scope, (collection, document_id), change).await
}

/// Writes into documents what work of the server found out before: into those that are there still, as they are now, and that
/// `change` makes other ones. Answers their ids. Where other processes go on changing some of them, the others are written without
/// those.
///
/// # Errors
/// The collection is not active; a store or the database fails; another process goes on changing a document.
pub async fn rewrite(
    app: &App,
    scope: &Scope<impl Level>,
    spec: &CollectionSpec,
    ids: &[String],
    change: &(dyn Fn(&mut Document) -> bool + Sync),
) -> Result<Vec<String>> {
    let mut tries = Tries::new(app, scope);
    let written = loop {
        let written = rewrite_once(&tries, scope, spec, ids, change).await;
        if let Some(written) = tries.outcome(written) {
            break written;
        }
    };
    match (written, ids) {
        (Err(error), [_]) if error.has_code(CHANGED) => {
            // The work is tried again.
            let message = "another process goes on changing a document";
            Err(ApiError::unavailable("", message).retry_after(1))
        }
        (Err(error), many) if error.has_code(CHANGED) => {
            let (first, rest) = many.split_at(many.len() / 2);
            let mut written = Box::pin(rewrite(app, scope, spec, first, change)).await?;
            written.extend(Box::pin(rewrite(app, scope, spec, rest, change)).await?);
            Ok(written)
        }
        (written, _) => written,
    }
}

async fn rewrite_once(
    tries: &Tries<'_>,
    scope: &Scope<impl Level>,
    spec: &CollectionSpec,
    ids: &[String],
    change: &(dyn Fn(&mut Document) -> bool + Sync),
) -> Result<Vec<String>> {
    let app = tries.app;
    let reach = scope.reach(vec![spec.collection_id.clone()]);
    let turn = app.writers.turn(ids).await;
    let since = tries.since().await?;
    let mut documents = others::current(app, &reach, ids, WithVectors::Yes).await?;
    documents.retain_mut(|one| {
        let is_other = change(one);
        // What files left in it before keeps nobody from it.
        without_nul(one);
        is_other
    });
    if documents.is_empty() {
        return Ok(Vec::new());
    }
    let written = documents.iter().map(|one| one.document_id.clone());
    let written: Vec<String> = written.collect();
    let beside = Beside {
        since: Some(since),
        turn: Some(turn),
        ..Beside::default()
    };
    save(app, scope, spec, documents, beside).await?;
    Ok(written)
}
