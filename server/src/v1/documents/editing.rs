//! Changes of one document. It is read, changed and written back whole, so whoever finds that somebody wrote it meanwhile reads it
//! again.

use loupe_engine::store::{Document, WithVectors};
use loupe_wire::{DocumentPatchRequest, DocumentReplaceRequest, NamespaceOperation, Object, Value};

use super::{
    checking, files, settle,
    writing::{Beside, CHANGED, SYSTEM, check_id, save_with},
};
use crate::{
    app::App,
    auth::{Scope, Write},
    error::Result,
    v1::events,
};

/// Documents that are changed at once by several people are read again so many times; then the last word counts.
const TRIES: usize = 5;

async fn edit(
    app: &App,
    scope: &Scope<Write>,
    (collection, document_id): (&str, &str),
    fields: Object,
    replace: bool,
) -> Result<Document> {
    let edit = Edit {
        app,
        scope,
        collection,
        document_id,
        fields,
        replace,
    };
    edit.run().await
}

struct Edit<'e> {
    app: &'e App,
    scope: &'e Scope<Write>,
    collection: &'e str,
    document_id: &'e str,
    fields: Object,
    replace: bool,
}

impl Edit<'_> {
    async fn run(self) -> Result<Document> {
        for _ in 0..TRIES {
            let since = events::newest(self.app.db(), &self.scope.caller.org_id).await?;
            match self.once(Some(since)).await {
                Err(error) if error.has_code(CHANGED) => self.wait().await?,
                edited => return edited,
            }
        }
        self.once(None).await
    }

    /// Until the store has what somebody else wrote.
    async fn wait(&self) -> Result<()> {
        let (app, scope) = (self.app, self.scope);
        let operation = NamespaceOperation::WriteData;
        let (collection, _) = super::open(app, scope, self.collection, operation).await?;
        settle(app, &scope.namespace_id, &collection.id)
            .await
            .map(drop)
    }

    /// Changes the document as it is now.
    async fn once(&self, since: Option<i64>) -> Result<Document> {
        let (app, scope) = (self.app, self.scope);
        let (operation, vectors) = (NamespaceOperation::WriteData, WithVectors::Yes);
        let found = super::find(
            app,
            scope,
            self.collection,
            self.document_id,
            operation,
            vectors,
        );
        let (collection, mut document) = found.await?;
        check_id(
            &self.fields,
            "document_id",
            &[document.document_id.as_str()],
        )?;
        let own = [collection.id.as_str(), collection.name.as_str()];
        check_id(&self.fields, "collection_id", &own)?;
        let at = app.clock().now().to_rfc3339();
        change(&mut document, self.fields.clone(), self.replace, &at);
        let document = checking::admit(&collection, document).await?;
        let beside = Beside {
            since,
            ..Beside::default()
        };
        save_with(app, scope, &collection, vec![document.clone()], beside).await?;
        Ok(document)
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

/// Sets the members sent, keeps the others.
pub async fn patch(
    app: &App,
    scope: &Scope<Write>,
    collection: &str,
    document_id: &str,
    request: DocumentPatchRequest,
) -> Result<Document> {
    let fields = with_metadata(request.extra, request.metadata);
    edit(app, scope, (collection, document_id), fields, false).await
}

/// Replaces every user field.
pub async fn replace(
    app: &App,
    scope: &Scope<Write>,
    collection: &str,
    document_id: &str,
    request: DocumentReplaceRequest,
) -> Result<Document> {
    let fields = with_metadata(request.extra, request.metadata);
    edit(app, scope, (collection, document_id), fields, true).await
}
