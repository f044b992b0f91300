use super::*;

fn tokens(theme: ThemeConfig) -> std::collections::HashMap<String, String> {
    let display = DisplayConfig {
        theme: Some(theme),
        ..Default::default()
    };
    let css = Theme::of(&display, &Look::of(&display)).css;
    css.trim_start_matches(":root{")
        .trim_end_matches('}')
        .split(';')
        .filter_map(|token| token.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn every_pair_reads_whatever_the_owner_chose() {
    let choices = [
        "#007AFF",
        "#fff",
        "#000",
        "yellow",
        "#777777",
        "rgb(255 0 0 / 20%)",
        "oklch(0.7 0.2 120)",
    ];
    for background in choices {
        for other in choices {
            let tokens = tokens(ThemeConfig {
                background_color: background.into(),
                text_color: other.into(),
                muted_color: Some(other.into()),
                primary_color: other.into(),
                surface_color: Some(other.into()),
                ..Default::default()
            });
            let color = |name: &str| color(&tokens[&format!("--{name}")]).expect("written by us");
            for (front, back) in [
                ("text", "bg"),
                ("text", "surface"),
                ("muted", "bg"),
                ("muted", "sunken"),
                ("link", "surface"),
                ("on-primary", "primary"),
                ("on-mark", "mark"),
            ] {
                let ratio = contrast(&color(front), &color(back));
                assert!(
                    ratio >= 4.49,
                    "{front} on {back}: {ratio:.2} ({background}, {other})"
                );
            }
        }
    }
}

#[test]
fn the_brand_reads_on_what_is_tinted_with_it() {
    for brand in ["#c2590c", "#007AFF", "#777777", "yellow", "#fff", "#000"] {
        let tokens = adaptive_tokens(&ThemeConfig {
            primary_color: brand.into(),
            ..Default::default()
        });
        let both = |wanted: &str| {
            let (_, pair) = tokens
                .iter()
                .find(|(name, _)| *name == wanted)
                .expect("every colour has these");
            let pair = pair.trim_start_matches("light-dark(").trim_end_matches(')');
            let colors = pair
                .split(',')
                .map(|one| color(one).expect("written by us"));
            colors.collect::<Vec<_>>()
        };
        for (link, soft) in both("link").iter().zip(both("primary-soft")) {
            let ratio = contrast(link, &soft);
            assert!(ratio >= 4.5, "{brand}: {ratio:.2}");
        }
    }
}

#[test]
fn the_owners_colours_are_on_both_grounds_and_read() {
    let owners = ["#fdf3e3", "#101820", "#777777", "yellow"];
    for (background, other) in owners
        .iter()
        .flat_map(|one| owners.map(|other| (one, other)))
    {
        let own = ThemeConfig {
            background_color: (*background).into(),
            text_color: other.into(),
            muted_color: Some(other.into()),
            primary_color: other.into(),
            secondary_color: Some(other.into()),
            surface_color: Some(other.into()),
            border_color: Some(other.into()),
            ..Default::default()
        };
        let tokens = adaptive_tokens(&own);
        let half = |wanted: &str, half: usize| {
            let (_, pair) = tokens
                .iter()
                .find(|(name, _)| *name == wanted)
                .expect(wanted);
            let pair = pair.trim_start_matches("light-dark(").trim_end_matches(')');
            let mut halves = pair.split(',').cycle().skip(half);
            color(halves.next().expect("one")).expect("written by us")
        };
        assert!(contrast(&half("bg", 0), &black()) > contrast(&half("bg", 1), &black()));
        for at in [0, 1] {
            for (front, back, least) in [
                ("text", "bg", 4.49),
                ("text", "surface", 4.49),
                ("muted", "bg", 4.49),
                ("muted", "sunken", 4.49),
                ("link", "surface", 4.49),
                ("link", "primary-soft", 4.49),
                ("on-primary", "primary", 4.49),
                ("on-mark", "mark", 4.49),
                ("line-strong", "surface", 2.99),
            ] {
                let ratio = contrast(&half(front, at), &half(back, at));
                assert!(
                    ratio >= least,
                    "{front} on {back}: {ratio:.2} ({background}, {other}, {at})"
                );
            }
        }
    }
    let warm = ThemeConfig {
        background_color: "#fdf3e3".into(),
        ..Default::default()
    };
    let tokens = adaptive_tokens(&warm);
    let bg = tokens
        .iter()
        .find(|(name, _)| *name == "bg")
        .map(|(_, pair)| pair.as_str());
    assert!(
        bg.is_some_and(|bg| bg.starts_with("light-dark(#fdf3e3,#1")),
        "{bg:?}"
    );
}

#[test]
fn raw_css_never_passes() {
    for hostile in [
        "red;}body{display:none",
        "url(https://x)",
        "expression(1)",
        "#fff;--x:1",
        "</style><script>",
    ] {
        let tokens = tokens(ThemeConfig {
            background_color: hostile.into(),
            primary_color: hostile.into(),
            font_family: hostile.into(),
            border_radius: Some(hostile.into()),
            ..Default::default()
        });
        assert!(
            tokens
                .values()
                .all(|value| !value.contains(['{', '<', '(']) && !value.contains("--x"))
        );
        assert!(!tokens.contains_key("--radius"));
    }
    assert_eq!(length("12px", 40.0).as_deref(), Some("12px"));
    assert_eq!(length("99rem", 48.0).as_deref(), Some("3rem"));
    assert_eq!(length("calc(1px)", 40.0), None);
}

#[test]
fn a_fixed_ground_fixes_the_scheme() {
    let scheme = |background: &str| {
        let display = DisplayConfig {
            theme: Some(ThemeConfig {
                background_color: background.into(),
                ..Default::default()
            }),
            ..Default::default()
        };
        Theme::of(&display, &Look::of(&display)).scheme
    };
    assert_eq!(scheme("#fafafa"), Scheme::Light);
    assert_eq!(scheme("#10131a"), Scheme::Dark);
}
