//! How much an organization may hold: the table of its tier, checked in the transaction that adds.

use std::collections::BTreeMap;

use loupe_engine::{
    ingest::{Failure, ObjectOutcome},
    store::{CollectionSpec, Reach, WithVectors},
};
use loupe_wire::{
    AccountTier, CollectionResponse, OrganizationModelResponse, OrganizationQuotasResponse,
    QuotaUse,
};

use crate::{
    app::App,
    args,
    auth::Caller,
    db::{Arg, Json, Tx},
    error::{ApiError, Result},
    v1::{organizations, tasks::name_of},
};

/// What a quota is kept of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Namespaces,
    Collections,
    Buckets,
    Documents,
    Retrievers,
    Taxonomies,
    Clusters,
    ApiKeys,
    BatchObjects,
}

impl Resource {
    pub const ALL: [Self; 9] = [
        Self::Namespaces,
        Self::Collections,
        Self::Buckets,
        Self::Documents,
        Self::Retrievers,
        Self::Taxonomies,
        Self::Clusters,
        Self::ApiKeys,
        Self::BatchObjects,
    ];

    /// As the details of an error name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Collections => "collections",
            Self::Buckets => "buckets",
            Self::Documents => "documents",
            Self::Retrievers => "retrievers",
            Self::Taxonomies => "taxonomies",
            Self::Clusters => "clusters",
            Self::ApiKeys => "api_keys",
            Self::BatchObjects => "batch_objects",
        }
    }

    /// The quota of a tier; none: unlimited.
    pub const fn of(self, tier: AccountTier) -> Option<i64> {
        let (free, pro) = match self {
            Self::Namespaces => (1, 10),
            Self::Collections | Self::Buckets => (5, 50),
            Self::Documents => (10_000, 1_000_000),
            Self::Retrievers => (3, 50),
            Self::Taxonomies => (2, 20),
            Self::Clusters => (1, 10),
            Self::ApiKeys => (2, 10),
            Self::BatchObjects => (100, 10_000),
        };
        match tier {
            AccountTier::Free | AccountTier::Build => Some(free),
            AccountTier::Pro | AccountTier::Scale | AccountTier::Team => Some(pro),
            AccountTier::Enterprise => None,
        }
    }

    /// Counts what the organization holds. The protected key of the organization is nobody's making.
    /// What has expired takes no place, also before somebody marks it.
    fn count(self, org_id: &str, now: i64) -> Option<(&'static str, Vec<Arg>)> {
        let count = match self {
            Self::Namespaces => NAMESPACES,
            Self::Collections => COLLECTIONS,
            Self::Buckets => BUCKETS,
            Self::Retrievers => RETRIEVERS,
            Self::Taxonomies => TAXONOMIES,
            Self::Clusters => CLUSTERS,
            Self::ApiKeys => return Some((API_KEYS, args![org_id, now])),
            Self::Documents | Self::BatchObjects => return None,
        };
        Some((count, args![org_id]))
    }
}

crate::sql! {
    // Held until the transaction ends, so that two requests cannot both take the last place.
    const LOCK = "UPDATE organizations SET updated_at = updated_at WHERE org_id = $1 RETURNING data";
    const NAMESPACES = "SELECT CAST(COUNT(*) AS BIGINT) FROM namespaces WHERE owner = $1";
    const COLLECTIONS = "SELECT CAST(COUNT(*) AS BIGINT) FROM collections WHERE owner IN (SELECT id FROM namespaces WHERE owner = $1)";
    const BUCKETS = "SELECT CAST(COUNT(*) AS BIGINT) FROM buckets WHERE owner IN (SELECT id FROM namespaces WHERE owner = $1)";
    const RETRIEVERS = "SELECT CAST(COUNT(*) AS BIGINT) FROM retrievers WHERE owner IN (SELECT id FROM namespaces WHERE owner = $1)";
    const TAXONOMIES = "SELECT CAST(COUNT(*) AS BIGINT) FROM taxonomies WHERE owner IN (SELECT id FROM namespaces WHERE owner = $1)";
    const CLUSTERS = "SELECT CAST(COUNT(*) AS BIGINT) FROM clusters WHERE owner IN (SELECT id FROM namespaces WHERE owner = $1)";
    const API_KEYS = "SELECT CAST(COUNT(*) AS BIGINT) FROM api_keys WHERE org_id = $1 AND status = 'active' AND is_protected = FALSE AND (expires_at IS NULL OR expires_at > $2)";
    const COLLECTIONS_HELD = "SELECT owner, data FROM collections WHERE owner IN (SELECT id FROM namespaces WHERE owner = $1)";
}

/// Room for one more.
///
/// # Errors
/// The organization holds as many as its tier allows, or has no plan yet.
pub async fn check(tx: &mut Tx, org_id: &str, resource: Resource) -> Result<()> {
    let found: Option<(Json<OrganizationModelResponse>,)> = tx.one(LOCK, args![org_id]).await?;
    let (organization,) = found.ok_or_else(|| ApiError::not_found("organization", org_id))?;
    if resource == Resource::Namespaces {
        check_plan(&organization)?;
    }
    let tier = organization.account_type;
    // Keys that have expired were marked before a new one is made.
    let (Some(limit), Some((count, args))) = (resource.of(tier), resource.count(org_id, 0)) else {
        return Ok(());
    };
    let current = tx.number(count, args).await?;
    refuse_beyond(resource, current, 1, limit, tier)
}

/// Billable work needs a plan.
pub fn check_plan(organization: &OrganizationModelResponse) -> Result<()> {
    if organization.requires_plan {
        return Err(no_plan());
    }
    Ok(())
}

/// Whether work that is paid for may begin: there is a plan, and room for a document at least.
///
/// # Errors
/// As [`check`].
pub async fn check_work(app: &App, caller: &Caller) -> Result<()> {
    check_plan(&organizations::find(app.db(), &caller.org_id).await?)?;
    check_spend(app, &caller.org_id).await?;
    check_documents(app, caller, 1).await
}

/// Whether anything that is paid for may be written: there is a plan. Told from memory.
///
/// # Errors
/// There is none.
pub async fn check_writing(app: &App, org_id: &str) -> Result<()> {
    match super::standing(app, org_id).await?.requires_plan {
        true => Err(no_plan()),
        false => Ok(()),
    }
}

/// Whether a search may run: there is a plan, and money left of what the organization lets itself spend. Told from memory,
/// so that a search asks no database.
///
/// # Errors
/// There is no plan, or nothing left.
pub async fn check_spend(app: &App, org_id: &str) -> Result<()> {
    let standing = super::standing(app, org_id).await?;
    if standing.requires_plan {
        return Err(no_plan());
    }
    let Some(over) = standing.over_limit else {
        return Ok(());
    };
    let tier = name_of(standing.tier);
    Err(ApiError::quota_exceeded(
        over.resource,
        over.spent_usd,
        over.limit_usd,
        &tier,
    ))
}

pub(super) fn no_plan() -> ApiError {
    ApiError::plan_required(
        "plan_required",
        "this workspace has no plan yet: choose one first",
    )
}

/// Room for `adding` more documents, over all namespaces of the organization.
///
/// # Errors
/// As [`check`].
pub async fn check_documents(app: &App, caller: &Caller, adding: i64) -> Result<()> {
    match Held::of(app, &caller.org_id).await? {
        Some(held) => held.room(adding),
        None => Ok(()),
    }
}

/// Room for documents that the server itself writes into a collection. Those that it has already take none.
///
/// # Errors
/// As [`check`].
pub async fn check_written(
    app: &App,
    org_id: &str,
    target: &CollectionSpec,
    ids: &[String],
) -> Result<()> {
    check_behind(app, org_id, (target, ids), 0).await
}

/// The same where so many others come before them, which take room, too.
///
/// # Errors
/// As [`check`].
pub async fn check_behind(
    app: &App,
    org_id: &str,
    (target, ids): (&CollectionSpec, &[String]),
    before: usize,
) -> Result<()> {
    let Some(held) = Held::of(app, org_id).await? else {
        return Ok(());
    };
    let all = ids.len().saturating_add(before);
    // Which of them are there already matters only near the limit.
    if held.room(i64::try_from(all).unwrap_or(i64::MAX)).is_ok() {
        return Ok(());
    }
    match new_ones(app, target, ids).await? {
        0 => Ok(()),
        new => held.room(new.saturating_add(i64::try_from(before).unwrap_or(i64::MAX))),
    }
}

/// Fails the objects for whose documents there is no room; what is there stays, and may be written anew.
///
/// # Errors
/// The database or the document store does not answer.
pub async fn hold_back(
    app: &App,
    org_id: &str,
    target: &CollectionSpec,
    outcomes: &mut [ObjectOutcome],
) -> Result<()> {
    let Some(mut held) = Held::of(app, org_id).await? else {
        return Ok(());
    };
    let made = outcomes
        .iter()
        .filter_map(|one| one.documents.as_ref().ok());
    let made = made.map(Vec::len).sum::<usize>();
    // Which of them are there already matters only near the limit.
    if held.room(i64::try_from(made).unwrap_or(i64::MAX)).is_ok() {
        return Ok(());
    }
    for outcome in outcomes {
        let Ok(documents) = &outcome.documents else {
            continue;
        };
        let ids = documents.iter().map(|one| one.document_id.clone());
        let ids: Vec<String> = ids.collect();
        let adding = new_ones(app, target, &ids).await?;
        match held.room(adding) {
            Ok(()) => held.documents = held.documents.saturating_add(adding),
            Err(error) => outcome.documents = Err(no_room(&error)),
        }
    }
    Ok(())
}

/// Why there is no room for the documents of one object, which are known by their ids alone.
///
/// # Errors
/// As [`hold_back`].
pub async fn refused(
    app: &App,
    org_id: &str,
    target: &CollectionSpec,
    ids: &[String],
) -> Result<Option<Failure>> {
    let Some(held) = Held::of(app, org_id).await? else {
        return Ok(None);
    };
    if held
        .room(i64::try_from(ids.len()).unwrap_or(i64::MAX))
        .is_ok()
    {
        return Ok(None);
    }
    let adding = new_ones(app, target, ids).await?;
    Ok(held.room(adding).err().map(|error| no_room(&error)))
}

fn no_room(error: &ApiError) -> Failure {
    Failure {
        error: error.message(),
        error_type: "resource",
    }
}

/// Documents looked for at once.
const LOOKED_UP: usize = 1_000;

/// How many of these documents the collection does not have yet.
async fn new_ones(app: &App, target: &CollectionSpec, ids: &[String]) -> Result<i64> {
    let reach = Reach {
        namespace_id: target.namespace_id.clone(),
        collection_ids: vec![target.collection_id.clone()],
        principal: None,
    };
    let mut there = 0;
    for some in ids.chunks(LOOKED_UP) {
        there += app.store().get(&reach, some, WithVectors::No).await?.len();
    }
    Ok(i64::try_from(ids.len().saturating_sub(there)).unwrap_or(i64::MAX))
}

/// The documents of an organization whose tier does not allow any number of them.
struct Held {
    documents: i64,
    limit: i64,
    tier: AccountTier,
}

impl Held {
    async fn of(app: &App, org_id: &str) -> Result<Option<Self>> {
        let tier = super::standing(app, org_id).await?.tier;
        let Some(limit) = Resource::Documents.of(tier) else {
            return Ok(None);
        };
        let documents = held_documents(app, org_id).await?;
        Ok(Some(Self {
            documents,
            limit,
            tier,
        }))
    }

    fn room(&self, adding: i64) -> Result<()> {
        if adding == 0 {
            return Ok(());
        }
        let (resource, held) = (Resource::Documents, self.documents);
        refuse_beyond(resource, held, adding, self.limit, self.tier)
    }
}

/// How many of it the organization holds; none of what is counted for each request alone.
///
/// # Errors
/// The database or the document store does not answer.
pub async fn held(app: &App, org_id: &str, resource: Resource) -> Result<Option<i64>> {
    match (resource, resource.count(org_id, app.clock().micros())) {
        (Resource::Documents, _) => held_documents(app, org_id).await.map(Some),
        (_, Some((count, args))) => app.db().number(count, args).await.map(Some),
        (_, None) => Ok(None),
    }
}

/// How much of each quota is used, and its limit.
///
/// # Errors
/// As [`held`].
pub async fn uses(app: &App, org_id: &str) -> Result<OrganizationQuotasResponse> {
    let tier = organizations::find(app.db(), org_id).await?.account_type;
    let mut quotas = Vec::with_capacity(Resource::ALL.len());
    for resource in Resource::ALL {
        quotas.push(QuotaUse {
            resource: resource.name().to_owned(),
            current: held(app, org_id, resource).await?,
            limit: resource.of(tier),
        });
    }
    Ok(OrganizationQuotasResponse { tier, quotas })
}

async fn held_documents(app: &App, org_id: &str) -> Result<i64> {
    let args = args![org_id];
    let owned: Vec<(String, Json<CollectionResponse>)> =
        app.db().all(COLLECTIONS_HELD, args).await?;
    let (mut current, mut namespaces) = (0_i64, BTreeMap::<String, Vec<String>>::new());
    for (namespace_id, Json(collection)) in owned {
        match collection.s3_vector_index.and(collection.document_count) {
            // What is put away was counted then.
            Some(filed) => current = current.saturating_add(filed),
            None => namespaces
                .entry(namespace_id)
                .or_default()
                .extend(collection.collection_id),
        }
    }
    for (namespace_id, collection_ids) in namespaces {
        let reach = Reach {
            namespace_id,
            collection_ids,
            principal: None,
        };
        let held = app.store().count(&reach, None).await?;
        current = current.saturating_add(i64::try_from(held).unwrap_or(i64::MAX));
    }
    Ok(current)
}

/// Whether a batch may have so many objects.
///
/// # Errors
/// As [`check`].
pub async fn check_batch(app: &App, caller: &Caller, objects: usize) -> Result<()> {
    let objects = i64::try_from(objects).unwrap_or(i64::MAX);
    BatchSize::of(app, caller).await?.check(objects)
}

/// How many objects a batch of an organization may have.
#[derive(Debug, Clone, Copy)]
pub struct BatchSize(AccountTier);

impl BatchSize {
    /// As the tier of the caller's organization has it.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn of(app: &App, caller: &Caller) -> Result<Self> {
        let standing = super::standing(app, &caller.org_id).await?;
        Ok(Self(standing.tier))
    }

    /// Whether a batch may have so many.
    ///
    /// # Errors
    /// The tier allows fewer.
    pub fn check(self, objects: i64) -> Result<()> {
        let resource = Resource::BatchObjects;
        match resource.of(self.0) {
            Some(limit) => refuse_beyond(resource, objects, 0, limit, self.0),
            None => Ok(()),
        }
    }
}

fn refuse_beyond(
    resource: Resource,
    current: i64,
    adding: i64,
    limit: i64,
    tier: AccountTier,
) -> Result<()> {
    if current.saturating_add(adding) <= limit {
        return Ok(());
    }
    Err(ApiError::quota_exceeded(
        resource.name(),
        current,
        limit,
        &name_of(tier),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_interface() {
        let table = [
            ("namespaces", 1, 10),
            ("collections", 5, 50),
            ("buckets", 5, 50),
            ("documents", 10_000, 1_000_000),
            ("retrievers", 3, 50),
            ("taxonomies", 2, 20),
            ("clusters", 1, 10),
            ("api_keys", 2, 10),
            ("batch_objects", 100, 10_000),
        ];
        assert_eq!(table.len(), Resource::ALL.len());
        for (name, free, pro) in table {
            let of = |tier| {
                let resource = Resource::ALL.iter().find(|one| one.name() == name);
                resource.and_then(|resource| resource.of(tier))
            };
            assert_eq!(of(AccountTier::Free), Some(free), "{name}");
            assert_eq!(of(AccountTier::Pro), Some(pro), "{name}");
            assert_eq!(of(AccountTier::Enterprise), None, "{name}");
        }
    }
}
