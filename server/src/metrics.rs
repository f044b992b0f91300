//! `/metrics` for Prometheus: requests by operation and status with their times, and what the process and its queues look
//! like at the moment of asking.
//!
//! A request costs four relaxed additions. The crates that stack.md names look every counter up by its labels, several
//! hundred nanoseconds a request; here the operation's row in the table is the index.

use std::{
    fmt::Write,
    net::IpAddr,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use axum::{
    extract::State,
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use secrecy::ExposeSecret;
use subtle::ConstantTimeEq;

use crate::{
    app::App,
    args,
    auth::table::{self, TABLE},
    error::{ApiError, Result},
    front,
};

crate::sql! {
    // Of all organizations: these are figures of the installation.
    const BATCHES = "SELECT status, CAST(COUNT(*) AS BIGINT) FROM batches GROUP BY status ORDER BY status";
    const TASKS = "SELECT status, CAST(COUNT(*) AS BIGINT) FROM tasks WHERE parent_id IS NULL GROUP BY status ORDER BY status";
    const QUEUE = "SELECT status, CAST(COUNT(*) AS BIGINT) FROM tasks WHERE kind IS NOT NULL AND status IN ('QUEUED', 'PROCESSING') GROUP BY status ORDER BY status";
}

/// Upper ends of the histogram's buckets, in microseconds and as Prometheus writes them.
const BOUNDS: [(u64, &str); 13] = [
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (5_000_000, "5"),
    (10_000_000, "10"),
];

/// Statuses that are told apart; everything else is the last one.
const STATUSES: [u16; 21] = [
    200, 204, 206, 302, 304, 307, 308, 400, 401, 403, 404, 405, 409, 410, 413, 422, 429, 500, 503,
    504, 0,
];

/// Routes outside of the table; everything else is the last one.
const OTHERS: [(&str, &str); 5] = [
    ("/r/{public_name}", "GET /r/{public_name}"),
    (
        "/r/{public_name}/item/{document_id}",
        "GET /r/{public_name}/item/{document_id}",
    ),
    ("/healthz", "GET /healthz"),
    ("/readyz", "GET /readyz"),
    ("", "other"),
];

#[derive(Default)]
struct Counters {
    statuses: [AtomicU64; STATUSES.len()],
    buckets: [AtomicU64; BOUNDS.len()],
    requests: AtomicU64,
    micros: AtomicU64,
}

/// What was answered since the process started.
pub struct Metrics {
    operations: Box<[Counters]>,
}

impl Default for Metrics {
    fn default() -> Self {
        let operations = TABLE.len() + OTHERS.len();
        Self {
            operations: (0..operations).map(|_| Counters::default()).collect(),
        }
    }
}

impl Metrics {
    /// Counts one answer; `path` is that of the route.
    pub fn count(&self, method: &Method, path: Option<&str>, status: StatusCode, took: Duration) {
        let path = path.unwrap_or_default();
        let operation = table::number(method, path).unwrap_or_else(|| {
            let other = OTHERS.iter().position(|(route, _)| *route == path);
            TABLE.len() + other.unwrap_or(OTHERS.len() - 1)
        });
        let Some(counters) = self.operations.get(operation) else {
            return;
        };
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let status = STATUSES.iter().position(|one| *one == status.as_u16());
        counters.statuses[status.unwrap_or(STATUSES.len() - 1)].fetch_add(1, Relaxed);
        if let Some(bucket) = BOUNDS.iter().position(|(bound, _)| micros <= *bound) {
            counters.buckets[bucket].fetch_add(1, Relaxed);
        }
        counters.requests.fetch_add(1, Relaxed);
        counters.micros.fetch_add(micros, Relaxed);
    }

    fn requests(&self, text: &mut Text) {
        let names = TABLE.iter().map(|row| row.operation);
        let names = names.chain(OTHERS.iter().map(|(_, name)| *name));
        let seen: Vec<_> = names
            .zip(&self.operations)
            .filter(|(_, counters)| counters.requests.load(Relaxed) > 0)
            .collect();
        text.head(
            "loupe_requests_total",
            "counter",
            "Requests answered, by operation and status",
        );
        for (name, counters) in &seen {
            for (status, count) in STATUSES.iter().zip(&counters.statuses) {
                let count = count.load(Relaxed);
                if count > 0 {
                    let status = if *status == 0 {
                        "other".to_owned()
                    } else {
                        status.to_string()
                    };
                    let labels = [("operation", *name), ("status", status.as_str())];
                    text.line("loupe_requests_total", &labels, count);
                }
            }
        }
        text.head(
            "loupe_request_seconds",
            "histogram",
            "Time until the answer's first byte, by operation",
        );
        for (name, counters) in &seen {
            let mut sum = 0;
            for ((_, bound), bucket) in BOUNDS.iter().zip(&counters.buckets) {
                sum += bucket.load(Relaxed);
                let labels = [("operation", *name), ("le", *bound)];
                text.line("loupe_request_seconds_bucket", &labels, sum);
            }
            let (label, requests) = (("operation", *name), counters.requests.load(Relaxed));
            text.line(
                "loupe_request_seconds_bucket",
                &[label, ("le", "+Inf")],
                requests,
            );
            let seconds = counters.micros.load(Relaxed) as f64 / 1e6;
            text.line("loupe_request_seconds_sum", &[label], seconds);
            text.line("loupe_request_seconds_count", &[label], requests);
        }
    }
}

/// Lines in Prometheus' text format. Labels are ours: nothing in them needs an escape.
#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (index, (label, of)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{of}\"");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, "gauge", help);
        self.line(name, &[], value);
    }

    fn by_state(&mut self, name: &str, help: &str, states: &[(String, i64)]) {
        self.head(name, "gauge", help);
        for (state, count) in states {
            self.line(name, &[("state", state.as_str())], count);
        }
    }
}

/// The figures, for whoever may see them: with a token when one is set, else for this machine alone.
pub async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<Response> {
    if !may_see(&app, front::address(), &headers) {
        return Err(ApiError::forbidden(
            "metrics_closed",
            "set LOUPE_METRICS_TOKEN and send it as a bearer token, or ask from this machine",
        ));
    }
    let mut text = Text::default();
    app.metrics.requests(&mut text);
    text.gauge(
        "loupe_requests_running",
        "Requests under way",
        app.shield.running(),
    );
    let hashes = "loupe_password_hashes_total";
    text.head(hashes, "counter", "Passwords hashed, kept or compared");
    text.line(hashes, &[], app.passwords.hashing.runs());
    queues(&app, &mut text).await?;
    let (size, idle) = app.db().connections();
    text.gauge(
        "loupe_database_connections",
        "Connections of the pool",
        size,
    );
    text.gauge(
        "loupe_database_connections_idle",
        "Connections of the pool that wait for work",
        idle,
    );
    let folder = app.config().data.clone();
    let sizes = move || -> Text {
        sizes(&folder, &mut text);
        process(&mut text);
        text
    };
    let text = tokio::task::spawn_blocking(sizes)
        .await
        .map_err(ApiError::internal)?;
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text.0).into_response())
}

fn may_see(app: &App, peer: Option<IpAddr>, headers: &HeaderMap) -> bool {
    let token = app.config().metrics_token.expose_secret();
    if token.is_empty() {
        let forwarded =
            headers.contains_key("x-forwarded-for") || headers.contains_key("forwarded");
        return !forwarded && peer.is_some_and(|peer| peer.is_loopback());
    }
    let sent = headers
        .get(header::AUTHORIZATION)
        .map(|sent| sent.as_bytes());
    sent.and_then(|sent| sent.strip_prefix(b"Bearer "))
        .is_some_and(|sent| sent.ct_eq(token.as_bytes()).into())
}

async fn queues(app: &App, text: &mut Text) -> Result<()> {
    let batches: Vec<(String, i64)> = app.db().all(BATCHES, args![]).await?;
    text.by_state("loupe_batches", "Batches by state", &batches);
    let tasks: Vec<(String, i64)> = app.db().all(TASKS, args![]).await?;
    text.by_state("loupe_tasks", "Tasks of the last hours by state", &tasks);
    let queue: Vec<(String, i64)> = app.db().all(QUEUE, args![]).await?;
    text.by_state(
        "loupe_queue",
        "Pieces of work that wait (QUEUED) or are held by a worker (PROCESSING)",
        &queue,
    );
    Ok(())
}

fn sizes(folder: &Path, text: &mut Text) {
    text.head(
        "loupe_store_bytes",
        "gauge",
        "Disk that the embedded stores occupy",
    );
    for (store, of) in [
        (
            "database",
            occupied(&folder.join("loupe.db")) + occupied(&folder.join("loupe.db-wal")),
        ),
        ("documents", occupied(&folder.join("documents"))),
    ] {
        text.line("loupe_store_bytes", &[("store", store)], of);
    }
    if let Ok(disk) = rustix::fs::statvfs(folder) {
        let (free, all) = (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize);
        text.gauge(
            "loupe_disk_free_bytes",
            "Free disk under the data folder",
            free,
        );
        text.gauge(
            "loupe_disk_bytes",
            "Size of the disk under the data folder",
            all,
        );
    }
}

/// What a file, or a folder with all that is in it, takes on the disk: files of vectors have holes.
fn occupied(path: &Path) -> u64 {
    let Ok(about) = path.symlink_metadata() else {
        return 0;
    };
    if !about.is_dir() {
        return about.blocks() * 512;
    }
    let entries = path.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| occupied(&entry.path())).sum()
}

/// Names that every Prometheus dashboard of a process knows.
fn process(text: &mut Text) {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let status = read("/proc/self/status");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|rest| rest.trim().strip_suffix(" kB"));
    if let Some(kilobytes) = resident.and_then(|text| text.parse::<u64>().ok()) {
        let help = "Resident memory";
        text.gauge("process_resident_memory_bytes", help, kilobytes * 1024);
    }
    let stat = read("/proc/self/stat");
    // The name of the program, which may hold anything, ends with the last bracket; ticks are hundredths of a second.
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|one| one.parse::<u64>().ok())
        .sum();
    let name = "process_cpu_seconds_total";
    text.head(name, "counter", "Processor time used");
    text.line(name, &[], ticks as f64 / 100.0);
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        text.gauge(
            "process_open_fds",
            "Open files and connections",
            files.count(),
        );
    }
}
