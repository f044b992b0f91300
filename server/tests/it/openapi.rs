//! The description of the API is a committed file: a change of the interface is a visible change of that file.

#[test]
fn the_description_equals_the_committed_snapshot() {
    let (_, document) = loupe_server::v1::router();
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
