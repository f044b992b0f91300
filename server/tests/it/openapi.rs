//! The description of the API is a committed file: a change of the interface is a visible change of that file.

#[test]
fn the_description_equals_the_committed_snapshot() {
    let document = loupe_server::openapi::document();
    let now = document.to_pretty_json().unwrap() + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi.json");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == now,
        "the description of the API changed: look at the difference, then run the tests with UPDATE_SNAPSHOTS=1 and commit openapi.json"
    );
}

/// A description that refers to what it does not hold generates no client.
#[test]
fn every_reference_resolves() {
    let document = loupe_server::openapi::document();
    let document = serde_json::to_value(document).unwrap();
    let mut places = vec![&document];
    let mut count = 0;
    while let Some(place) = places.pop() {
        if let Some(target) = place.get("$ref").and_then(|target| target.as_str()) {
            assert!(
                document.pointer(&target[1..]).is_some(),
                "{target} is not there"
            );
            count += 1;
        }
        match place {
            serde_json::Value::Object(members) => places.extend(members.values()),
            serde_json::Value::Array(items) => places.extend(items),
            _ => {}
        }
    }
    assert!(count > 500, "only {count} references");
}

/// Clients name their functions after the operations.
#[test]
fn every_operation_has_a_name_of_its_own() {
    let document = loupe_server::openapi::document();
    let document = serde_json::to_value(document).unwrap();
    let mut names = std::collections::BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if let Some(name) = operation["operationId"].as_str()
                && let Some(other) = names.insert(name.to_owned(), (method, path))
            {
                panic!("{method} {path} and {other:?} are both called {name}");
            }
        }
    }
    assert!(names.len() > 200, "only {} operations", names.len());
}
