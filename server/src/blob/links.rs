//! Files that stay in a storage of the organization's own. Where such a file would be kept is a link, which tells where it is: it
//! goes, and is copied, as a file; whoever reads it reads what it leads to.

use object_store::{Error, GetOptions, Result, path::Path as Key};

use super::elsewhere::{At, Found, Routed, away, root};

/// What failures of a source are told by.
pub(super) const NAME: &str = "file's source";

/// What the folder of a link begins with, where that of a file is its blob's id.
pub const LINK: &str = "link_";

/// Whether what is at the key of an object's file is a link.
pub fn is_linked(key: &str) -> bool {
    let below = key.strip_prefix(root(key)).unwrap_or_default();
    let mut pieces = below.trim_start_matches('/').split('/');
    // Then the object's id, and the folder of this file.
    pieces.next() == Some("objects") && pieces.nth(1).is_some_and(|one| one.starts_with(LINK))
}

impl Routed {
    /// Where a link leads that was found at this place.
    pub(super) async fn followed(&self, link: At, asked: &Key) -> Result<At> {
        let text = link.get(GetOptions::default()).await?.bytes().await?;
        let text = String::from_utf8_lossy(&text);
        let found = self.places().follow(&text).await;
        match found.map_err(|error| away(NAME, error))? {
            (Found::Open { store, .. }, key) => Ok(At {
                store,
                key,
                asked: Some((asked.clone(), NAME)),
            }),
            (Found::Closed, _) => Err(away(
                NAME,
                "the storage connection of the file's source is not active",
            )),
            (Found::Nowhere, _) => Err(Error::NotFound {
                path: asked.to_string(),
                source: "the connection of the file's source is gone".into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_known_by_its_key() {
        for (key, expected) in [
            ("ns_1/objects/obj_1/link_1/a.txt", true),
            ("ns_1/at_1/objects/obj_1/link_1/a.txt", true),
            ("ns_1/objects/obj_1/blob_1/link_1", false),
            ("ns_1/objects/link_1/blob_1/a.txt", false),
            ("ns_1/documents/col_1/link_1/a.txt", false),
            (
                "ns_1/snapshots/s/files/ns_1/objects/obj_1/link_1/a.txt",
                false,
            ),
            ("ns_1", false),
        ] {
            assert_eq!(is_linked(key), expected, "{key}");
        }
    }
}
