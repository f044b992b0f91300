use super::*;
use serde_json::json;

fn context() -> Context {
    let inputs = json!({"query": "red shoes", "n": 5, "tags": ["a", "b", "c"], "deep": {"key one": "v"}, "nothing": null});
    let mut context = Context::new(inputs.as_object().unwrap(), context_now());
    context.set("DOC", &json!({"title": "T", "z": 1, "a": 2}));
    context.set_secrets(Arc::new(|name| (name == "token").then(|| "s3".to_owned())));
    context
}

fn context_now() -> DateTime<Utc> {
    DateTime::parse_from_rfc3339("2026-11-21T12:00:00Z")
        .unwrap()
        .to_utc()
}

fn value(template: &str) -> Value {
    render_value(&json!(template), &context()).unwrap()
}

#[test]
fn one_expression_keeps_its_type_and_more_give_text() {
    assert_eq!(value("{{INPUT.n}}"), json!(5));
    assert_eq!(value("  {{ inputs.tags }} "), json!(["a", "b", "c"]));
    assert_eq!(value("{{ InPuT.tags[0:2] }}"), json!(["a", "b"]));
    assert_eq!(value("{{INPUT.query}}: {{INPUT.n}}"), json!("red shoes: 5"));
    assert_eq!(
        value("{{ inputs['deep']['key one'] }}/{{ INPUT.tags[1] }}"),
        json!("v/b")
    );
    assert_eq!(value("{{ INPUT.gone.deeper }}"), json!(null));
    assert_eq!(value("x{{ INPUT.gone.deeper }}y"), json!("xy"));
    assert_eq!(value("no template"), json!("no template"));
    let nested = json!({"a": [{"b": "{{INPUT.n}}"}], "{{INPUT.n}}": 1});
    assert_eq!(
        render_value(&nested, &context()).unwrap(),
        json!({"a": [{"b": 5}], "{{INPUT.n}}": 1})
    );
}

#[test]
fn the_filters_and_functions_of_the_vocabulary_work() {
    let cases = [
        ("{{ DOC|tojson }}", json!(r#"{"title":"T","z":1,"a":2}"#)),
        ("{{ INPUT.tags|join('-') }}", json!("a-b-c")),
        ("{{ INPUT.tags|length }}", json!(3)),
        ("{{ INPUT.tags|first }}{{ INPUT.tags|last }}", json!("ac")),
        ("{{ INPUT.query|truncate(6) }}", json!("red...")),
        ("{{ INPUT.tags|map('upper')|list }}", json!(["A", "B", "C"])),
        ("{{ INPUT.gone|default('d')|upper }}", json!("D")),
        ("{{ 'ABC'|lower }}", json!("abc")),
        ("{{ secret.token }}{{ SECRETS.other }}", json!("s3")),
        ("{{ utc_now() }}", json!("2026-11-21T12:00:00.000Z")),
        (
            "{{ time_ago(hours=2, minutes=30) }}",
            json!("2026-11-21T09:30:00.000Z"),
        ),
        ("{{ {'a': {'b': 1}} }}", json!({"a": {"b": 1}})),
        ("{{ '}}' }}", json!("}}")),
        ("{{ INPUT.n if INPUT.gone is undefined else 0 }}", json!(5)),
    ];
    for (template, expected) in cases {
        assert_eq!(value(template), expected, "{template}");
    }
}

#[test]
fn blocks_are_text_and_everything_else_is_refused() {
    let block = "{% for i in INPUT.tags %}x{% endfor %}{# note #}";
    assert_eq!(value(block), json!(block));
    let fails = |t: &str| render_value(&json!(t), &context()).unwrap_err().0;
    assert!(fails("{{ INPUT.query").contains("never closed"));
    assert!(fails("{{ range(3) }}").contains("range"));
    assert!(fails("{{ utc_now }}").contains("write `utc_now()`"));
    assert!(fails("{{ INPUT.query|shell }}").contains("the filters are tojson"));
    assert!(fails("{{ time_ago(years=1) }}").contains("years"));
    assert!(fails("{{ 'aaaaaaaaaa' * 900000000 }}").len() < 200);
    assert!(check("{{ 1 + }}").is_err());
    let unknown = check("{{ INPUT.query | upper|shell('x') }}").unwrap_err().0;
    assert!(
        unknown.contains("filter shell is unknown; the filters are tojson"),
        "{unknown}"
    );
    // One that was stored before is told by whoever comes to it.
    let never = "{{ INPUT.query if INPUT.query else INPUT.query|shell }}";
    assert!(check(never).is_err() && check_stored(never).is_ok());
    let (loc, _) = check_value(&json!({"a": [never]})).unwrap_err();
    assert_eq!(loc, ["a", "0"]);
    assert!(check_stored_value(&json!({"a": [never]})).is_ok());
    assert_eq!(render_text(never, &context()).unwrap(), "red shoes");
    assert!(check_stored("{{ 1 + }}").is_err());
    assert!(check("{{ INPUT.tags|map('upper')|list|default('a|b') }}").is_ok());
    let (loc, _) = check_value(&json!({"a": ["ok", "{{ 1 + }}"]})).unwrap_err();
    assert_eq!(loc, ["a", "1"]);
}

#[test]
fn a_missing_operand_is_told() {
    let operand = |t: Value| render_operand(&t, &context()).unwrap();
    assert_eq!(
        operand(json!("{{INPUT.gone}}")),
        Rendered::Missing("INPUT.gone".into())
    );
    assert_eq!(
        operand(json!("{{INPUT.nothing}}")),
        Rendered::Missing("INPUT.nothing".into())
    );
    assert_eq!(
        operand(json!(["{{INPUT.n}}", "x-{{INPUT.gone}}"])),
        Rendered::Missing("INPUT.gone".into())
    );
    assert_eq!(
        operand(json!(["{{INPUT.n}}", 2])),
        Rendered::Value(json!([5, 2]))
    );
}

#[test]
fn an_expression_takes_no_more_of_the_stack_than_it_may() {
    let long = |before: &str, link: &str, after: &str| {
        format!("{{{{ {before}{}{after} }}}}", link.repeat(7_000))
    };
    for template in [
        long("", "1 ~ ", "1"),
        long("", "1 - ", "1"),
        long("", "- ", "1"),
        long("", "not ", "1"),
        long("1", " if 1", ""),
        long("1", " is none", ""),
        long("INPUT", ".a", ""),
        long("INPUT", "[0]", ""),
        long("INPUT.n", "|upper", ""),
        long("INPUT", "()", ""),
    ] {
        let told = check(&template).unwrap_err().0;
        assert!(told.len() < 200 && told.contains("at most"), "{told}");
        let rendered = render_text(&template, &context());
        assert_eq!(rendered.unwrap_err().0, told);
    }
    let fields = ["DOC.title"; 20].join(" ~ ', ' ~ ");
    assert!(check(&format!("{{{{ {fields} }}}}")).is_err());
    let fields = ["DOC.title"; 15].join(" ~ ', ' ~ ");
    assert_eq!(
        value(&format!("{{{{ {fields} }}}}")),
        Value::from(["T"; 15].join(", "))
    );
}

#[test]
fn an_expression_takes_no_more_memory_than_it_may() {
    for template in [
        "{{ 'x' * 3 }}",
        "{{ [INPUT.n] * 100000000 }}",
        "{{ INPUT.n ** 2 }}",
    ] {
        assert_eq!(check(template).unwrap_err().0, "templates do not multiply");
        assert!(render_text(template, &context()).is_err());
    }
    assert_eq!(value(r#"{{ "a * \" ~" ~ 'b**' }}"#), json!("a * \" ~b**"));
    let lists: Vec<Value> = (0..300).map(|_| json!([1, 1])).collect();
    let inputs = json!({"lists": lists, "between": "x".repeat(900_000), "half": "x".repeat(20 << 20), "zeros": vec![0; 300], "n": 5});
    let context = Context::new(inputs.as_object().unwrap(), context_now());
    let fails = |template: &str| render_text(template, &context).unwrap_err().0;
    for template in [
        "{{ INPUT.lists|map('join', INPUT.between)|length }}",
        "{{ INPUT.zeros|map('default', INPUT.between, true) }}",
        "{{ INPUT.zeros|map('default', INPUT.between, true)|length }}",
        "{{ [INPUT.half, INPUT.half]|length }}",
        "{{ [INPUT.half, INPUT.half]|map('upper')|list|length }}",
    ] {
        assert!(
            fails(template).contains("bytes of memory"),
            "{}",
            fails(template)
        );
    }
    // What one expression took is not held against the next.
    let fine = "{{ INPUT.lists|map('join', '-')|length }} {{ INPUT.half|length }} {{ INPUT.half|truncate(4) }}";
    assert_eq!(render_text(fine, &context).unwrap(), "300 20971520 x...");
}
