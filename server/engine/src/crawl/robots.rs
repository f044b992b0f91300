//! What a site asks of crawlers: `robots.txt`, as RFC 9309 has it.

use std::time::Duration;

/// The name by which sites know this crawler.
pub const AGENT: &str = "loupe";

/// Rules of one file that are looked at.
const MOST_RULES: usize = 10_000;
/// A site that wants more time between two pages gets no more.
const LONGEST_DELAY: f64 = 60.0;

/// The rules of one site for this crawler.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Robots {
    rules: Vec<Rule>,
    /// Between two requests.
    pub delay: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
struct Rule {
    allows: bool,
    path: String,
}

/// Lines that follow the names of one or several crawlers.
#[derive(Default)]
struct Group {
    agents: Vec<String>,
    robots: Robots,
    /// Whether rules have begun: the next name is of another group.
    began: bool,
}

impl Robots {
    /// The rules of a file for a crawler of this name: those that name it, else those for everybody.
    pub fn parse(text: &str, agent: &str) -> Self {
        let mut groups = vec![Group::default()];
        for line in text.trim_start_matches('\u{feff}').lines().take(MOST_RULES) {
            let line = line.split('#').next().unwrap_or_default();
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            read(&mut groups, name.trim(), value.trim());
        }
        let of = |name: &str| {
            let named = groups
                .iter()
                .filter(|group| group.agents.iter().any(|one| one == name));
            let mut found: Option<Self> = None;
            for group in named {
                let merged = found.get_or_insert_default();
                merged.rules.extend(group.robots.rules.iter().cloned());
                merged.delay = merged.delay.max(group.robots.delay);
            }
            found
        };
        of(&agent.to_ascii_lowercase())
            .or_else(|| of("*"))
            .unwrap_or_default()
    }

    /// Whether a path, with its query, may be asked for. The longest rule that fits decides; of two, the one that allows.
    pub fn allows(&self, path: &str) -> bool {
        if path == "/robots.txt" {
            return true;
        }
        let path = normal(path);
        let fitting = self.rules.iter().filter(|rule| rule.fits(&path));
        let longest = fitting.max_by_key(|rule| (rule.path.len(), rule.allows));
        longest.is_none_or(|rule| rule.allows)
    }
}

fn read(groups: &mut Vec<Group>, name: &str, value: &str) {
    if name.eq_ignore_ascii_case("user-agent") {
        if groups.last().is_none_or(|group| group.began) {
            groups.push(Group::default());
        }
        if let Some(group) = groups.last_mut() {
            // `loupe/1.0` is the crawler `loupe`.
            let agent = value.split('/').next().unwrap_or_default().trim();
            group.agents.push(agent.to_ascii_lowercase());
        }
        return;
    }
    let Some(group) = groups.last_mut() else {
        return;
    };
    let allows = name.eq_ignore_ascii_case("allow");
    if allows || name.eq_ignore_ascii_case("disallow") {
        group.began = true;
        // A rule without a path says nothing.
        if value.starts_with('/') || value.starts_with('*') {
            group.robots.rules.push(Rule {
                allows,
                path: normal(value),
            });
        }
    } else if name.eq_ignore_ascii_case("crawl-delay") {
        group.began = true;
        let seconds = value.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
        let delay = seconds.map(|seconds| Duration::from_secs_f64(seconds.min(LONGEST_DELAY)));
        group.robots.delay = group.robots.delay.max(delay);
    }
}

impl Rule {
    /// `*` stands for any text, `$` at the end for the end; otherwise more may follow.
    fn fits(&self, path: &str) -> bool {
        let (pattern, ends) = match self.path.strip_suffix('$') {
            Some(pattern) => (pattern, true),
            None => (self.path.as_str(), false),
        };
        if ends {
            return super::address::fits(pattern, path);
        }
        let mut pieces = pattern.split('*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = path.strip_prefix(first) else {
            return false;
        };
        for piece in pieces {
            match rest.split_once(piece) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        true
    }
}

/// Paths are compared with everything beyond ASCII, and nothing else, as escapes in capitals.
fn normal(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let bytes = path.as_bytes();
    for (place, byte) in bytes.iter().enumerate() {
        let after_escape = (1..=2).any(|back| place >= back && bytes[place - back] == b'%');
        match byte {
            byte if !byte.is_ascii() => {
                out.push('%');
                out.push_str(&hex::encode_upper([*byte]));
            }
            byte if after_escape && byte.is_ascii_hexdigit() => {
                out.push(char::from(byte.to_ascii_uppercase()));
            }
            byte => out.push(char::from(*byte)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rule_decides_and_an_allowing_one_of_two() {
        let robots = Robots::parse(
            "User-agent: *\nDisallow: /private/\nAllow: /private/open\nDisallow: /*.pdf$\nDisallow: /same\nAllow: /same\nDisallow:\n",
            AGENT,
        );
        for (path, allowed) in [
            ("/", true),
            ("/private/x", false),
            ("/private/open/x", true),
            ("/a/b.pdf", false),
            ("/a/b.pdf?x=1", true),
            ("/same", true),
            ("/robots.txt", true),
        ] {
            assert_eq!(robots.allows(path), allowed, "{path}");
        }
    }

    #[test]
    fn the_group_that_names_the_crawler_wins_and_groups_of_one_name_are_one() {
        let text = "\u{feff}user-agent: other\nuser-agent: LOUPE/2.1 # us\ndisallow: /a\n\nUser-Agent: *\nDisallow: /\n\nUser-agent: loupe\nDisallow: /b\nCrawl-delay: 2.5\nSitemap: https://x.example/map.xml\n";
        let robots = Robots::parse(text, AGENT);
        assert!(!robots.allows("/a/x") && !robots.allows("/b"));
        assert!(robots.allows("/c"));
        assert_eq!(robots.delay, Some(Duration::from_millis(2_500)));
        assert!(!Robots::parse(text, "somebody").allows("/c"));
        assert!(Robots::parse("", AGENT).allows("/x"));
        assert!(Robots::parse("<html>not found</html>", AGENT).allows("/x"));
        let endless = Robots::parse("User-agent: *\nCrawl-delay: 1e300", AGENT);
        assert_eq!(endless.delay, Some(Duration::from_secs(60)));
    }

    #[test]
    fn escapes_and_letters_beyond_ascii_are_one() {
        let robots = Robots::parse(
            "User-agent: *\nDisallow: /käse\nDisallow: /%e3%81%82",
            AGENT,
        );
        assert!(!robots.allows("/k%C3%A4se/x"));
        assert!(!robots.allows("/%E3%81%82"));
        let slow = format!("User-agent: *\nDisallow: /{}x", "*a".repeat(2_000));
        let robots = Robots::parse(&slow, AGENT);
        assert!(robots.allows(&format!("/{}", "a".repeat(100_000))));
    }
}
