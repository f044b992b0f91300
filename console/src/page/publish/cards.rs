//! Which fields the cards and the pages of results show.

use serde_json::Value;

use super::draft::put;

/// Lists that mean something else empty than absent: nothing at all, and what the page makes of its fields.
const LISTS: [&str; 2] = ["card_fields", "modal_fields"];

/// Where the last box was taken away the choice is the page's again. A list that was empty before stays one.
pub fn settle(form: &mut Value, before: &Value) {
    for list in LISTS {
        let place = format!("/components/result_card/{list}");
        let is_empty = |all: &Value| {
            let held = all.pointer(&place).and_then(Value::as_array);
            held.is_some_and(Vec::is_empty)
        };
        if is_empty(form) && !is_empty(before) {
            put(form, &["components", "result_card", list], None);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_without_a_box_is_the_choice_of_the_page() {
        let card = |fields: Value| json!({"components": {"result_card": fields}});
        let chosen = card(json!({"card_fields": ["year"], "modal_fields": []}));
        let mut form = card(json!({"card_fields": [], "modal_fields": []}));
        settle(&mut form, &chosen);
        assert_eq!(form, card(json!({"modal_fields": []})));
        let mut form = chosen.clone();
        settle(&mut form, &json!({}));
        assert_eq!(form, card(json!({"card_fields": ["year"]})));
    }
}
