//! Taxonomies applied to documents as they come, and the retrievers that a collection runs behind them.

use futures::StreamExt as _;
use loupe_engine::{
    stage::Searchable,
    store::{CollectionSpec, Document},
};
use loupe_wire::{CollectionResponse, NamespaceOperation, TaxonomyApplicationConfig};
use serde_json::json;

use super::{
    building,
    enriched::{copied, note, put},
    executing::{AT_ONCE, Candidate, classify_timed},
    store::TAXONOMIES,
};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    error::{Result, Violation},
    limits::quota,
    list::parse_filter,
    v1::{collections, documents, retrievers},
};

/// Taxonomies that one collection applies.
const MAX_APPLICATIONS: usize = 20;

/// Checks what a collection is to apply, and puts ids in place of names.
///
/// # Errors
/// 404 for what is not there, 403 for what is out of the key's scopes, the 422 list for filters that cannot be read.
pub async fn check_applications(
    app: &App,
    scope: &Scope<Write>,
    applications: Option<Vec<TaxonomyApplicationConfig>>,
) -> Result<Option<Vec<TaxonomyApplicationConfig>>> {
    let Some(mut applications) = applications else {
        return Ok(None);
    };
    if applications.len() > MAX_APPLICATIONS {
        let msg = format!("a collection applies at most {MAX_APPLICATIONS} taxonomies");
        let path = ["taxonomy_applications"];
        return Err(Violation::body(&path, "too_long", msg, applications.len().into()).into());
    }
    for one in &mut applications {
        let found = super::find(app, scope, &one.taxonomy_id, NamespaceOperation::ReadData).await?;
        one.taxonomy_id = found.taxonomy_id.unwrap_or_default();
        if let Some(target) = &mut one.target_collection_id {
            let operation = NamespaceOperation::WriteData;
            let found = collections::known(app, scope, target, operation).await?;
            target.clone_from(&found.id);
        }
        if let Some(filter) = &one.scroll_filters {
            parse_filter(&filter.0, "taxonomy_applications")?;
        }
    }
    Ok(Some(applications))
}

/// Applies the taxonomies of a collection to documents before they are stored, in their order, and runs its retrievers for
/// them; answers copies that are for other collections. A document is never lost for a taxonomy: what cannot be applied is told in the document's record.
/// What an end user writes takes over nothing that the user does not see.
///
/// # Errors
/// What may pass, while the documents are `tried_again`; the database does not answer.
pub async fn at_ingest(
    app: &App,
    caller: &Caller,
    namespace_id: &str,
    collection: &CollectionResponse,
    documents: &mut [Document],
    tried_again: bool,
) -> Result<Vec<(CollectionSpec, Vec<Document>)>> {
    let (mut copies, mut before) = (Vec::new(), documents.len());
    let mut applications: Vec<_> = collection.taxonomy_applications.iter().flatten().collect();
    applications.sort_by_key(|one| (one.execution_phase, -one.priority));
    let scope: Scope<Write> = Scope::internal(caller.clone(), namespace_id.to_owned());
    let source = collections::searchable(app, collection);
    for application in applications {
        let step = Step {
            app,
            scope: &scope,
            application,
            source: &source,
            tried_again,
            before,
        };
        if let Some((spec, made)) = step.run(documents).await? {
            before += made.len();
            copies.push((spec, made));
        }
    }
    collections::enrich(app, &scope, collection, documents, tried_again).await?;
    Ok(copies)
}

/// One taxonomy being applied to documents on their way.
struct Step<'a> {
    app: &'a App,
    scope: &'a Scope<Write>,
    application: &'a TaxonomyApplicationConfig,
    source: &'a Searchable,
    tried_again: bool,
    /// Documents that are stored before its copies.
    before: usize,
}

impl Step<'_> {
    async fn run(
        &self,
        documents: &mut [Document],
    ) -> Result<Option<(CollectionSpec, Vec<Document>)>> {
        let (app, namespace_id) = (self.app, &self.scope.namespace_id);
        let built = async {
            let id = &self.application.taxonomy_id;
            let stored = TAXONOMIES.known(app.db(), namespace_id, id).await?;
            building::build(app, &self.scope.caller.org_id, namespace_id, &stored, None).await
        };
        let taxonomy = match built.await {
            Ok(taxonomy) => taxonomy,
            Err(error) if !error.is_transient() => {
                documents
                    .iter_mut()
                    .for_each(|one| self.fail(one, &error.message()));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let spec = self.target().await;
        let meant = self.meant(documents)?;
        let candidates: Vec<Candidate> = meant
            .iter()
            .map(|place| documents[*place].clone().into())
            .collect();
        let searches: Vec<_> = candidates
            .iter()
            .map(|one| classify_timed(app, self.scope, &taxonomy, one, Some(self.source)))
            .collect();
        let found: Vec<_> = futures::stream::iter(searches)
            .buffered(AT_ONCE)
            .collect()
            .await;
        let (at, mut copies) = (app.clock().now().to_rfc3339(), Vec::new());
        let style = self.application.hierarchical_enrichment_style;
        for (place, (found, took_ms)) in meant.into_iter().zip(found) {
            let document = &mut documents[place];
            match (found, &spec) {
                (Ok(matches), _) if matches.is_empty() => {}
                (Ok(matches), None) => {
                    put(&taxonomy, document, &matches, style, (&at, took_ms));
                    document.keywords = Some(keywords_with(document));
                }
                (Ok(matches), Some(spec)) => {
                    let mut copy = document.clone();
                    put(&taxonomy, &mut copy, &matches, style, (&at, took_ms));
                    copies.push((place, copied(copy, spec, &taxonomy)));
                }
                (Err(error), _) => {
                    let error = retrievers::run_error(error);
                    if self.tried_again && error.is_transient() {
                        return Err(error);
                    }
                    self.fail(document, &error.message());
                }
            }
        }
        let Some(spec) = spec else {
            return Ok(None);
        };
        let copies = self.admitted(&spec, copies, documents).await?;
        Ok(Some((spec, copies)))
    }

    /// The copies, each with the place of its document, if there is room for them; else the documents tell why there is none.
    async fn admitted(
        &self,
        spec: &CollectionSpec,
        copies: Vec<(usize, Document)>,
        documents: &mut [Document],
    ) -> Result<Vec<Document>> {
        if copies.is_empty() {
            return Ok(Vec::new());
        }
        let ids = copies.iter().map(|(_, one)| one.document_id.clone());
        let ids: Vec<String> = ids.collect();
        let org_id = &self.scope.caller.org_id;
        match quota::check_behind(self.app, org_id, (spec, &ids), self.before).await {
            Ok(()) => Ok(copies.into_iter().map(|(_, copy)| copy).collect()),
            Err(error) if error.has_code("quota_exceeded") => {
                for (place, _) in copies {
                    self.fail(&mut documents[place], &error.message());
                }
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// The other collection that copies are for; none where that is gone.
    async fn target(&self) -> Option<CollectionSpec> {
        let (app, namespace_id) = (self.app, &self.scope.namespace_id);
        let id = self.application.target_collection_id.as_ref()?;
        let found = collections::resolve(app, namespace_id, std::slice::from_ref(id)).await;
        Some(collections::spec(app, namespace_id, &found.ok()?[0]))
    }

    /// Places of the documents that the application's filter lets through.
    fn meant(&self, documents: &[Document]) -> Result<Vec<usize>> {
        let Some(filter) = &self.application.scroll_filters else {
            return Ok((0..documents.len()).collect());
        };
        let matcher = parse_filter(&filter.0, "scroll_filters")?.matcher();
        let passes = |one: &Document| matcher.matches(&Candidate::from(one.clone()).value);
        Ok((0..documents.len())
            .filter(|place| passes(&documents[*place]))
            .collect())
    }

    fn fail(&self, document: &mut Document, reason: &str) {
        let (id, at) = (&self.application.taxonomy_id, self.app.clock().now());
        let said = json!({ "taxonomy_id": id, "error": reason, "at": at.to_rfc3339() });
        note(document, id, [said]);
    }
}

/// What keyword search reads of an enriched document: what its maker gave, and what it took over.
pub fn keywords_with(document: &Document) -> String {
    let taken = documents::keywords(&document.payload);
    match &document.keywords {
        Some(own) if !taken.contains(own.trim()) => format!("{own}\n{taken}"),
        _ => taken,
    }
}
