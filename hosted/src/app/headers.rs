//! Headers of an app's own, from the file `_headers` at the root of its bundle, as other hosts read it: a line with a path, and
//! below it lines with a header each. What keeps apps apart is not an app's to say.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::{Deserialize, Serialize};

use super::{
    bundle::{BundleError, refuse},
    files::decode,
};

/// The file; it is read at the deploy and never served.
pub const FILE: &str = "_headers";

/// Bytes of the file, rules in it, letters of a path and of a value. Whatever matches goes with every answer.
const LARGEST: usize = 16 << 10;
const RULES: usize = 100;
const PATH: usize = 400;
const VALUE: usize = 4_000;

/// What an app may say of its files. No cookie, no type, no download made a page, no door for other origins.
const ALLOWED: [&str; 16] = [
    "cache-control",
    "content-language",
    "content-security-policy",
    "content-security-policy-report-only",
    "cross-origin-embedder-policy",
    "cross-origin-opener-policy",
    "link",
    "origin-agent-cluster",
    "permissions-policy",
    "referrer-policy",
    "reporting-endpoints",
    "service-worker-allowed",
    "strict-transport-security",
    "x-content-type-options",
    "x-frame-options",
    "x-robots-tag",
];

/// Those of them that could take away what every app has: only these values take nothing.
const STRICT: [(&str, &[&str]); 3] = [
    ("x-content-type-options", &["nosniff"]),
    ("x-frame-options", &["deny"]),
    (
        "cross-origin-opener-policy",
        &["same-origin", "same-origin-allow-popups"],
    ),
];

/// What an app says of its files, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules(Vec<Rule>);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Rule {
    /// A path, in which one `*` stands for anything.
    path: String,
    /// Names in lower case, and values.
    headers: Vec<(String, String)>,
}

impl Rules {
    /// Reads the file.
    ///
    /// # Errors
    /// The first line that is no rule, or says what an app may not.
    pub fn parse(bytes: &[u8]) -> Result<Self, BundleError> {
        if bytes.len() > LARGEST {
            return refuse(format!("{FILE} is larger than {LARGEST} bytes"));
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return refuse(format!("{FILE} is not UTF-8"));
        };
        let mut rules: Vec<Rule> = Vec::new();
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let read = if line.starts_with('/') {
                path(line).map(|rule| rules.push(rule))
            } else if let Some(rule) = rules.last_mut() {
                own_header(line).map(|own| rule.headers.push(own))
            } else {
                Err("a path such as /* comes before its headers".to_owned())
            };
            if let Err(why) = read {
                return refuse(format!("{FILE}, line {}: {why}", number + 1));
            }
        }
        if rules.len() > RULES {
            return refuse(format!("{FILE} has more than {RULES} paths"));
        }
        Ok(Self(rules))
    }

    /// Bytes that they take in memory, about.
    pub fn weight(&self) -> usize {
        let one = |(name, value): &(String, String)| name.len() + value.len() + 50;
        let rule = |rule: &Rule| rule.path.len() + 50 + rule.headers.iter().map(one).sum::<usize>();
        self.0.iter().map(rule).sum()
    }

    /// Adds what the rules say of `raw`, the path of the request as it was sent. Of two rules that name one header the later
    /// one counts. A policy comes beside the one that is there: both hold.
    pub fn apply(&self, raw: &str, headers: &mut HeaderMap) {
        if self.0.is_empty() {
            return;
        }
        // However a path is spelled, it is the same path.
        let path = decode(raw).map_or_else(|| raw.to_owned(), |path| format!("/{path}"));
        let mut own = HeaderMap::new();
        for rule in self.0.iter().filter(|rule| rule.fits(&path)) {
            own.extend(rule.map());
        }
        let floor = headers.get(header::CONTENT_SECURITY_POLICY).cloned();
        let has_policy = own.contains_key(header::CONTENT_SECURITY_POLICY);
        headers.extend(own);
        if let Some(floor) = floor.filter(|_| has_policy) {
            headers.append(header::CONTENT_SECURITY_POLICY, floor);
        }
    }
}

impl Rule {
    fn fits(&self, path: &str) -> bool {
        match self.path.split_once('*') {
            Some((start, end)) => {
                path.len() >= start.len() + end.len()
                    && path.starts_with(start)
                    && path.ends_with(end)
            }
            None => self.path == path,
        }
    }

    fn map(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            // They were looked at when the file was read.
            if let (Ok(name), Ok(value)) =
                (name.parse::<HeaderName>(), value.parse::<HeaderValue>())
            {
                map.append(name, value);
            }
        }
        map
    }
}

fn path(line: &str) -> Result<Rule, String> {
    if line.len() > PATH || line.chars().any(char::is_whitespace) {
        return Err(format!(
            "a path has at most {PATH} letters and no blank in it"
        ));
    }
    if line.matches('*').count() > 1 || line.contains("/:") {
        return Err("a path has at most one *, and no placeholders".to_owned());
    }
    Ok(Rule {
        path: line.to_owned(),
        headers: Vec::new(),
    })
}

fn own_header(line: &str) -> Result<(String, String), String> {
    let Some((name, value)) = line.split_once(':') else {
        return Err("this is neither a path nor a header such as Name: value".to_owned());
    };
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    if !ALLOWED.contains(&name.as_str()) {
        let shown: String = name.chars().take(80).collect();
        let allowed = ALLOWED.join(", ");
        return Err(format!(
            "the header {shown:?} is not an app's to set, those are: {allowed}"
        ));
    }
    if value.is_empty() || value.len() > VALUE || HeaderValue::from_str(value).is_err() {
        return Err(format!(
            "the value of {name} is empty, longer than {VALUE} bytes, or not of plain letters"
        ));
    }
    let strict = STRICT.iter().find(|(strict, _)| *strict == name);
    if let Some((_, values)) = strict
        && !values.contains(&value.to_ascii_lowercase().as_str())
    {
        return Err(format!("{name} is {} here", values.join(" or ")));
    }
    Ok((name, value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, raw: &str) -> Vec<String> {
        let mut headers = HeaderMap::new();
        headers.insert("cache-control", HeaderValue::from_static("no-cache"));
        headers.insert(
            "content-security-policy",
            HeaderValue::from_static("object-src 'none'"),
        );
        Rules::parse(text.as_bytes())
            .unwrap()
            .apply(raw, &mut headers);
        let mut told: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        told.sort();
        told
    }

    #[test]
    fn the_later_rule_counts_and_policies_come_beside_the_floor() {
        let text = "\u{feff}# of the whole app\r\n/*\r\n  Cache-Control: max-age=60\r\n  Content-Security-Policy: script-src 'self'\r\n\r\n/films/*\n\tcache-control: no-store\n\tLink: </a.css>; rel=preload\n\tLink: </b.css>; rel=preload\n/one\nReferrer-Policy: no-referrer\n";
        let everywhere = [
            "cache-control: max-age=60",
            "content-security-policy: object-src 'none'",
            "content-security-policy: script-src 'self'",
        ];
        assert_eq!(told(text, "/"), everywhere);
        assert_eq!(told(text, "/films"), everywhere);
        let films = [
            "cache-control: no-store",
            "content-security-policy: object-src 'none'",
            "content-security-policy: script-src 'self'",
            "link: </a.css>; rel=preload",
            "link: </b.css>; rel=preload",
        ];
        assert_eq!(told(text, "/films/7"), films);
        // Another spelling of a path is no way around its rules.
        assert_eq!(told(text, "/%66ilms/7"), films);
        assert!(told(text, "/%6fne").contains(&"referrer-policy: no-referrer".to_owned()));
        assert!(!told(text, "/one/").contains(&"referrer-policy: no-referrer".to_owned()));
        assert_eq!(
            told("", "/"),
            [
                "cache-control: no-cache",
                "content-security-policy: object-src 'none'"
            ]
        );
        let ending = "/*.js\n Service-Worker-Allowed: /\n";
        assert_eq!(told(ending, "/a/b.js").len(), 3);
        assert_eq!(told(ending, "/.j").len(), 2);
    }

    #[test]
    fn what_is_not_an_apps_to_say_is_refused_with_its_line() {
        for (text, why) in [
            ("/*\n  Set-Cookie: loupe_app=1", "line 2: the header"),
            ("/*\n\n  Content-Type: text/html", "line 3: the header"),
            ("/*\n  Access-Control-Allow-Origin: *", "is not an app's"),
            ("/*\n  Content-Disposition: inline", "is not an app's"),
            ("/*\n  X-Content-Type-Options: none", "is nosniff here"),
            ("/*\n  X-Frame-Options: ALLOWALL", "is deny here"),
            (
                "/*\n  Cross-Origin-Opener-Policy: unsafe-none",
                "same-origin",
            ),
            ("Cache-Control: no-store", "line 1: a path"),
            ("/*\n  nothing", "neither a path nor a header"),
            ("/*\n  Link:", "is empty"),
            ("/*\n  Link: \u{1}", "not of plain letters"),
            ("/a/*/b/*", "at most one *"),
            ("/:id\n  Link: x", "no placeholders"),
            ("/a b", "no blank"),
            (&*"/a\n".repeat(101), "more than 100 paths"),
            (&*"#".repeat(17 << 10), "larger than"),
        ] {
            let refused = Rules::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
        assert!(Rules::parse(b"/*\n  Link: \xff").is_err());
    }
}
