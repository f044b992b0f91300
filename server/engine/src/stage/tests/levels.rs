//! What documents take over from the levels of a taxonomy.

use loupe_wire::HierarchicalEnrichmentStyle;

use super::*;
use crate::stage::taxonomy::{Match, Shape, Taxonomy};

fn chain() -> (Taxonomy, [Match; 2]) {
    let found = |level: usize, document: Value| Match {
        node_id: format!("col_{level}"),
        label: format!("level {level}"),
        score: Some(0.5 + level as f64 / 10.0),
        path: Vec::new(),
        depth: level,
        level,
        document,
    };
    let taxonomy = Taxonomy {
        taxonomy_id: "tax_1".into(),
        name: "levels".into(),
        version: 1,
        shape: Shape::Levels,
        levels: Vec::new(),
        top_k: 1,
    };
    let goods =
        json!({"document_id": "g", "code": "x", "dept": "goods", "team": "A", "score": 1.0});
    let tools = json!({"document_id": "t", "code": "x", "dept": "tools", "own": 2, "none": null});
    (taxonomy, [found(0, goods), found(1, tools)])
}

#[test]
fn levels_that_name_no_fields_give_what_the_document_lacks() {
    let (taxonomy, chain) = chain();
    let taken = |style: HierarchicalEnrichmentStyle| {
        let mut document = json!({"code": "x", "own": 1});
        let written = taxonomy.enrich(&mut document, &chain, None, style);
        (document, written)
    };
    let (combined, written) = taken(HierarchicalEnrichmentStyle::Combined);
    assert_eq!(
        combined,
        json!({"code": "x", "own": 1, "dept": "tools", "team": "A"})
    );
    assert_eq!(written, ["dept", "team"]);
    let (whole, written) = taken(HierarchicalEnrichmentStyle::FullChain);
    let lists = json!({"code": "x", "own": 1, "dept": ["goods", "tools"], "team": ["A"]});
    assert_eq!((whole, written.len()), (lists, 2));
    let (best, _) = taken(HierarchicalEnrichmentStyle::BestMatch);
    assert_eq!(best, json!({"code": "x", "own": 1, "dept": "tools"}));
}
