//! Which shards there are and which collections live in them: one small file, replaced atomically.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::shards::Shard;

const FILE: &str = "catalogue.json";
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u32,
    shards: Vec<Arc<Shard>>,
    /// Scope -> names of shards.
    collections: BTreeMap<String, BTreeSet<String>>,
}

/// The file and what it says.
#[derive(Debug)]
pub struct Catalogue {
    path: PathBuf,
    shards: BTreeMap<String, Arc<Shard>>,
    collections: BTreeMap<String, BTreeSet<String>>,
}

impl Catalogue {
    /// Reads the file, or starts an empty one.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let path = dir.join(FILE);
        let stored = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                io::Error::other(format!("{} is damaged: {error}", path.display()))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Stored {
                version: VERSION,
                shards: Vec::new(),
                collections: BTreeMap::new(),
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

    /// The shard, when it is known that the collection lives there.
    pub fn find(&self, scope: &str, name: &str) -> Option<&Arc<Shard>> {
        self.collections
            .get(scope)
            .filter(|names| names.contains(name))
            .and_then(|_| self.shards.get(name))
    }

    /// Notes that a collection lives in a shard.
    pub fn note(&mut self, scope: &str, shard: Shard) -> io::Result<Arc<Shard>> {
        let shard = self
            .shards
            .entry(shard.name.clone())
            .or_insert_with(|| Arc::new(shard))
            .clone();
        if self
            .collections
            .entry(scope.to_owned())
            .or_default()
            .insert(shard.name.clone())
        {
            self.save()?;
        }
        Ok(shard)
    }

    /// Forgets a collection. Its shards stay: others may live there.
    pub fn forget(&mut self, scope: &str) -> io::Result<()> {
        if self.collections.remove(scope).is_some() {
            self.save()
        } else {
            Ok(())
        }
    }

    fn save(&self) -> io::Result<()> {
        let stored = Stored {
            version: VERSION,
            shards: self.shards.values().cloned().collect(),
            collections: self.collections.clone(),
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
