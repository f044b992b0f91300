mod invitations;

use std::collections::BTreeSet;

use loupe_hosted::app::{files::Manifest, headers::Rules};
use loupe_wire::{CustomDomainConfig, CustomDomainConfigStatus, VersionRecord};
use serde::{Deserialize, Serialize};

pub use invitations::Invitation;
pub(super) use invitations::{
    count_invitations, delete_invitation, insert_invitation, invitations,
};

use super::Hosted;
use crate::{
    app::App,
    args, clock,
    db::{Arg, Db, Json, Tx},
    error::{ApiError, Result},
    hosting,
};

crate::table!(pub static APPS: Hosted = "apps", "app");

crate::sql! {
    // Slugs and domains are hosts: unique over all organizations, and all that a visitor sends.
    const TAKEN = "SELECT CAST(COUNT(*) AS BIGINT) FROM apps WHERE name = $1 AND id <> $2";
    // A name that was given up is free for those who had it only: scripts that they left in browsers answer to it still.
    const KEPT = "SELECT CAST(COUNT(*) AS BIGINT) FROM app_slugs WHERE slug = $1 AND org_id <> $2";
    const KEEP_SLUG = "INSERT INTO app_slugs (slug, org_id, released_at, app_id) VALUES ($1, $2, $3, $4) ON CONFLICT (slug) DO UPDATE SET released_at = excluded.released_at, app_id = excluded.app_id";
    const BY_FORMER_SLUG = "SELECT a.name FROM app_slugs s JOIN apps a ON a.id = s.app_id AND a.owner = s.org_id WHERE s.slug = $1 AND s.released_at > $2";
    const BY_SLUG = "SELECT owner, data FROM apps WHERE name = $1";
    const BY_DOMAIN = "SELECT a.owner, a.data FROM app_domains d JOIN apps a ON a.id = d.app_id AND a.owner = d.org_id WHERE d.domain = $1 AND d.status = 'active'";

    // Whoever proved a name last has it, whose app it was before. The old record may stand on: it must prove nothing any more.
    const RELEASE_DOMAIN = "UPDATE app_domains SET status = 'pending', verified_at = 0, token = $2 WHERE domain = $1 AND status = 'active'";
    const PROVE_DOMAIN = "UPDATE app_domains SET status = 'active', verified_at = $4, checked_at = $4, seen_at = $4 WHERE org_id = $1 AND app_id = $2 AND domain = $3";
    const INSERT_DOMAIN = "INSERT INTO app_domains (app_id, domain, org_id, status, token, is_primary, created_at, verified_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 0)";
    const SET_PRIMARY = "UPDATE app_domains SET is_primary = (domain = $3) WHERE org_id = $1 AND app_id = $2";
    const DELETE_DOMAIN = "DELETE FROM app_domains WHERE org_id = $1 AND app_id = $2 AND domain = $3";
    const DOMAINS = "SELECT app_id, domain, status, token, is_primary, created_at, verified_at, seen_at FROM app_domains WHERE org_id = $1 AND ($2 = '' OR app_id = $2) ORDER BY created_at, domain";

    // Those whose record was not asked for since, of every organization.
    const UNCHECKED = "SELECT org_id, app_id, domain, token FROM app_domains WHERE status = 'active' AND checked_at < $1 ORDER BY checked_at, app_id, domain LIMIT $2";
    const SEEN_DOMAIN = "UPDATE app_domains SET checked_at = $4, seen_at = $4 WHERE org_id = $1 AND app_id = $2 AND domain = $3 AND status = 'active'";
    // One whose record was never there since this is asked was proven when it could go.
    const MISSED_DOMAIN = "UPDATE app_domains SET checked_at = $4, status = CASE WHEN seen_at > 0 AND seen_at < $5 THEN 'pending' ELSE status END WHERE org_id = $1 AND app_id = $2 AND domain = $3 AND status = 'active'";

    const INSERT_BUNDLE = "INSERT INTO app_bundles (place, org_id, app_id, created_at) VALUES ($1, $2, $3, $4)";
    const TAKE_BUNDLE = "DELETE FROM app_bundles WHERE place = $1 AND org_id = $2";
    // Places that nobody deployed from, of every organization.
    const OLD_BUNDLES = "SELECT org_id, place FROM app_bundles WHERE created_at < $1 ORDER BY created_at LIMIT $2";

    const INSERT_DEPLOY = "INSERT INTO app_deploys (deploy_id, org_id, app_id, status, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $5, $6)";
    const UPDATE_DEPLOY = "UPDATE app_deploys SET status = $4, updated_at = $5, data = $6 WHERE org_id = $1 AND app_id = $2 AND deploy_id = $3";
    const FIND_DEPLOY = "SELECT status, created_at, data FROM app_deploys WHERE org_id = $1 AND app_id = $2 AND deploy_id = $3";
    const WAITING = "SELECT CAST(COUNT(*) AS BIGINT) FROM app_deploys WHERE org_id = $1 AND app_id = $2 AND status IN ('queued', 'building')";
    const LATER = "SELECT data FROM app_deploys WHERE org_id = $1 AND app_id = $2 AND created_at > $3 AND status = 'complete'";
    const OLD_DEPLOYS = "DELETE FROM app_deploys WHERE org_id = $1 AND app_id = $2 AND created_at < $3 AND status IN ('complete', 'failed')";

    const INSERT_VERSION = "INSERT INTO app_versions (app_id, version, org_id, created_at, data) VALUES ($1, $2, $3, $4, $5)";
    const FIND_VERSION = "SELECT version, data FROM app_versions WHERE org_id = $1 AND app_id = $2 AND version = $3";
    const VERSIONS = "SELECT version, data FROM app_versions WHERE org_id = $1 AND app_id = $2 ORDER BY version DESC LIMIT $3";
    const VERSION_NUMBERS = "SELECT version FROM app_versions WHERE org_id = $1 AND app_id = $2";
    const DELETE_VERSION = "DELETE FROM app_versions WHERE org_id = $1 AND app_id = $2 AND version = $3";

    const DELETE_DEPLOYS = "DELETE FROM app_deploys WHERE org_id = $1 AND app_id = $2";
    const DELETE_VERSIONS = "DELETE FROM app_versions WHERE org_id = $1 AND app_id = $2";
    const DELETE_DOMAINS = "DELETE FROM app_domains WHERE org_id = $1 AND app_id = $2";
    const DELETE_USERS = "DELETE FROM app_users WHERE org_id = $1 AND app_id = $2";
    const DELETE_IDENTITIES = "DELETE FROM app_identities WHERE org_id = $1 AND app_id = $2";
    const DELETE_PASSKEYS = "DELETE FROM app_passkeys WHERE org_id = $1 AND app_id = $2";
    const DELETE_SESSIONS = "DELETE FROM app_sessions WHERE org_id = $1 AND app_id = $2";
    const DELETE_TOKENS = "DELETE FROM app_tokens WHERE org_id = $1 AND app_id = $2";
    const DELETE_INVITATIONS = "DELETE FROM app_invitations WHERE org_id = $1 AND app_id = $2";
    const DELETE_EVENTS = "DELETE FROM app_events WHERE org_id = $1 AND app_id = $2";

    const DELETE_MINUTES = "DELETE FROM app_minutes WHERE org_id = $1 AND app_id = $2";


    const INSERT_EVENT = "INSERT INTO app_events (event_id, org_id, app_id, kind, created_at, data) VALUES ($1, $2, $3, $4, $5, $6)";
}

/// The status of a domain that was proven.
pub const ACTIVE: &str = "active";

/// The status of a domain that was noted only.
pub const PENDING: &str = "pending";

crate::row! {
    /// A name of the owner's own.
    #[derive(Debug, Clone)]
    pub struct Domain {
        pub app_id: String,
        pub domain: String,
        pub status: String,
        pub token: String,
        pub is_primary: bool,
        pub created_at: i64,
        pub verified_at: i64,
        /// When its record of proof was last there.
        pub seen_at: i64,
    }
}

impl Domain {
    /// As the interface has it.
    pub fn config(&self, app: &App, slug: &str) -> CustomDomainConfig {
        let active = self.status == ACTIVE;
        CustomDomainConfig {
            domain: self.domain.clone(),
            status: if active {
                CustomDomainConfigStatus::Active
            } else {
                CustomDomainConfigStatus::Pending
            },
            verification_token: Some(self.token.clone()),
            cname_target: Some(hosting::host(app, slug)),
            verified_at: active.then(|| clock::time(self.verified_at)),
            is_primary: self.is_primary,
            ..Default::default()
        }
    }
}

/// A deploy as the database has it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Deploy {
    pub deploy_id: String,
    pub environment: String,
    pub source: String,
    pub message: String,
    pub bundle: Option<String>,
    #[serde(default)]
    pub source_files: std::collections::BTreeMap<String, String>,
    pub queued_by: String,
    pub git_commit_sha: Option<String>,
    pub git_commit_message: Option<String>,
    pub git_author: Option<String>,
    pub error: Option<String>,
    /// What was told of it: the moment in microseconds, and a line.
    pub log: Vec<(i64, String)>,
    /// The version that was made of it.
    pub version: Option<i64>,
    /// What a look at its page told, without the address.
    #[serde(default)]
    pub smoke_test: Option<loupe_wire::SmokeTestResult>,
}

/// A version as the database has it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Version {
    pub record: VersionRecord,
    pub deploy_id: String,
    pub files: Manifest,
    /// What the app says of them, as its bundle had it.
    #[serde(default)]
    pub headers: Rules,
    /// Hashes of the keys that the files have in them.
    #[serde(default)]
    pub keys: BTreeSet<String>,
    /// The page that visitors saw with it; absent until production serves it.
    #[serde(default)]
    pub page: Option<super::Page>,
}

pub(super) async fn is_taken(tx: &mut Tx, slug: &str, app_id: &str) -> Result<bool> {
    Ok(tx.number(TAKEN, args![slug, app_id]).await? > 0)
}

/// Whether another organization gave this name up.
pub(super) async fn is_kept(tx: &mut Tx, slug: &str, org_id: &str) -> Result<bool> {
    Ok(tx.number(KEPT, args![slug, org_id]).await? > 0)
}

/// Nobody but its organization has a name that it gave up.
pub(super) async fn keep_slug(
    tx: &mut Tx,
    (org_id, app_id): (&str, &str),
    slug: &str,
    now: i64,
) -> Result<()> {
    tx.run(KEEP_SLUG, args![slug, org_id, now, app_id]).await?;
    Ok(())
}

/// The name now of the app that gave this one up since then.
pub async fn by_former_slug(db: &Db, slug: &str, since: i64) -> Result<Option<String>> {
    let row: Option<(String,)> = db.one(BY_FORMER_SLUG, args![slug, since]).await?;
    Ok(row.map(|(name,)| name))
}

/// The app of a host, with its organization.
pub async fn by_slug(db: &Db, slug: &str) -> Result<Option<(String, Hosted)>> {
    let row: Option<(String, Json<Hosted>)> = db.one(BY_SLUG, args![slug]).await?;
    Ok(row.map(|(org_id, hosted)| (org_id, hosted.0)))
}

/// The app that proved a domain, with its organization.
pub async fn by_domain(db: &Db, domain: &str) -> Result<Option<(String, Hosted)>> {
    let row: Option<(String, Json<Hosted>)> = db.one(BY_DOMAIN, args![domain]).await?;
    Ok(row.map(|(org_id, hosted)| (org_id, hosted.0)))
}

pub async fn domains(db: &Db, org_id: &str, app_id: &str) -> Result<Vec<Domain>> {
    db.all(DOMAINS, args![org_id, app_id]).await
}

pub(super) async fn domains_of_all(db: &Db, org_id: &str) -> Result<Vec<Domain>> {
    db.all(DOMAINS, args![org_id, ""]).await
}

pub(super) async fn domains_in(tx: &mut Tx, org_id: &str, app_id: &str) -> Result<Vec<Domain>> {
    tx.all(DOMAINS, args![org_id, app_id]).await
}

/// This domain of the app is its first one from now on, and no other.
pub(super) async fn set_primary(tx: &mut Tx, org_id: &str, domain: &Domain) -> Result<()> {
    let args = args![org_id, &domain.app_id, &domain.domain];
    tx.run(SET_PRIMARY, args).await?;
    Ok(())
}

pub(super) async fn insert_domain(tx: &mut Tx, org_id: &str, domain: &Domain) -> Result<()> {
    let args = args![
        &domain.app_id,
        &domain.domain,
        org_id,
        &domain.status,
        &domain.token,
        domain.is_primary,
        domain.created_at
    ];
    tx.run(INSERT_DOMAIN, args).await?;
    Ok(())
}

/// Nobody's app serves this name any more; whose it was proves it again with another token.
pub(super) async fn release_domain(tx: &mut Tx, domain: &str, token: &str) -> Result<()> {
    tx.run(RELEASE_DOMAIN, args![domain, token]).await?;
    Ok(())
}

/// Whether the app still has this domain, which it serves from now on.
pub(super) async fn prove_domain(tx: &mut Tx, org_id: &str, domain: &Domain) -> Result<bool> {
    let args = args![org_id, &domain.app_id, &domain.domain, domain.verified_at];
    Ok(tx.run(PROVE_DOMAIN, args).await? > 0)
}

/// A proven domain whose record is to be asked for: organization, app, name, token.
pub(super) type Unchecked = (String, String, String, String);

/// Those whose turn it is longest.
pub(super) async fn unchecked(db: &Db, before: i64, most: i64) -> Result<Vec<Unchecked>> {
    db.all(UNCHECKED, args![before, most]).await
}

/// Notes whether the record is there; absent when no name server said. A domain whose record was last there before `since` has
/// to be proven anew.
pub(super) async fn checked(
    tx: &mut Tx,
    domain: &Unchecked,
    is_there: Option<bool>,
    now: i64,
    since: i64,
) -> Result<()> {
    let (org_id, app_id, name, _) = domain;
    let (statement, args) = match is_there {
        Some(true) => (SEEN_DOMAIN, args![org_id, app_id, name, now]),
        Some(false) => (MISSED_DOMAIN, args![org_id, app_id, name, now, since]),
        // Name servers that do not answer are given a month.
        None => {
            let since = since - 23 * 86_400_000_000;
            (MISSED_DOMAIN, args![org_id, app_id, name, now, since])
        }
    };
    tx.run(statement, args).await?;
    Ok(())
}

pub(super) async fn insert_bundle(
    tx: &mut Tx,
    (org_id, app_id): (&str, &str),
    place: &str,
    now: i64,
) -> Result<()> {
    tx.run(INSERT_BUNDLE, args![place, org_id, app_id, now])
        .await?;
    Ok(())
}

/// A deploy has the bundle now, or it is gone.
/// False when somebody else took it.
pub(super) async fn take_bundle(tx: &mut Tx, org_id: &str, place: &str) -> Result<bool> {
    Ok(tx.run(TAKE_BUNDLE, args![place, org_id]).await? > 0)
}

/// Places of bundles that nobody deployed from, with their organizations.
pub(super) async fn old_bundles(db: &Db, before: i64, most: i64) -> Result<Vec<(String, String)>> {
    db.all(OLD_BUNDLES, args![before, most]).await
}

pub(super) async fn delete_domain(tx: &mut Tx, org_id: &str, domain: &Domain) -> Result<()> {
    let args = args![org_id, &domain.app_id, &domain.domain];
    tx.run(DELETE_DOMAIN, args).await?;
    Ok(())
}

pub(super) async fn insert_deploy(
    tx: &mut Tx,
    org_id: &str,
    app_id: &str,
    deploy: &Deploy,
    now: i64,
) -> Result<()> {
    let data = Arg::json(deploy);
    let args = args![&deploy.deploy_id, org_id, app_id, "queued", now, data];
    tx.run(INSERT_DEPLOY, args).await?;
    Ok(())
}

/// Whether there was such a deploy.
pub(super) async fn update_deploy(
    tx: &mut Tx,
    org_id: &str,
    app_id: &str,
    deploy: &Deploy,
    status: &str,
    now: i64,
) -> Result<bool> {
    let data = Arg::json(deploy);
    let args = args![org_id, app_id, &deploy.deploy_id, status, now, data];
    Ok(tx.run(UPDATE_DEPLOY, args).await? > 0)
}

/// Status, moment and what is known of a deploy.
pub(super) async fn find_deploy(
    db: &Db,
    org_id: &str,
    app_id: &str,
    deploy_id: &str,
) -> Result<(String, i64, Deploy)> {
    let row: Option<(String, i64, Json<Deploy>)> = db
        .one(FIND_DEPLOY, args![org_id, app_id, deploy_id])
        .await?;
    let (status, at, deploy) = row.ok_or_else(|| ApiError::not_found("deploy", deploy_id))?;
    Ok((status, at, deploy.0))
}

pub(super) async fn waiting(tx: &mut Tx, org_id: &str, app_id: &str) -> Result<i64> {
    tx.number(WAITING, args![org_id, app_id]).await
}

/// Whether a deploy to the environment that was asked for after this moment is live already, or was.
pub(super) async fn is_overtaken(
    tx: &mut Tx,
    org_id: &str,
    app_id: &str,
    environment: &str,
    queued_at: i64,
) -> Result<bool> {
    let later: Vec<(Json<Deploy>,)> = tx.all(LATER, args![org_id, app_id, queued_at]).await?;
    Ok(later.iter().any(|(one,)| one.environment == environment))
}

pub(super) async fn forget_deploys(
    tx: &mut Tx,
    org_id: &str,
    app_id: &str,
    before: i64,
) -> Result<()> {
    tx.run(OLD_DEPLOYS, args![org_id, app_id, before]).await?;
    Ok(())
}

pub(super) async fn insert_version(
    tx: &mut Tx,
    org_id: &str,
    app_id: &str,
    version: &Version,
    now: i64,
) -> Result<()> {
    let number = version.record.version.unwrap_or_default();
    let args = args![app_id, number, org_id, now, Arg::json(version)];
    tx.run(INSERT_VERSION, args).await?;
    Ok(())
}

type VersionRow = (i64, Json<Version>);

fn not_found(version: i64) -> ApiError {
    ApiError::not_found("version", &version.to_string())
}

pub async fn find_version(db: &Db, org_id: &str, app_id: &str, version: i64) -> Result<Version> {
    let row: Option<VersionRow> = db.one(FIND_VERSION, args![org_id, app_id, version]).await?;
    row.map(|(_, version)| version.0)
        .ok_or_else(|| not_found(version))
}

pub(super) async fn find_version_in(
    tx: &mut Tx,
    org_id: &str,
    app_id: &str,
    version: i64,
) -> Result<Version> {
    let row: Option<VersionRow> = tx.one(FIND_VERSION, args![org_id, app_id, version]).await?;
    row.map(|(_, version)| version.0)
        .ok_or_else(|| not_found(version))
}

/// The newest first.
pub(super) async fn versions(
    db: &Db,
    org_id: &str,
    app_id: &str,
    most: i64,
) -> Result<Vec<Version>> {
    let rows: Vec<VersionRow> = db.all(VERSIONS, args![org_id, app_id, most]).await?;
    Ok(rows.into_iter().map(|(_, version)| version.0).collect())
}

/// The numbers of those that are kept.
pub(super) async fn version_numbers(db: &Db, org_id: &str, app_id: &str) -> Result<BTreeSet<i64>> {
    let rows: Vec<(i64,)> = db.all(VERSION_NUMBERS, args![org_id, app_id]).await?;
    Ok(rows.into_iter().map(|(number,)| number).collect())
}

pub(super) async fn delete_version(
    tx: &mut Tx,
    org_id: &str,
    app_id: &str,
    version: i64,
) -> Result<()> {
    tx.run(DELETE_VERSION, args![org_id, app_id, version])
        .await?;
    Ok(())
}

/// Removes all that belongs to an app, except the app.
pub(super) async fn delete_all_of(tx: &mut Tx, org_id: &str, app_id: &str) -> Result<()> {
    for statement in [
        DELETE_DEPLOYS,
        DELETE_VERSIONS,
        DELETE_DOMAINS,
        DELETE_USERS,
        DELETE_IDENTITIES,
        DELETE_PASSKEYS,
        DELETE_SESSIONS,
        DELETE_TOKENS,
        DELETE_INVITATIONS,
        DELETE_EVENTS,
        DELETE_MINUTES,
    ] {
        tx.run(statement, args![org_id, app_id]).await?;
    }
    Ok(())
}

/// Keeps what a visitor did, or met with.
pub async fn insert_event(
    tx: &mut Tx,
    place: (&str, &str),
    id: &str,
    kind: &str,
    data: &impl Serialize,
    now: i64,
) -> Result<()> {
    let (org_id, app_id) = place;
    let args = args![id, org_id, app_id, kind, now, Arg::json(data)];
    tx.run(INSERT_EVENT, args).await?;
    Ok(())
}
