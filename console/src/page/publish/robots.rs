//! What the robots of search engines are told of a page.

/// Whether they may list a page of which they are told this: as the server reads it.
pub fn is_listed(said: &str) -> bool {
    let refuses = |word: &str| matches!(word.to_ascii_lowercase().as_str(), "noindex" | "none");
    !said.split(',').map(str::trim).any(refuses)
}

/// What they are told of a page that is listed from now on, or is not: what is no word about that stays.
pub fn told(said: &str, listed: bool) -> Option<String> {
    const LISTING: [&str; 6] = ["index", "noindex", "follow", "nofollow", "none", "all"];
    let is_other = |word: &&str| {
        let word = word.to_ascii_lowercase();
        !word.is_empty() && !LISTING.contains(&word.as_str())
    };
    let mut words = match listed {
        true => Vec::new(),
        false => vec!["noindex", "nofollow"],
    };
    words.extend(said.split(',').map(str::trim).filter(is_other));
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_listed_unless_a_word_of_its_own_refuses_it() {
        for said in ["", "index, follow", "max-image-preview:none", "nofollow"] {
            assert!(is_listed(said), "{said}");
        }
        for said in ["none", "NoIndex", "noindex, follow", "noarchive , NONE"] {
            assert!(!is_listed(said), "{said}");
        }
    }

    #[test]
    fn what_is_no_word_about_listing_stays() {
        let hidden = told("Index, max-snippet:-1", false);
        assert_eq!(hidden.as_deref(), Some("noindex, nofollow, max-snippet:-1"));
        let listed = told("noindex, nofollow, max-snippet:-1", true);
        assert_eq!(listed.as_deref(), Some("max-snippet:-1"));
        assert_eq!(told("NONE", true), None);
        assert_eq!(told("", false).as_deref(), Some("noindex, nofollow"));
    }
}
