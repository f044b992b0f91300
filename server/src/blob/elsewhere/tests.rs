use object_store::memory::InMemory;

use super::*;

#[derive(Debug)]
struct One(Found);

#[async_trait]
impl Places for One {
    async fn find(&self, namespace_id: &str, place_id: &str) -> std::result::Result<Found, String> {
        match (namespace_id, place_id) {
            ("ns_1", "at_1") => Ok(self.0.clone()),
            ("ns_1", "at_2") => Err("nobody can tell".into()),
            _ => Ok(Found::Nowhere),
        }
    }

    async fn follow(&self, link: &str) -> std::result::Result<(Found, Key), String> {
        match link.strip_prefix("to ") {
            Some(file) => Ok((self.0.clone(), key(file))),
            None => Err("this is no link".into()),
        }
    }
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn routed(found: Found) -> (Routed, Arc<dyn ObjectStore>) {
    let own: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    (Routed::new(own.clone(), Arc::new(One(found))), own)
}

async fn keys(store: &dyn ObjectStore, prefix: &str) -> Vec<String> {
    let listed = store.list(Some(&key(prefix)));
    let metas: Vec<ObjectMeta> = listed.try_collect().await.unwrap();
    metas
        .into_iter()
        .map(|one| one.location.to_string())
        .collect()
}

#[test]
fn what_a_key_begins_with_tells_where_it_is() {
    for (text, expected) in [
        ("ns_1/objects/obj_1/a.txt", "ns_1"),
        ("ns_1/at_1/objects/obj_1/a.txt", "ns_1/at_1"),
        ("ns_1/at_1", "ns_1/at_1"),
        ("ns_1/snapshots/snap_1/files/ns_1/at_1/objects/a", "ns_1"),
        ("health", "health"),
    ] {
        assert_eq!(root(text), expected, "{text}");
        assert_eq!(is_elsewhere(text), expected.contains('/'), "{text}");
    }
}

#[tokio::test]
async fn a_file_goes_to_its_place_and_comes_from_there() {
    let there: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let open = Found::Open {
        store: there.clone(),
        writes: true,
    };
    let (routed, own) = routed(open);
    let (here, away) = (key("ns_1/uploads/a.txt"), key("ns_1/at_1/objects/o/a.txt"));
    routed.put(&here, "a file".into()).await.unwrap();
    routed.copy(&here, &away).await.unwrap();
    assert_eq!(keys(&own, "ns_1").await, ["ns_1/uploads/a.txt"]);
    assert_eq!(keys(&there, "objects").await, ["objects/o/a.txt"]);
    let found = routed.get(&away).await.unwrap();
    assert_eq!(found.meta.location, away);
    assert_eq!(found.bytes().await.unwrap(), "a file");
    // Within the place, and back.
    let second = key("ns_1/at_1/objects/o/b.txt");
    routed.copy(&away, &second).await.unwrap();
    routed.copy(&second, &key("ns_1/back/b.txt")).await.unwrap();
    assert_eq!(keys(&own, "ns_1/back").await, ["ns_1/back/b.txt"]);
    let found = keys(&routed, "ns_1/at_1/objects/o").await;
    assert_eq!(found, [away.to_string(), second.to_string()]);
    routed.delete(&away).await.unwrap();
    assert_eq!(keys(&there, "objects").await, ["objects/o/b.txt"]);
}

#[tokio::test]
async fn what_is_closed_is_neither_read_nor_emptied() {
    let there: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    there.put(&key("objects/a"), "a file".into()).await.unwrap();
    let reading = Found::Open {
        store: there.clone(),
        writes: false,
    };
    let file = key("ns_1/at_1/objects/a");
    for (found, is_read) in [(Found::Closed, false), (reading, true)] {
        let (routed, _) = routed(found);
        assert_eq!(routed.get(&file).await.is_ok(), is_read);
        assert!(routed.put(&file, "another".into()).await.is_err());
        routed.delete(&file).await.unwrap();
        assert!(keys(&routed, "ns_1/at_1").await.is_empty());
    }
    assert_eq!(keys(&there, "objects").await, ["objects/a"]);
}

#[tokio::test]
async fn a_link_is_read_as_its_file_and_goes_without_it() {
    let there: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    there.put(&key("films/a"), "a film".into()).await.unwrap();
    let open = Found::Open {
        store: there.clone(),
        writes: true,
    };
    let (routed, own) = routed(open);
    let (link, kept) = (key("ns_1/objects/o/link_1/a"), key("ns_1/snapshots/a"));
    routed.put(&link, "to films/a".into()).await.unwrap();
    let found = routed.get(&link).await.unwrap();
    assert_eq!((&found.meta.location, found.meta.size), (&link, 6));
    assert_eq!(found.bytes().await.unwrap(), "a film");
    assert_eq!(routed.get_range(&link, 2..6).await.unwrap(), "film");
    // What is copied and removed is the link.
    routed.copy(&link, &kept).await.unwrap();
    routed.delete(&link).await.unwrap();
    assert_eq!(keys(&own, "ns_1").await, ["ns_1/snapshots/a"]);
    assert_eq!(keys(&there, "films").await, ["films/a"]);
    routed.copy(&kept, &link).await.unwrap();
    assert_eq!(routed.head(&link).await.unwrap().size, 6);
    there.delete(&key("films/a")).await.unwrap();
    let gone = routed.get(&link).await.err().map(|error| error.to_string());
    assert!(gone.is_some_and(|said| said.contains(&link.to_string())));
    let gone = routed.get(&key("ns_1/objects/o/link_2/a")).await;
    assert!(matches!(gone, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn a_place_that_is_unknown_and_one_that_does_not_answer_are_told_apart() {
    let (routed, _) = routed(Found::Closed);
    let nowhere = routed.get(&key("ns_2/at_1/objects/a")).await;
    assert!(matches!(nowhere, Err(Error::NotFound { .. })));
    let unknown = routed.get(&key("ns_1/at_2/objects/a")).await;
    assert!(matches!(unknown, Err(Error::Generic { store: NAME, .. })));
    assert!(routed.delete(&key("ns_1/at_2/objects/a")).await.is_err());
}
