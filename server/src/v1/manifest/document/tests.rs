use serde_json::json;

use super::*;

#[test]
fn the_example_is_a_manifest() {
    let manifest = Manifest::read(EXAMPLE, &Object::new());
    assert!(manifest.faults.is_empty(), "{:?}", manifest.faults);
    let kinds: Vec<Kind> = manifest.resources.iter().map(|one| one.kind).collect();
    let expected = [
        Kind::Namespace,
        Kind::Bucket,
        Kind::Collection,
        Kind::Retriever,
    ];
    assert_eq!(kinds, expected);
    assert!(
        manifest
            .resources
            .iter()
            .all(|one| one.namespace == "films")
    );
    let parameters = &manifest.resources[3].said["stages"][0]["config"]["parameters"];
    assert_eq!(parameters["final_top_k"], 10);
}

#[test]
fn every_fault_says_where_it_is() {
    let text = "version: \"1.0\"\nparameters:\n  - {name: n, type: integer}\nnamespaces:\n  - name: one\nbuckets:\n  - name: a\n    colour: red\n    bucket_schema: {properties: {}}\n  - bucket_schema: {properties: {}}\n  - name: b\nshelves: []\n";
    let values = json!({"n": "three", "m": 1}).as_object().cloned().unwrap();
    let manifest = Manifest::read(text, &values);
    let told: Vec<String> = manifest.faults.iter().map(Fault::sentence).collect();
    for (start, part) in [
        ("line 2, parameters.n:", "no integer"),
        ("line 2, parameters.m:", "no such parameter"),
        ("line 8, buckets.0.colour:", "no such member"),
        ("line 10, buckets.1.name:", "a name"),
        ("line 11, buckets.2.bucket_schema:", "field required"),
        ("line 12, shelves:", "no such section"),
    ] {
        let found = told
            .iter()
            .any(|one| one.starts_with(start) && one.contains(part));
        assert!(found, "{start} {part}: {told:#?}");
    }
    assert_eq!(told.len(), 6, "{told:#?}");
}

#[test]
fn names_are_as_they_are_written_or_refused() {
    let text = "version: '1.0'\nnamespaces:\n  - name: one\nbuckets:\n  - {name: ' a ', bucket_schema: {properties: {}}}\n  - {name: a, bucket_schema: {properties: {}}}\n";
    let manifest = Manifest::read(text, &Object::new());
    assert!(manifest.faults.is_empty(), "{:?}", manifest.faults);
    let names = manifest.resources.iter().map(|one| one.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["one", " a ", "a"]);

    let text = "version: '1.0'\nnamespaces:\n  - name: ' one'\nbuckets:\n  - {name: a, bucket_schema: {properties: {}}}\n  - {name: b, namespace: 'two ', bucket_schema: {properties: {}}}\n";
    let manifest = Manifest::read(text, &Object::new());
    let told: Vec<String> = manifest.faults.iter().map(Fault::sentence).collect();
    let places = ["line 3, namespaces.0.name:", "line 6, buckets.1.namespace:"];
    assert_eq!(told.len(), places.len(), "{told:#?}");
    for (place, one) in places.iter().zip(&told) {
        assert!(
            one.starts_with(place) && one.contains("blanks"),
            "{told:#?}"
        );
    }
}

#[test]
fn what_would_be_far_larger_than_its_text_is_refused() {
    let filled = format!(
        "version: '1.0'\nparameters:\n  - {{name: p, default: {}}}\nnamespaces:\n  - name: one\n    description: \"{}\"\n",
        "a".repeat(60_000),
        "${{ parameters.p }}".repeat(10),
    );
    let long = json!({"version": "1.0", "namespaces": [{"name": "one", "k".repeat(3_000): [1]}]});
    let many = json!({"version": "1.0", "namespaces": vec![1; 20_000]});
    for (text, part) in [
        (filled, "filled in"),
        (long.to_string(), "names around"),
        (many.to_string(), "parts"),
    ] {
        let manifest = Manifest::read(&text, &Object::new());
        let told: Vec<String> = manifest.faults.iter().map(Fault::sentence).collect();
        assert!(
            told.len() == 1 && told[0].contains(part),
            "{part}: {told:#?}"
        );
        assert!(manifest.resources.is_empty());
    }
}
