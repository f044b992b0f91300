//! R-43: what strangers send to the readers of this crate, broken in every way. Each is read or refused with a sentence, in
//! time. The other readers are tried where they are: templates, filters, cursors of searches and files in the engine.

use axum::{
    http::{HeaderMap, HeaderValue, header},
    response::IntoResponse,
};
use loupe_hosted::app::bundle::{Bundle, Limits, check_path};
use loupe_wire::{
    APIKeyModel, NamespaceOperation, ResourceScope, ResourceType, TriggerType, Value,
};
use serde_json::json;

use crate::{
    auth::{Caller, key, origin},
    blob::parts::Asked,
    error::ApiError,
    hostile,
    list::{ListParams, ListQuery},
    v1::triggers::schedule::Schedule,
};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A refusal is a sentence for whoever sent it, never a fault of the server.
fn refused(error: ApiError) {
    let status = error.into_response().status();
    assert!(status.is_client_error(), "{status}");
}

#[test]
fn hostile_keys_are_keys_or_not() {
    let kinds = [
        key::Kind::Standard,
        key::Kind::UserScoped,
        key::Kind::Retriever,
    ];
    let honest = kinds.map(key::generate);
    let corpus: Vec<&[u8]> = honest.iter().map(String::as_bytes).collect();
    let pieces = ["loupe_sk_", "usr_sk_", "ret_sk_", "_sk_", "ü", "\u{0}"];
    hostile::run(&corpus, &pieces, |bytes| {
        let found = key::find_in(bytes);
        let text = text(bytes);
        if key::is_well_formed(&text) {
            let kind = kinds.iter().find(|kind| text.starts_with(kind.prefix()));
            assert_eq!(text.len() - kind.expect("a kind").prefix().len(), 36);
            assert!(found.contains(&key::hash(&text)));
        }
    });
}

#[test]
fn hostile_cursors_of_lists_are_read_or_refused() {
    // By number, and behind a row.
    let corpus: [&[u8]; 5] = [
        b"bzA",
        b"bzUw",
        b"bzkyMjMzNzIwMzY4NTQ3NzU4MDc",
        b"b-1",
        b"YjMuNS5vYmpfMQ",
    ];
    hostile::run(&corpus, &["=", "-", "_", "bz", "%00"], |bytes| {
        let query = ListQuery {
            cursor: Some(text(bytes)),
            ..ListQuery::default()
        };
        match ListParams::new(query, &json!({})) {
            Ok(params) => {
                assert!(params.offset >= 0);
                let told = params.pagination(0, false, Some(3));
                assert!(told.page >= Some(1));
            }
            Err(error) => refused(error),
        }
    });
}

/// What a schedule calls for from a moment on is not before it.
fn follow(schedule: &Schedule, now: i64) {
    match (schedule.first(now), schedule.next(now)) {
        (Ok(first), Ok(next)) => {
            assert!(first.is_none_or(|first| first >= now));
            assert!(next.is_none_or(|next| next > now));
        }
        (Err(error), _) | (_, Err(error)) => refused(error),
    }
}

#[test]
fn hostile_schedules_are_followed_or_refused() {
    let corpus: [&[u8]; 7] = [
        br#"{"cron_expression": "*/5 0-6 1,15 * MON#2", "timezone": "Europe/Vienna"}"#,
        br#"{"cron_expression": "0 0 30 2 *"}"#,
        br#"{"cron_expression": "0 0 L * 5L", "timezone": "Pacific/Apia"}"#,
        br#"{"cron": "@yearly"}"#,
        br#"{"interval_seconds": 31536000, "start_immediately": true}"#,
        br#"{"event_type": "object.created", "event_threshold": 3, "cooldown_seconds": 60}"#,
        br#"{"condition_type": "drift", "threshold": 0.5, "collection_id": "col_1", "check_interval_seconds": 10}"#,
    ];
    let pieces = [
        "*",
        "/",
        "0",
        "?",
        "L",
        "W",
        "#",
        "-",
        ",",
        "MON",
        "DEC",
        "99999999999",
        "-1",
        "1e9",
        "null",
        "@",
        "ß",
    ];
    let kinds = [
        TriggerType::Cron,
        TriggerType::Interval,
        TriggerType::Event,
        TriggerType::Conditional,
    ];
    // A summer, and the end of the year 9999.
    let moments = [1_782_000_000_000_000, 253_402_300_799_000_000];
    hostile::run(&corpus, &pieces, |bytes| {
        let written = text(bytes);
        let config = match serde_json::from_str(&written) {
            Ok(Value::Object(config)) => config,
            _ => json!({"cron_expression": written})
                .as_object()
                .cloned()
                .unwrap_or_default(),
        };
        for kind in kinds {
            match Schedule::read(kind, &config) {
                Err(error) => refused(error),
                Ok(schedule) => moments.iter().for_each(|now| follow(&schedule, *now)),
            }
        }
    });
}

#[test]
fn hostile_origins_let_nobody_in_who_is_not_meant() {
    let corpus: [&[u8]; 5] = [
        b"https://example.com",
        b"https://*.example.com:8443",
        b"app+x://*.a.b",
        b"http://[::1]:80",
        b"https://xn--bcher-kva.example",
    ];
    let pieces = [
        "*", "*.", "://", "@", "/", "?", "#", "[", "]", ":", "%", "ß", "\u{0}", "null",
    ];
    hostile::run(&corpus, &pieces, |bytes| {
        let pattern = text(bytes);
        if !origin::is_pattern(&pattern) {
            return;
        }
        let key = APIKeyModel {
            allowed_origins: Some(vec![pattern.clone()]),
            ..APIKeyModel::default()
        };
        let from = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).ok()?);
            Some(origin::check(&key, &headers).is_ok())
        };
        let meant = pattern.replacen("*.", "a.", 1);
        assert_ne!(from(&meant), Some(false), "{pattern}");
        for stranger in [
            "null",
            "https://stranger.invalid",
            "https://example.com.stranger.invalid",
        ] {
            assert_eq!(from(stranger), Some(false), "{pattern} lets {stranger} in");
        }
    });
}

#[test]
fn hostile_scopes_cover_what_they_name_alone() {
    let corpus: [&[u8]; 4] = [b"*", b"col_*", b"col_1a2b3c", b"bkt_1"];
    hostile::run(
        &corpus,
        &["*", "**", "?", "col_", "\u{0}", ".*", "ß"],
        |bytes| {
            let pattern = text(bytes);
            let mut key = Caller::system("org_1").key.as_ref().clone();
            key.scopes = vec![ResourceScope {
                resource_type: ResourceType::Collection,
                resource_id: pattern.clone(),
                operations: None,
            }];
            let caller = Caller::internal(key);
            let covers = |id: &str| {
                caller.covers(ResourceType::Collection, id, NamespaceOperation::ReadData)
            };
            let prefix = pattern.strip_suffix('*');
            for id in ["col_1a2b3c", "col_", "bkt_1", "x", pattern.as_str()] {
                let meant = id == pattern && prefix.is_none()
                    || prefix.is_some_and(|prefix| id.starts_with(prefix));
                assert_eq!(covers(id), meant, "{pattern} {id}");
            }
            assert!(!caller.covers(ResourceType::Bucket, "bkt_1", NamespaceOperation::ReadData));
        },
    );
}

#[test]
fn hostile_parts_of_uploads_are_read_or_refused() {
    let corpus: [&[u8]; 4] = [
        b"bytes 0-99/1000",
        b"bytes */1000",
        b"bytes 18446744073709551614-18446744073709551614/18446744073709551615",
        b"bytes=0-",
    ];
    hostile::run(
        &corpus,
        &["-", "/", "*", " ", "18446744073709551616", "+1", "bytes"],
        |bytes| match Asked::read(&text(bytes)) {
            Ok(Asked::Part { first, last, total }) => assert!(first <= last && last < total),
            Ok(Asked::Status { .. }) => {}
            Err(error) => refused(error),
        },
    );
}

/// A bundle of some files, as a front end's build leaves it.
fn bundle() -> Vec<u8> {
    use std::io::Write;

    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, bytes) in [
        ("dist/index.html", "<h1>Hi</h1>".repeat(20)),
        ("dist/assets/a.js", "let a = 1;".repeat(90)),
        ("dist/ä/b.css", "b {}".to_owned()),
    ] {
        writer
            .start_file(name, options)
            .expect("memory takes everything");
        writer
            .write_all(bytes.as_bytes())
            .expect("memory takes everything");
    }
    writer
        .finish()
        .expect("memory takes everything")
        .into_inner()
}

#[test]
fn hostile_bundles_are_unpacked_within_their_limits_or_refused() {
    use std::io::{Seek, Write};

    let limits = Limits {
        files: 10,
        total: 1 << 20,
        file: 1 << 20,
    };
    let honest = bundle();
    let pieces = [
        "PK\u{1}\u{2}",
        "PK\u{3}\u{4}",
        "PK\u{5}\u{6}",
        "../",
        "..\\",
        "/",
        "\u{0}",
        "C:",
    ];
    let (mut opened, mut read) = (0, 0);
    hostile::run(&[honest.as_slice()], &pieces, |bytes| {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        file.rewind().expect("rewound");
        let Ok(mut bundle) = Bundle::open(file, limits) else {
            return;
        };
        opened += 1;
        let mut total = 0;
        for number in 0..bundle.entries().len() {
            let path = bundle.entries()[number].path.clone();
            assert!(check_path(&path).is_ok(), "{path}");
            assert!(
                !path.starts_with('/') && path.split('/').all(|name| name != ".."),
                "{path}"
            );
            if let Ok(bytes) = bundle.read(number) {
                total += bytes.len() as u64;
                read += 1;
            }
        }
        assert!(total <= limits.total + limits.file);
    });
    println!("{opened} were opened, {read} files read");
    assert!(opened > 0 && read > 0);
}
