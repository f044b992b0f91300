//! Links to files that stay in a storage of the organization's own. They are sealed: one may lie in a storage that others write to.

use loupe_wire::{StorageConnectionModel, reading};
use object_store::aws::AmazonS3;
use serde::{Deserialize, Serialize};

use super::{opened_by, s3::Access};
use crate::{
    error::{ApiError, Result},
    outbound::Outbound,
    vault::Vault,
};

/// What links are sealed for.
const SEALED: [&str; 1] = ["link to a file"];

/// Where a file is, and the connection that it is read through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub org_id: String,
    pub connection_id: String,
    /// Of the storage.
    pub bucket: String,
    pub key: String,
}

impl Link {
    /// The text that is kept in the place of the file.
    ///
    /// # Errors
    /// As [`Vault::seal`].
    pub fn seal(&self, vault: &Vault) -> Result<String> {
        let text = serde_json::to_string(self).map_err(ApiError::internal)?;
        vault.seal(&SEALED, &text)
    }

    /// # Errors
    /// The text is no link of this server.
    pub fn open(vault: &Vault, sealed: &str) -> Result<Self> {
        let text = vault.open(&SEALED, sealed)?;
        reading::from_str(&text).map_err(ApiError::internal)
    }

    /// The storage, through the connection as it is now.
    ///
    /// # Errors
    /// The connection leads to where this server may not go, or is of another kind by now.
    pub fn store(
        &self,
        (vault, outbound): (&Vault, &Outbound),
        connection: &StorageConnectionModel,
    ) -> Result<AmazonS3> {
        let config = opened_by(vault, &self.org_id, connection)?;
        let access = Access::read(connection.provider_type, &config, outbound)?;
        access.bucket(outbound, &self.bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_as_it_was_sealed_and_nothing_else_does() {
        let vault = Vault::new(&[7; 32]).unwrap();
        let link = Link {
            org_id: "org_1".into(),
            connection_id: "conn_1".into(),
            bucket: "films".into(),
            key: "a/b c.mp4".into(),
        };
        let sealed = link.seal(&vault).unwrap();
        assert!(!sealed.contains("films"));
        assert_eq!(Link::open(&vault, &sealed).unwrap(), link);
        let plain = serde_json::to_string(&link).unwrap();
        let other = vault.seal(&["another place"], &plain).unwrap();
        for text in [plain.as_str(), other.as_str(), ""] {
            assert!(Link::open(&vault, text).is_err(), "{text}");
        }
    }
}
