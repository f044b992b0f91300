use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::Result,
};

crate::sql! {
    const FIND_USER = "SELECT user_id, email, created_at, data FROM app_users WHERE org_id = $1 AND app_id = $2 AND user_id = $3";
    const BY_EMAIL = "SELECT user_id, email, created_at, data FROM app_users WHERE org_id = $1 AND app_id = $2 AND email = $3";
    const BY_IDENTITY = "SELECT u.user_id, u.email, u.created_at, u.data FROM app_identities i JOIN app_users u ON u.user_id = i.user_id AND u.org_id = i.org_id WHERE i.org_id = $1 AND i.app_id = $2 AND i.issuer = $3 AND i.subject = $4";
    const USERS = "SELECT user_id, email, created_at, data FROM app_users WHERE org_id = $1 AND app_id = $2 AND (created_at > $3 OR (created_at = $3 AND user_id > $4)) ORDER BY created_at, user_id LIMIT $5 OFFSET $6";
    const COUNT_USERS = "SELECT CAST(COUNT(*) AS BIGINT) FROM app_users WHERE org_id = $1 AND app_id = $2";
    const INSERT_USER = "INSERT INTO app_users (user_id, org_id, app_id, email, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $5, $6)";
    const HOLD_USER = "UPDATE app_users SET updated_at = updated_at WHERE org_id = $1 AND app_id = $2 AND user_id = $3";
    const UPDATE_USER = "UPDATE app_users SET updated_at = $4, data = $5 WHERE org_id = $1 AND app_id = $2 AND user_id = $3";
    const DELETE_USER = "DELETE FROM app_users WHERE org_id = $1 AND app_id = $2 AND user_id = $3";
    const DELETE_IDENTITIES = "DELETE FROM app_identities WHERE org_id = $1 AND app_id = $2 AND user_id = $3";
    const DELETE_PASSKEYS = "DELETE FROM app_passkeys WHERE org_id = $1 AND app_id = $2 AND user_id = $3";
    const INSERT_IDENTITY = "INSERT INTO app_identities (app_id, issuer, subject, org_id, user_id, created_at) VALUES ($1, $2, $3, $4, $5, $6)";

    const INSERT_SESSION = "INSERT INTO app_sessions (token_hash, org_id, app_id, user_id, browser, way, created_at, seen_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8)";
    const FIND_SESSION = "SELECT s.created_at AS began_at, s.seen_at, s.expires_at, s.way, u.user_id, u.email, u.created_at, u.data FROM app_sessions s JOIN app_users u ON u.user_id = s.user_id AND u.app_id = s.app_id WHERE s.token_hash = $3 AND s.org_id = $1 AND s.app_id = $2 AND s.expires_at > $4";
    const SEE_SESSION = "UPDATE app_sessions SET seen_at = $4, expires_at = $5 WHERE org_id = $1 AND app_id = $2 AND token_hash = $3";
    const END_SESSION = "DELETE FROM app_sessions WHERE org_id = $1 AND app_id = $2 AND token_hash = $3";
    const SESSIONS = "SELECT token_hash, browser, way, created_at, seen_at FROM app_sessions WHERE org_id = $1 AND app_id = $2 AND user_id = $3 AND expires_at > $4 ORDER BY seen_at DESC, token_hash LIMIT 100";
    const END_SESSION_OF = "DELETE FROM app_sessions WHERE org_id = $1 AND app_id = $2 AND user_id = $3 AND token_hash = $4";
    const END_SESSIONS = "DELETE FROM app_sessions WHERE org_id = $1 AND app_id = $2 AND user_id = $3";

    const INSERT_TOKEN = "INSERT INTO app_tokens (token_hash, org_id, app_id, kind, user_id, expires_at, data) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    const FIND_TOKEN = "SELECT user_id, data FROM app_tokens WHERE org_id = $1 AND app_id = $2 AND kind = $3 AND token_hash = $4 AND expires_at > $5";
    const TAKE_TOKEN = "DELETE FROM app_tokens WHERE org_id = $1 AND app_id = $2 AND kind = $3 AND token_hash = $4 AND expires_at > $5 RETURNING user_id, data";
    const END_TOKENS = "DELETE FROM app_tokens WHERE org_id = $1 AND app_id = $2 AND kind = $3 AND user_id = $4 AND user_id <> ''";
    const DELETE_TOKENS = "DELETE FROM app_tokens WHERE org_id = $1 AND app_id = $2 AND user_id = $3 AND user_id <> ''";

    const ROLE_OF_INVITED = "SELECT role FROM app_invitations WHERE org_id = $1 AND app_id = $2 AND email = $3 AND status = 'pending'";
    const ACCEPT = "UPDATE app_invitations SET status = 'accepted' WHERE org_id = $1 AND app_id = $2 AND email = $3";

    // One sweep for the apps of every organization.
    const SWEEP_SESSIONS = "DELETE FROM app_sessions WHERE expires_at < $1";
    const SWEEP_TOKENS = "DELETE FROM app_tokens WHERE expires_at < $1";
    const SWEEP_EVENTS = "DELETE FROM app_events WHERE created_at < $1";
    const SWEEP_REQUESTS = "DELETE FROM app_events WHERE kind IN ('request.info', 'request.warn', 'request.error') AND created_at < $1";
    const SWEEP_MINUTES = "DELETE FROM app_minutes WHERE minute < $1";
}

/// People who are looked at at once in a search.
const LOOKED_AT: i64 = 1_000;

/// Whose people: organization and app.
#[derive(Debug, Clone)]
pub struct Place {
    pub org_id: String,
    pub app_id: String,
}

/// What is known of a person.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Profile {
    pub name: Option<String>,
    pub avatar_url: Option<String>,
    pub role: String,
    /// Argon2id; absent for those who come by a provider only.
    pub password: Option<String>,
    /// The address that a provider tells of whoever has proven none to it, as far as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_email: Option<String>,
    /// The name is what the person wants to be called, whatever a provider says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_named: bool,
    /// When they signed in last, and with what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_in: Option<SignedIn>,
}

/// A time that somebody signed in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SignedIn {
    pub at: i64,
    /// `password`, `passkey`, or the provider.
    pub way: String,
}

/// A person.
#[derive(Debug, Clone)]
pub struct User {
    pub user_id: String,
    /// The address that the person has proven, by which they are found; in its place the id of whoever has proven none.
    pub email: String,
    pub created_at: i64,
    pub profile: Profile,
}

impl User {
    /// Whether the address is proven.
    pub fn has_proven(&self) -> bool {
        self.email != self.user_id
    }

    /// The address that people know them by.
    pub fn shown_email(&self) -> &str {
        match self.has_proven() {
            true => &self.email,
            false => self.profile.claimed_email.as_deref().unwrap_or_default(),
        }
    }
}

type Row = (String, String, i64, Json<Profile>);

fn user((user_id, email, created_at, profile): Row) -> User {
    User {
        user_id,
        email,
        created_at,
        profile: profile.0,
    }
}

pub(super) async fn by_email(db: &Db, place: &Place, email: &str) -> Result<Option<User>> {
    let args = args![&place.org_id, &place.app_id, email];
    Ok(db.one(BY_EMAIL, args).await?.map(user))
}

pub async fn by_email_in(tx: &mut Tx, place: &Place, email: &str) -> Result<Option<User>> {
    let args = args![&place.org_id, &place.app_id, email];
    Ok(tx.one(BY_EMAIL, args).await?.map(user))
}

/// A person whom nobody else changes until the transaction ends: what is read, edited and written back begins here, and before
/// anything else of the person, their sessions among it, is touched.
pub async fn hold(tx: &mut Tx, place: &Place, user_id: &str) -> Result<Option<User>> {
    let args = || args![&place.org_id, &place.app_id, user_id];
    tx.run(HOLD_USER, args()).await?;
    Ok(tx.one(FIND_USER, args()).await?.map(user))
}

pub(super) async fn by_identity_in(
    tx: &mut Tx,
    place: &Place,
    issuer: &str,
    subject: &str,
) -> Result<Option<User>> {
    let args = args![&place.org_id, &place.app_id, issuer, subject];
    Ok(tx.one(BY_IDENTITY, args).await?.map(user))
}

/// The first that came first, with how many there are.
pub async fn list(db: &Db, place: &Place, (limit, offset): (i64, i64)) -> Result<(Vec<User>, i64)> {
    let total = db.number(COUNT_USERS, args![&place.org_id, &place.app_id]);
    let total = total.await?;
    let found = behind(db, place, (i64::MIN, ""), (limit, offset)).await?;
    Ok((found, total))
}

/// The same of those of whose address or name `part` is a part, however it is written. All are looked at, some at a time: neither
/// database knows what is one letter in all alphabets.
pub async fn search(
    db: &Db,
    place: &Place,
    part: &str,
    (limit, offset): (i64, i64),
) -> Result<(Vec<User>, i64)> {
    let part = part.to_lowercase();
    let is_in = |text: &str| text.to_lowercase().contains(&part);
    let (mut found, mut total, mut last) = (Vec::new(), 0, (i64::MIN, String::new()));
    loop {
        let some = behind(db, place, (last.0, &last.1), (LOOKED_AT, 0)).await?;
        let Some(end) = some.last() else {
            return Ok((found, total));
        };
        last = (end.created_at, end.user_id.clone());
        for user in some {
            if is_in(user.shown_email()) || user.profile.name.as_deref().is_some_and(is_in) {
                total += 1;
                if total > offset && total - offset <= limit {
                    found.push(user);
                }
            }
        }
    }
}

async fn behind(
    db: &Db,
    place: &Place,
    (at, id): (i64, &str),
    (limit, offset): (i64, i64),
) -> Result<Vec<User>> {
    let args = args![&place.org_id, &place.app_id, at, id, limit, offset];
    let rows: Vec<Row> = db.all(USERS, args).await?;
    Ok(rows.into_iter().map(user).collect())
}

pub(super) async fn insert(tx: &mut Tx, place: &Place, user: &User) -> Result<()> {
    let args = args![
        &user.user_id,
        &place.org_id,
        &place.app_id,
        &user.email,
        user.created_at,
        Arg::json(&user.profile)
    ];
    tx.run(INSERT_USER, args).await?;
    tx.run(ACCEPT, args![&place.org_id, &place.app_id, &user.email])
        .await?;
    Ok(())
}

/// Whether there is such a person.
pub async fn update(tx: &mut Tx, place: &Place, user: &User, now: i64) -> Result<bool> {
    let profile = Arg::json(&user.profile);
    let args = args![&place.org_id, &place.app_id, &user.user_id, now, profile];
    Ok(tx.run(UPDATE_USER, args).await? > 0)
}

/// Removes a person with all that signs them in; whether there was one.
pub async fn delete(tx: &mut Tx, place: &Place, user_id: &str) -> Result<bool> {
    hold(tx, place, user_id).await?;
    for statement in [
        DELETE_IDENTITIES,
        DELETE_PASSKEYS,
        END_SESSIONS,
        DELETE_TOKENS,
    ] {
        tx.run(statement, args![&place.org_id, &place.app_id, user_id])
            .await?;
    }
    let args = args![&place.org_id, &place.app_id, user_id];
    Ok(tx.run(DELETE_USER, args).await? > 0)
}

pub(super) async fn insert_identity(
    tx: &mut Tx,
    place: &Place,
    identity: (&str, &str),
    user_id: &str,
    now: i64,
) -> Result<()> {
    let (issuer, subject) = identity;
    let args = args![&place.app_id, issuer, subject, &place.org_id, user_id, now];
    tx.run(INSERT_IDENTITY, args).await?;
    Ok(())
}

/// The role that waits for this address.
pub(super) async fn invited(tx: &mut Tx, place: &Place, email: &str) -> Result<Option<String>> {
    let args = args![&place.org_id, &place.app_id, email];
    let row: Option<(String,)> = tx.one(ROLE_OF_INVITED, args).await?;
    Ok(row.map(|(role,)| role))
}

/// A session that begins.
pub(super) struct NewSession<'a> {
    /// The hash of what the browser holds.
    pub token_hash: &'a str,
    pub user_id: &'a str,
    /// As its person knows it.
    pub browser: &'a str,
    /// What it began with: `password`, `passkey`, or the provider.
    pub way: &'a str,
    pub expires_at: i64,
}

crate::row! {
    /// A session as its person sees it.
    #[derive(Debug, Clone)]
    pub struct Session {
        pub token_hash: String,
        /// Empty where it is not known.
        pub browser: String,
        /// As above.
        pub way: String,
        pub created_at: i64,
        /// Within the hour.
        pub seen_at: i64,
    }
}

pub(super) async fn insert_session(
    tx: &mut Tx,
    place: &Place,
    session: &NewSession<'_>,
    now: i64,
) -> Result<()> {
    let args = args![
        session.token_hash,
        &place.org_id,
        &place.app_id,
        session.user_id,
        session.browser,
        session.way,
        now,
        session.expires_at
    ];
    tx.run(INSERT_SESSION, args).await?;
    Ok(())
}

crate::row! {
    /// A session with its person, as both are kept.
    struct Found {
        began_at: i64,
        seen_at: i64,
        expires_at: i64,
        way: String,
        user_id: String,
        email: String,
        created_at: i64,
        data: Json<Profile>,
    }
}

/// A session that is not over, and whose it is.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub began_at: i64,
    pub seen_at: i64,
    pub expires_at: i64,
    /// What it began with; empty where that was not kept yet.
    pub way: String,
    pub user: User,
}

pub(super) async fn find_session(
    db: &Db,
    place: &Place,
    token_hash: &str,
    now: i64,
) -> Result<Option<Open>> {
    let args = args![&place.org_id, &place.app_id, token_hash, now];
    let found: Option<Found> = db.one(FIND_SESSION, args).await?;
    Ok(found.map(|found| Open {
        began_at: found.began_at,
        seen_at: found.seen_at,
        expires_at: found.expires_at,
        way: found.way,
        user: user((found.user_id, found.email, found.created_at, found.data)),
    }))
}

pub(super) async fn see_session(
    tx: &mut Tx,
    place: &Place,
    token_hash: &str,
    now: i64,
    expires_at: i64,
) -> Result<()> {
    let args = args![&place.org_id, &place.app_id, token_hash, now, expires_at];
    tx.run(SEE_SESSION, args).await?;
    Ok(())
}

pub(super) async fn end_session(tx: &mut Tx, place: &Place, token_hash: &str) -> Result<()> {
    let args = args![&place.org_id, &place.app_id, token_hash];
    tx.run(END_SESSION, args).await?;
    Ok(())
}

/// The sessions of a person that are not over, the last seen first.
pub(super) async fn list_sessions(
    db: &Db,
    place: &Place,
    user_id: &str,
    now: i64,
) -> Result<Vec<Session>> {
    let args = args![&place.org_id, &place.app_id, user_id, now];
    db.all(SESSIONS, args).await
}

/// Whether the person had such a session.
pub(super) async fn end_session_of(
    tx: &mut Tx,
    place: &Place,
    user_id: &str,
    token_hash: &str,
) -> Result<bool> {
    let args = args![&place.org_id, &place.app_id, user_id, token_hash];
    Ok(tx.run(END_SESSION_OF, args).await? > 0)
}

pub async fn end_sessions(tx: &mut Tx, place: &Place, user_id: &str) -> Result<()> {
    let args = args![&place.org_id, &place.app_id, user_id];
    tx.run(END_SESSIONS, args).await?;
    Ok(())
}

/// No link of this kind that a person was sent opens anything any more.
pub(super) async fn end_tokens(
    tx: &mut Tx,
    place: &Place,
    kind: &str,
    user_id: &str,
) -> Result<()> {
    let args = args![&place.org_id, &place.app_id, kind, user_id];
    tx.run(END_TOKENS, args).await?;
    Ok(())
}

/// What a token of this kind opens, and until when.
pub(super) struct NewToken<'a, T> {
    pub kind: &'a str,
    pub hash: &'a str,
    pub user_id: &'a str,
    pub expires_at: i64,
    pub data: &'a T,
}

pub(super) async fn insert_token<T: Serialize>(
    tx: &mut Tx,
    place: &Place,
    token: &NewToken<'_, T>,
) -> Result<()> {
    let args = args![
        token.hash,
        &place.org_id,
        &place.app_id,
        token.kind,
        token.user_id,
        token.expires_at,
        Arg::json(token.data)
    ];
    tx.run(INSERT_TOKEN, args).await?;
    Ok(())
}

pub(super) async fn find_token<T: DeserializeOwned + Send + 'static>(
    db: &Db,
    place: &Place,
    kind: &str,
    hash: &str,
    now: i64,
) -> Result<Option<T>> {
    let args = args![&place.org_id, &place.app_id, kind, hash, now];
    let row: Option<(String, Json<T>)> = db.one(FIND_TOKEN, args).await?;
    Ok(row.map(|(_, data)| data.0))
}

/// Opens a token, once: whose it is, and what it says.
pub(super) async fn take_token<T: DeserializeOwned + Send + 'static>(
    tx: &mut Tx,
    place: &Place,
    kind: &str,
    hash: &str,
    now: i64,
) -> Result<Option<(String, T)>> {
    let args = args![&place.org_id, &place.app_id, kind, hash, now];
    let row: Option<(String, Json<T>)> = tx.one(TAKE_TOKEN, args).await?;
    Ok(row.map(|(user_id, data)| (user_id, data.0)))
}

/// Removes what is over.
pub(super) async fn sweep(tx: &mut Tx, now: i64) -> Result<()> {
    const DAY: i64 = 86_400_000_000;
    tx.run(SWEEP_SESSIONS, args![now]).await?;
    tx.run(SWEEP_TOKENS, args![now]).await?;
    // What pages report is counted back a month, lines of requests are read back a week.
    tx.run(SWEEP_EVENTS, args![now - 31 * DAY]).await?;
    tx.run(SWEEP_REQUESTS, args![now - 8 * DAY]).await?;
    let minutes = (now - 90 * DAY).div_euclid(60_000_000);
    tx.run(SWEEP_MINUTES, args![minutes]).await?;
    Ok(())
}
