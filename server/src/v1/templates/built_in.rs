//! The server's own templates, which are data: `built_in.json`.

use std::sync::LazyLock;

use loupe_wire::{BaseTemplateModel, Object, TemplateType, Value, reading};

const DATA: &str = include_str!("built_in.json");

static ALL: LazyLock<Vec<BaseTemplateModel>> =
    LazyLock::new(|| read().expect("data of the program that a test reads"));

/// Those of a kind.
pub fn of(kind: TemplateType) -> impl Iterator<Item = &'static BaseTemplateModel> {
    ALL.iter().filter(move |one| one.template_type == kind)
}

/// The one with this id, whatever it makes.
pub fn named(template_id: &str) -> Option<&'static BaseTemplateModel> {
    ALL.iter().find(|one| one.template_id == template_id)
}

fn read() -> Result<Vec<BaseTemplateModel>, reading::Fault> {
    let mut all: Vec<BaseTemplateModel> = reading::from_str(DATA)?;
    let parts = all.clone();
    for one in &mut all {
        if one.template_type == TemplateType::Namespace {
            compose(&mut one.configuration, &parts);
        }
    }
    Ok(all)
}

/// A namespace names the templates that it is made of: in their places stand the requests that they are.
fn compose(configuration: &mut Object, parts: &[BaseTemplateModel]) {
    let members = configuration.iter_mut();
    let requests = members.filter_map(|(_, member)| member.as_array_mut());
    let requests = requests.flatten().filter_map(Value::as_object_mut);
    for request in requests {
        let named = request.get("template").and_then(Value::as_str);
        let Some(part) = parts.iter().find(|one| Some(&*one.template_id) == named) else {
            continue;
        };
        let mut whole = part.configuration.clone();
        whole.insert("description".to_owned(), part.description.clone().into());
        whole.extend(std::mem::take(request));
        whole.retain(|name, _| name != "template");
        *request = whole;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_templates_are_read_and_told_apart() {
        let all = read().unwrap();
        let ids: HashSet<&str> = all.iter().map(|one| one.template_id.as_str()).collect();
        assert_eq!(ids.len(), all.len());
        for one in &all {
            let rest = one.template_id.strip_prefix("tmpl_").unwrap();
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(rest.chars().all(is_plain), "{rest}");
            assert!((1..=100).contains(&one.name.len()), "{rest}");
            assert!((1..=1000).contains(&one.description.len()), "{rest}");
            assert!(
                one.category.is_some() && !one.configuration.is_empty(),
                "{rest}"
            );
            let text = serde_json::to_string(&one.configuration).unwrap();
            assert!(
                !text.contains("\"template\""),
                "{rest} names a part that is not there"
            );
        }
    }
}
