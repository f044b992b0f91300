//! The nodes of taxonomies that documents belong to, as their own records tell them: sessions are told apart by them.

use std::collections::{BTreeSet, HashMap};

use indexmap::IndexMap;
use loupe_engine::store::WithVectors;
use loupe_wire::Value;

use super::figures::Session;
use crate::{
    app::App,
    auth::{Read, Scope},
    error::Result,
    v1::collections::COLLECTIONS,
};

/// Documents of one question to the store.
const TOGETHER: usize = 500;

/// Nodes whose sessions are measured on their own where nobody named any: those with most of them.
const MOST: usize = 20;

/// By document: its nodes.
pub type Nodes = HashMap<String, BTreeSet<String>>;

/// The nodes of the documents that something was done with.
///
/// # Errors
/// The database or the store does not answer.
pub async fn of(app: &App, scope: &Scope<Read>, sessions: &[Session]) -> Result<Nodes> {
    let acts = sessions.iter().flat_map(|session| &session.acts);
    let ids: BTreeSet<String> = acts.map(|act| act.document_id.clone()).collect();
    let ids: Vec<String> = ids.into_iter().collect();
    let collections = COLLECTIONS.all(app.db(), &scope.namespace_id).await?;
    let collections = collections.into_iter().map(|collection| collection.id);
    let reach = scope.reach(collections.collect());
    let mut nodes = Nodes::new();
    for some in ids.chunks(TOGETHER) {
        for document in app.store().get(&reach, some, WithVectors::No).await? {
            let internal = document.payload.get("_internal");
            let lineage = internal.map(|internal| &internal["processing"]["taxonomy_lineage"]);
            let lineage = lineage.and_then(Value::as_array).into_iter().flatten();
            let named: BTreeSet<String> = lineage
                .filter_map(|one| one["node_id"].as_str())
                .map(ToOwned::to_owned)
                .collect();
            if !named.is_empty() {
                nodes.insert(document.document_id, named);
            }
        }
    }
    Ok(nodes)
}

/// The nodes of the documents that something was done with in a session.
fn of_session<'a>(session: &Session, nodes: &'a Nodes) -> BTreeSet<&'a str> {
    let acts = session.acts.iter();
    let found = acts.filter_map(|act| nodes.get(&act.document_id));
    found.flatten().map(String::as_str).collect()
}

/// Whether a session is one of these nodes.
pub fn touches(session: &Session, nodes: &Nodes, wanted: &[String]) -> bool {
    let own = of_session(session, nodes);
    wanted.iter().any(|node| own.contains(node.as_str()))
}

/// The places of each node's sessions: of the nodes that were named, else of those with most sessions.
pub fn apart(
    sessions: &[Session],
    nodes: &Nodes,
    wanted: Option<&[String]>,
) -> IndexMap<String, Vec<usize>> {
    let mut found: IndexMap<&str, Vec<usize>> = IndexMap::new();
    let is_wanted = |node: &str| wanted.is_none_or(|all| all.iter().any(|one| one == node));
    for (place, session) in sessions.iter().enumerate() {
        let own = of_session(session, nodes).into_iter();
        for node in own.filter(|node| is_wanted(node)) {
            found.entry(node).or_default().push(place);
        }
    }
    if wanted.is_none() {
        found.sort_by(|a, one, b, other| other.len().cmp(&one.len()).then(a.cmp(b)));
        found.truncate(MOST);
    }
    let found = found.into_iter();
    found
        .map(|(node, places)| (node.to_owned(), places))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::benchmarks::figures::Act;

    fn session(documents: &[&str]) -> Session {
        let act = |document: &&str| Act {
            document_id: (*document).to_owned(),
            position: 0,
            weight: 1.0,
            clicked: true,
            purchased: false,
        };
        Session {
            query: 0,
            acts: documents.iter().map(act).collect(),
        }
    }

    #[test]
    fn sessions_are_of_the_nodes_of_what_was_acted_on() {
        let set = |names: &[&str]| -> BTreeSet<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let nodes: Nodes = [
            ("a".to_owned(), set(&["sea"])),
            ("b".to_owned(), set(&["food", "sea"])),
        ]
        .into();
        let all = [session(&["a", "b"]), session(&["b"]), session(&["c"])];
        let counts = |wanted: Option<&[String]>| -> Vec<(String, usize)> {
            let found = apart(&all, &nodes, wanted).into_iter();
            found.map(|(node, of)| (node, of.len())).collect()
        };
        let expected = [("food".to_owned(), 2), ("sea".to_owned(), 2)];
        assert_eq!(counts(None), expected);
        assert_eq!(counts(Some(&["sea".to_owned()])), expected[1..]);
        assert!(touches(&all[0], &nodes, &["food".to_owned()]));
        assert!(!touches(&all[2], &nodes, &["food".to_owned()]));
    }
}
