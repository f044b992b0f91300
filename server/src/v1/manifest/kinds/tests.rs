use super::*;

#[test]
fn every_kind_takes_members_and_has_operations() {
    for kind in Kind::ALL {
        let members = kind.members();
        assert!(members.len() > 2, "{kind:?}: {members:?}");
        assert!(members.contains(&"description".to_owned()), "{kind:?}");
        assert!(
            kind.changeable().contains(&"description".to_owned()),
            "{kind:?}"
        );
        for operation in kind.operations() {
            let (method, path) = operation.split_once(' ').unwrap();
            let found = table::find(&method.parse().unwrap(), path);
            assert!(matches!(found, Found::Row(_)), "{operation}");
        }
        for name in kind.untold().iter().chain(kind.later()) {
            assert!(members.iter().any(|one| one == name), "{kind:?}: {name}");
        }
    }
    assert!(!Kind::Retriever.changeable().contains(&"stages".to_owned()));
}
