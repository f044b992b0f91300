//! Who may search a page, and how often: its password and its limits.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::form::{beside, entry, section, tick, typed};
use crate::record::Record;

/// Searches of one address an hour where a page limits them and no number is given.
const ADDRESS_HOUR: &str = "1000";

#[derive(Clone, Copy)]
pub struct Access {
    /// The limits that the form began with.
    base: StoredValue<Value>,
    /// Whether the page has a password.
    locked: bool,
    /// The secret that holds the password; none leaves it as it is.
    secret: RwSignal<String>,
    /// Whether the password is taken away.
    opened: RwSignal<bool>,
    /// Whether there are limits at all.
    limited: RwSignal<bool>,
    minute: RwSignal<String>,
    hour: RwSignal<String>,
    day: RwSignal<String>,
    address: RwSignal<String>,
    most: RwSignal<String>,
}

impl Access {
    pub fn new(page: &Record) -> Self {
        let limits = page.record("rate_limit_config");
        let number = |name: &str| RwSignal::new(limits.opt(name).unwrap_or_default());
        let address = number("max_requests_per_ip_hour");
        if limits.flag("enable_ip_limits") && address.with_untracked(String::is_empty) {
            address.set(ADDRESS_HOUR.to_owned());
        }
        let base = match limits.0.is_object() {
            true => limits.0.clone(),
            false => json!({}),
        };
        Self {
            locked: page.flag("password_protected"),
            secret: RwSignal::new(String::new()),
            opened: RwSignal::new(false),
            limited: RwSignal::new(limits.value("enabled").is_none() || limits.flag("enabled")),
            minute: number("requests_per_minute"),
            hour: number("requests_per_hour"),
            day: number("requests_per_day"),
            address,
            most: number("max_results_per_query"),
            base: StoredValue::new(base),
        }
    }

    /// Puts it into a request that publishes the page or changes it.
    pub fn add_to(self, body: &mut Value) {
        body["rate_limit_config"] = self.limits();
        let secret = self.secret.get();
        if !secret.is_empty() {
            body["password_secret_name"] = secret.into();
        } else if self.locked && self.opened.get() {
            body["password_secret_name"] = "".into();
        }
    }

    /// The limits, those that the form does not know as they were.
    fn limits(self) -> Value {
        let mut all = self.base.get_value();
        let by_address = "max_requests_per_ip_hour";
        let had = all.get(by_address).is_some();
        for (name, value) in [
            ("requests_per_minute", self.minute),
            ("requests_per_hour", self.hour),
            ("requests_per_day", self.day),
            (by_address, self.address),
            ("max_results_per_query", self.most),
        ] {
            let value = value.get();
            let value = value.trim();
            if !value.is_empty() {
                // What is no number is the server's to refuse.
                let number = value.parse::<i64>();
                all[name] = number.map_or_else(|_| value.into(), Value::from);
            } else if let Some(members) = all.as_object_mut() {
                members.shift_remove(name);
            }
        }
        let has = all.get(by_address).is_some();
        if has || had {
            all["enable_ip_limits"] = has.into();
        }
        let limited = self.limited.get();
        if !limited || all.get("enabled").is_some() {
            all["enabled"] = limited.into();
        }
        all
    }

    /// Whether visitors will be asked for a password.
    pub fn is_locked(self) -> bool {
        !self.secret.with(String::is_empty) || (self.locked && !self.opened.get())
    }
}

pub fn form(access: Access) -> AnyView {
    let hint = match access.locked {
        true => "The page has a password; that of a secret named here takes its place.",
        false => {
            "The name of a secret: visitors are asked for what it holds. Without one the page is open."
        }
    };
    let number = |named, value, place, hint| typed(named, "number", value, place, hint);
    let open = access.locked;
    let open = open.then(|| tick("Without a password from now on", access.opened, ""));
    let all = "Of all visitors together.";
    section(
        "page-access",
        "Who may search, and how often",
        vec![
            entry(
                ("page-secret", "Secret with the password"),
                access.secret,
                "password_secret_name",
                hint,
            ),
            open.into_any(),
            tick(
                "Searches are limited",
                access.limited,
                "Without it no number of searches is too many.",
            ),
            beside(vec![
                number(
                    ("page-minute", "Searches a minute"),
                    access.minute,
                    "rate_limit_config.requests_per_minute",
                    all,
                ),
                number(
                    ("page-hour", "Searches an hour"),
                    access.hour,
                    "rate_limit_config.requests_per_hour",
                    all,
                ),
                number(
                    ("page-day", "Searches a day"),
                    access.day,
                    "rate_limit_config.requests_per_day",
                    all,
                ),
                number(
                    ("page-address", "Searches of one address an hour"),
                    access.address,
                    "rate_limit_config.max_requests_per_ip_hour",
                    "Without a number no limit of its own.",
                ),
                number(
                    ("page-most", "Results at once"),
                    access.most,
                    "rate_limit_config.max_results_per_query",
                    "100 without a number.",
                ),
            ]),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_the_form_does_not_know_stay() {
        let owner = Owner::new();
        owner.set();
        let page = Record(json!({"password_protected": true, "rate_limit_config": {
            "enabled": true, "tier": "elevated", "requests_per_day": 9, "enable_ip_limits": true, "max_requests_per_ip_hour": 40,
            "max_results_per_query": 100,
        }}));
        let access = Access::new(&page);
        access.minute.set("60".into());
        access.hour.set("600".into());
        access.limited.set(false);
        access.address.set(String::new());
        let mut body = json!({"display_config": {}});
        access.add_to(&mut body);
        let limits = json!({"enabled": false, "tier": "elevated", "requests_per_day": 9, "enable_ip_limits": false,
            "max_results_per_query": 100, "requests_per_minute": 60, "requests_per_hour": 600});
        assert_eq!(
            body,
            json!({"display_config": {}, "rate_limit_config": limits})
        );
        access.most.set("12.5".into());
        access.add_to(&mut body);
        assert_eq!(body["rate_limit_config"]["max_results_per_query"], "12.5");
        assert!(access.is_locked());
        access.opened.set(true);
        assert!(!access.is_locked());
        access.add_to(&mut body);
        assert_eq!(body["password_secret_name"], "");
        access.secret.set("page-password".into());
        access.add_to(&mut body);
        assert_eq!(body["password_secret_name"], "page-password");
    }

    #[test]
    fn a_new_page_has_the_limits_of_every_page() {
        let owner = Owner::new();
        owner.set();
        let access = Access::new(&Record::default());
        let mut body = json!({});
        access.add_to(&mut body);
        assert_eq!(body, json!({"rate_limit_config": {}}));
    }
}
