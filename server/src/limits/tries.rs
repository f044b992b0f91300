//! Tries at what somebody may guess, counted in the database: several processes are no way around it, and a restart forgets
//! nothing. What is refused is remembered here, so that whoever goes on all the same costs no write.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use moka::sync::Cache;
use sha2::{Digest, Sha256};

use crate::{app::App, args, db::Tx, error::Result};

crate::sql! {
    // Whoever comes at the same moment waits until the row is written.
    const HOLD = "INSERT INTO app_tries (name, began_at, tries, closed_until, over_at) VALUES ($1, 0, 0, 0, $2) ON CONFLICT (name) DO UPDATE SET over_at = app_tries.over_at RETURNING began_at, tries, closed_until, over_at";
    const UPDATE = "UPDATE app_tries SET began_at = $2, tries = $3, closed_until = $4, over_at = $5 WHERE name = $1";
    const GIVE_BACK = "UPDATE app_tries SET tries = tries - 1 WHERE name = $1 AND tries > 0";
    const DELETE = "DELETE FROM app_tries WHERE name = $1";
    const OVER = "SELECT name FROM app_tries WHERE over_at < $1 ORDER BY over_at LIMIT $2";
    const SWEEP = "DELETE FROM app_tries WHERE name = $1 AND over_at < $2";
}

/// In microseconds, as all here.
pub const SECOND: i64 = 1_000_000;
/// As above.
pub const MINUTE: i64 = 60 * SECOND;
/// As above.
pub const HOUR: i64 = 60 * MINUTE;

/// How long something that nobody tries any more is remembered: as long as the longest window.
const KEPT: i64 = HOUR;

/// Rows that are removed in one transaction, and transactions of one sweep: what is left is for the next one.
const SWEPT: i64 = 500;
const SWEEPS: usize = 100;

/// Wrong tries that cost nothing; each further one doubles the wait, up to a quarter of an hour.
pub const FREE: i64 = 5;
const LONGEST_WAIT: i64 = 900 * SECOND;

/// What was counted of one thing.
#[derive(Debug, Default, Clone, Copy)]
pub struct Count {
    /// Start of the window.
    began_at: i64,
    tries: i64,
    /// No further try before.
    closed_until: i64,
}

/// How something is counted.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// So many in a window of this length.
    Window { most: i64, long: i64 },
    /// As above, of what is counted elsewhere: here it is looked at.
    Full { most: i64, long: i64 },
    /// Wrong tries: each costs more time than the one before, the first of them this.
    Wrong { first: i64 },
}

impl Rule {
    /// Until when nothing more is taken; none where something is.
    pub fn closed_until(self, count: &Count, now: i64) -> Option<i64> {
        let until = match self {
            Self::Wrong { .. } => count.closed_until,
            Self::Window { most, long } | Self::Full { most, long } => {
                if count.tries < most {
                    return None;
                }
                count.began_at + long
            }
        };
        (until > now).then_some(until)
    }

    /// One more.
    pub fn add(self, count: &mut Count, now: i64) {
        match self {
            Self::Full { .. } => {}
            Self::Window { long, .. } => {
                if now - count.began_at >= long {
                    count.began_at = now;
                    count.tries = 0;
                }
                count.tries += 1;
            }
            Self::Wrong { first } => {
                count.tries = count.tries.saturating_add(1);
                if count.tries >= FREE {
                    let doubled = first << (count.tries - FREE).min(10);
                    count.closed_until = now + doubled.min(LONGEST_WAIT);
                }
            }
        }
    }
}

/// A thing with its rule. Who tries what is nobody's to read: the name is a hash.
#[derive(Debug)]
pub struct Limit {
    pub name: String,
    pub rule: Rule,
}

impl Limit {
    /// The limit of what has this name.
    pub fn new(name: &str, rule: Rule) -> Self {
        let name = hex::encode(Sha256::digest(name.as_bytes()));
        Self { name, rule }
    }
}

/// A limit that takes nothing more, and until when.
#[derive(Debug)]
pub struct Closed {
    pub limit: Limit,
    pub until: i64,
}

/// What was refused, and until when.
pub struct Tries(Cache<String, i64>);

impl Default for Tries {
    fn default() -> Self {
        let refused = Cache::builder()
            .max_capacity(200_000)
            .time_to_live(Duration::from_secs(3600));
        Self(refused.build())
    }
}

impl Tries {
    /// Counts all of these or, where one is closed, none, and answers the first such one.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn take(&self, app: &App, all: Vec<Limit>) -> Result<Option<Closed>> {
        let now = app.clock().micros();
        let known = |limit: &Limit| self.0.get(&limit.name).filter(|until| *until > now);
        let mut places = all.iter().enumerate();
        let closed = places.find_map(|(place, limit)| Some((place, known(limit)?)));
        if let Some((place, until)) = closed {
            let limit = all.into_iter().nth(place);
            return Ok(limit.map(|limit| Closed { limit, until }));
        }
        let work = app
            .db()
            .write(move |tx| Box::pin(async move { count(tx, all, now).await }));
        let closed = work.await?;
        if let Some(closed) = &closed {
            self.0.insert(closed.limit.name.clone(), closed.until);
        }
        Ok(closed)
    }

    /// It was right after all: what is wrong with `wrong` is forgotten, and `counted` has one try more.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn was_right(&self, app: &App, wrong: String, counted: Option<String>) -> Result<()> {
        let (was_wrong, was_counted) = (wrong.clone(), counted.clone());
        app.db()
            .write(move |tx| {
                Box::pin(async move {
                    let mut all = vec![(wrong, DELETE)];
                    all.extend(counted.map(|counted| (counted, GIVE_BACK)));
                    all.sort_unstable();
                    for (name, change) in all {
                        tx.run(change, args![name]).await?;
                    }
                    Ok(())
                })
            })
            .await?;
        // Not before: what is refused until then is remembered.
        self.0.invalidate(&was_wrong);
        if let Some(counted) = &was_counted {
            self.0.invalidate(counted);
        }
        Ok(())
    }
}

async fn count(tx: &mut Tx, all: Vec<Limit>, now: i64) -> Result<Option<Closed>> {
    let mut held = hold_all(tx, &all, now).await?;
    let mut counted = Vec::with_capacity(all.len());
    for limit in all {
        let mut count = held.remove(&limit.name).unwrap_or_default();
        if let Some(until) = limit.rule.closed_until(&count, now) {
            return Ok(Some(Closed { limit, until }));
        }
        if !matches!(limit.rule, Rule::Full { .. }) {
            limit.rule.add(&mut count, now);
            counted.push((limit.name, count));
        }
    }
    for (name, count) in counted {
        let Count {
            began_at,
            tries,
            closed_until,
        } = count;
        let args = args![name, began_at, tries, closed_until, now + KEPT];
        tx.run(UPDATE, args).await?;
    }
    Ok(None)
}

/// What was counted of things so far. All who hold or remove several do it in the order of their names, so that no two wait for
/// each other.
async fn hold_all(tx: &mut Tx, all: &[Limit], now: i64) -> Result<BTreeMap<String, Count>> {
    let names: BTreeSet<&String> = all.iter().map(|limit| &limit.name).collect();
    let mut held = BTreeMap::new();
    for name in names {
        held.insert(name.clone(), hold(tx, name, now).await?);
    }
    Ok(held)
}

/// What was counted of a thing so far, which nobody else changes until the transaction ends.
async fn hold(tx: &mut Tx, name: &str, now: i64) -> Result<Count> {
    let row: Option<(i64, i64, i64, i64)> = tx.one(HOLD, args![name, now + KEPT]).await?;
    let (began_at, tries, closed_until, over_at) = row.unwrap_or_default();
    if over_at < now {
        return Ok(Count::default());
    }
    Ok(Count {
        began_at,
        tries,
        closed_until,
    })
}

/// Removes what says nothing any more.
///
/// # Errors
/// The database fails.
pub async fn sweep(app: &App) -> Result<()> {
    let now = app.clock().micros();
    for _ in 0..SWEEPS {
        let over: Vec<(String,)> = app.db().all(OVER, args![now, SWEPT]).await?;
        if over.is_empty() {
            break;
        }
        let mut names: Vec<String> = over.into_iter().map(|(name,)| name).collect();
        names.sort_unstable();
        app.db()
            .write(move |tx| {
                Box::pin(async move {
                    for name in names {
                        tx.run(SWEEP, args![name, now]).await?;
                    }
                    Ok(())
                })
            })
            .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_takes_so_many_and_opens_again() {
        let (most, long) = (2, MINUTE);
        let (rule, look) = (Rule::Window { most, long }, Rule::Full { most, long });
        let mut count = Count::default();
        let start = 100 * MINUTE;
        for now in [start, start + SECOND] {
            assert_eq!(rule.closed_until(&count, now), None);
            assert_eq!(look.closed_until(&count, now), None);
            rule.add(&mut count, now);
            look.add(&mut count, now);
        }
        let end = start + MINUTE;
        assert_eq!(rule.closed_until(&count, end - 1), Some(end));
        assert_eq!(look.closed_until(&count, end - 1), Some(end));
        assert_eq!(rule.closed_until(&count, end), None);
        rule.add(&mut count, end);
        assert_eq!((count.tries, count.began_at), (1, end));
    }

    #[test]
    fn waits_double_up_to_a_quarter_of_an_hour() {
        let mut count = Count::default();
        let rule = Rule::Wrong { first: 10 * SECOND };
        let mut waits = Vec::new();
        for _ in 0..20 {
            rule.add(&mut count, MINUTE);
            let until = rule.closed_until(&count, MINUTE);
            waits.push(until.map_or(0, |until| (until - MINUTE) / SECOND));
        }
        assert_eq!(waits[..8], [0, 0, 0, 0, 10, 20, 40, 80]);
        assert_eq!(waits.last(), Some(&900));
    }
}
