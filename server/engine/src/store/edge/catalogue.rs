//! Which shards there are and which collections live in them: one small file, replaced atomically.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loupe_wire::reading;
use serde::{Deserialize, Serialize};

use super::super::VectorSpec;
use super::super::shards::Shard;

const FILE: &str = "catalogue.json";
/// Version 1 did not say which shards hold one collection alone.
const VERSION: u32 = 2;

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u32,
    shards: Vec<Arc<Shard>>,
    /// Scope -> names of shards.
    collections: BTreeMap<String, BTreeSet<String>>,
    /// Documents that were moved to another shard and are still to be removed from this one.
    #[serde(default)]
    leftovers: BTreeSet<Leftover>,
}

/// A shard, by name, and the scope that left it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Leftover {
    pub shard: String,
    pub scope: String,
}

/// The file and what it says.
#[derive(Debug, Clone)]
pub struct Catalogue {
    path: PathBuf,
    shards: BTreeMap<String, Arc<Shard>>,
    collections: BTreeMap<String, BTreeSet<String>>,
    leftovers: BTreeSet<Leftover>,
}

impl Catalogue {
    /// Reads the file, or starts an empty one.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let path = dir.join(FILE);
        let stored = match fs::read(&path) {
            Ok(bytes) => reading::from_slice(&bytes).map_err(|error| {
                io::Error::other(format!("{} is damaged: {error}", path.display()))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Stored {
                version: VERSION,
                shards: Vec::new(),
                collections: BTreeMap::new(),
                leftovers: BTreeSet::new(),
            },
            Err(error) => return Err(error),
        };
        if stored.version > VERSION {
            return Err(io::Error::other(format!(
                "{} was written by a newer version",
                path.display()
            )));
        }
        let shards = stored
            .shards
            .into_iter()
            .map(|shard| (shard.name.clone(), shard))
            .collect();
        Ok(Self {
            path,
            shards,
            collections: stored.collections,
            leftovers: stored.leftovers,
        })
    }

    /// The shards of a collection.
    pub fn of<'a>(&'a self, scope: &str) -> impl Iterator<Item = &'a Arc<Shard>> {
        self.collections
            .get(scope)
            .into_iter()
            .flatten()
            .filter_map(|name| self.shards.get(name))
    }

    /// The shard that documents of a collection with these vectors go to.
    pub fn home(&self, scope: &str, vectors: &[VectorSpec]) -> Option<Arc<Shard>> {
        self.of(scope)
            .filter(|shard| shard.vectors == vectors)
            .max_by_key(|shard| shard.sole.is_some())
            .cloned()
    }

    /// The shards of these vectors in which one collection lives alone.
    pub fn alone(&self, vectors: &[VectorSpec]) -> Vec<Arc<Shard>> {
        let alone = |shard: &&Arc<Shard>| shard.sole.is_some() && shard.vectors == vectors;
        self.shards.values().filter(alone).cloned().collect()
    }

    /// Finds a collection a place: with others of the same vectors, but not with a large one.
    pub fn settle(
        &mut self,
        scope: &str,
        base: Shard,
        large: &BTreeSet<String>,
    ) -> io::Result<Arc<Shard>> {
        if let Some(known) = self.home(scope, &base.vectors) {
            return Ok(known);
        }
        let joined = self
            .shards
            .values()
            .filter(|shard| shard.vectors == base.vectors && !large.contains(&shard.name))
            .filter(|shard| !self.leftovers.contains(&leftover(scope, shard)))
            .min_by_key(|shard| shard.sole.is_some());
        let shard = Arc::new(match joined {
            Some(joined) => Shard {
                sole: joined.sole.clone().filter(|sole| sole == scope),
                ..(**joined).clone()
            },
            None => Shard {
                name: self.free_name(&base.name),
                sole: Some(scope.to_owned()),
                ..base
            },
        });
        let mut next = self.clone();
        next.shards.insert(shard.name.clone(), shard.clone());
        next.collections
            .entry(scope.to_owned())
            .or_default()
            .insert(shard.name.clone());
        self.replace(next)?;
        Ok(shard)
    }

    /// The shards where several collections live.
    pub fn shared(&self) -> Vec<Arc<Shard>> {
        let shared = |shard: &&Arc<Shard>| shard.sole.is_none();
        self.shards.values().filter(shared).cloned().collect()
    }

    /// A shard for one collection alone, with the vectors of the shard that it leaves. Nothing is noted yet.
    pub fn apart(&self, scope: &str, from: &Shard) -> Shard {
        Shard {
            name: self.free_name(&Shard::of(&from.vectors).name),
            sole: Some(scope.to_owned()),
            vectors: from.vectors.clone(),
        }
    }

    /// Notes that a collection has moved.
    pub fn moved(&mut self, scope: &str, from: &Shard, to: Arc<Shard>) -> io::Result<()> {
        let mut next = self.clone();
        let homes = next.collections.entry(scope.to_owned()).or_default();
        homes.remove(&from.name);
        homes.insert(to.name.clone());
        next.shards.insert(to.name.clone(), to);
        next.leftovers.insert(leftover(scope, from));
        self.replace(next)
    }

    /// What moves have left behind.
    pub fn leftovers(&self) -> Vec<(Leftover, Arc<Shard>)> {
        let known = |left: &Leftover| Some((left.clone(), self.shards.get(&left.shard)?.clone()));
        self.leftovers.iter().filter_map(known).collect()
    }

    /// Notes that it has been removed.
    pub fn cleaned(&mut self, leftover: &Leftover) -> io::Result<()> {
        let mut next = self.clone();
        next.leftovers.remove(leftover);
        self.replace(next)
    }

    fn free_name(&self, base: &str) -> String {
        std::iter::once(base.to_owned())
            .chain((2..).map(|n: u32| format!("{base}-{n}")))
            .find(|name| !self.shards.contains_key(name))
            .unwrap_or_else(|| base.to_owned())
    }

    /// Forgets a collection. Its shards stay: others may live there.
    pub fn forget(&mut self, scope: &str) -> io::Result<()> {
        let mut next = self.clone();
        if next.collections.remove(scope).is_none() {
            return Ok(());
        }
        self.replace(next)
    }

    /// Puts the new state on disk, and only then in place.
    fn replace(&mut self, next: Self) -> io::Result<()> {
        next.save()?;
        *self = next;
        Ok(())
    }

    fn save(&self) -> io::Result<()> {
        let stored = Stored {
            version: VERSION,
            shards: self.shards.values().cloned().collect(),
            collections: self.collections.clone(),
            leftovers: self.leftovers.clone(),
        };
        let fresh = self.path.with_extension("json.new");
        let mut file = File::create(&fresh)?;
        file.write_all(&serde_json::to_vec(&stored)?)?;
        file.sync_all()?;
        fs::rename(&fresh, &self.path)?;
        // The rename itself has to survive a power cut.
        self.path
            .parent()
            .map_or(Ok(()), |dir| File::open(dir)?.sync_all())
    }
}

fn leftover(scope: &str, shard: &Shard) -> Leftover {
    Leftover {
        shard: shard.name.clone(),
        scope: scope.to_owned(),
    }
}
