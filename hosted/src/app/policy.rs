//! An app's own policy, with room for the sign-in script that its pages get.

/// What is asked for by a script's element, and what by the script itself: the first of these that a policy has decides.
const SCRIPTS: [&str; 3] = ["script-src-elem", "script-src", "default-src"];
const CALLS: [&str; 2] = ["connect-src", "default-src"];

/// The directive that all others fall back to. It is never widened itself.
const DEFAULT: &str = "default-src";

/// The policies of a header or of a page, with the script at `place` among what scripts come from, and all of `place` among what
/// they ask. Nothing else is let in, and what lets it in already is left as its owner wrote it.
pub fn permit(policies: &str, place: &str) -> String {
    // The script itself: a place would also let in what an address in it leads on to.
    let script = format!("{place}sdk.js");
    let one = |policy: &str| {
        let scripts = widened(policy, &SCRIPTS, "script-src", &script);
        widened(&scripts, &CALLS, "connect-src", place)
    };
    let all: Vec<String> = policies.split(',').map(one).collect();
    all.join(",")
}

fn widened(policy: &str, deciding: &[&str], own: &str, place: &str) -> String {
    let directives: Vec<&str> = policy.split(';').collect();
    let find = |wanted: &str| {
        let mut all = directives.iter();
        all.position(|directive| name_of(directive).eq_ignore_ascii_case(wanted))
    };
    let Some(at) = deciding.iter().find_map(|wanted| find(wanted)) else {
        return policy.to_owned();
    };
    let mut words = directives[at].split_ascii_whitespace();
    let name = words.next().unwrap_or(own);
    let is = |word: &&str, other: &str| word.eq_ignore_ascii_case(other);
    let sources: Vec<&str> = words.filter(|word| !is(word, "'none'")).collect();
    if (sources.iter()).any(|word| is(word, "'self'") || *word == "*" || *word == place) {
        return policy.to_owned();
    }
    let is_fallback = name.eq_ignore_ascii_case(DEFAULT);
    let name = if is_fallback { own } else { name };
    let mut all = vec![name];
    all.extend(sources);
    all.push(place);
    let directive = all.join(" ");
    let mut written: Vec<&str> = directives.iter().map(|one| one.trim()).collect();
    if is_fallback {
        written.push(&directive);
    } else {
        written[at] = &directive;
    }
    written.retain(|one| !one.is_empty());
    written.join("; ")
}

fn name_of(directive: &str) -> &str {
    directive.split_ascii_whitespace().next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::permit;

    #[test]
    fn the_script_has_room_and_nothing_else() {
        const PLACE: &str = "http://club.localhost:8420/_auth/";
        for (policy, expected) in [
            ("", ""),
            ("object-src 'none'", "object-src 'none'"),
            // What lets it in already.
            (
                "script-src 'self'; connect-src *",
                "script-src 'self'; connect-src *",
            ),
            ("default-src 'SELF';", "default-src 'SELF';"),
            (
                "Script-Src 'sha256-abc=' ;connect-src https://api.example",
                "Script-Src 'sha256-abc=' PLACEsdk.js; connect-src https://api.example PLACE",
            ),
            (
                "default-src 'none'; style-src 'self'",
                "default-src 'none'; style-src 'self'; script-src PLACEsdk.js; connect-src PLACE",
            ),
            (
                "default-src https://cdn.example; script-src-elem 'none'; script-src 'self'",
                "default-src https://cdn.example; script-src-elem PLACEsdk.js; script-src 'self'; connect-src https://cdn.example PLACE",
            ),
            // The first of two with one name counts; several policies hold one beside the other.
            (
                "script-src 'none'; script-src 'self', default-src 'self'",
                "script-src PLACEsdk.js; script-src 'self', default-src 'self'",
            ),
        ] {
            let expected = expected.replace("PLACE", PLACE);
            let permitted = permit(policy, PLACE);
            assert_eq!(permitted, expected, "{policy}");
            assert_eq!(
                permit(&permitted, PLACE),
                expected,
                "once is enough: {policy}"
            );
        }
    }
}
