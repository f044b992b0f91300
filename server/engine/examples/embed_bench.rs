//! Embeds the lines of a file with the in-process model and prints one JSON line.
//!
//! `cargo run --example embed_bench -- TEXTS [QUERIES]`; its peer is `end2end/bench/embed_reference.py`.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use loupe_engine::embed::catalog::MINILM_OUTPUT;
use loupe_engine::embed::{ModelConfig, Models, Progress};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("usage: embed_bench TEXTS [QUERIES]")?;
    let queries: usize = args.next().map_or(Ok(200), |count| count.parse())?;
    let source = std::fs::read_to_string(file)?;
    let lines = source.lines().filter(|line| !line.trim().is_empty());
    let texts: Vec<String> = lines.map(str::to_owned).collect();
    if texts.is_empty() {
        return Err("the file has no texts".into());
    }
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| "a TLS provider is installed already")?;
    #[expect(clippy::disallowed_methods, reason = "a bench asks for models only")]
    let client = reqwest::Client::builder().build()?;
    let show = |p: Progress| eprintln!("{}: {} {}/{}", p.model, p.what, p.done, p.total);
    let models = Models::open(ModelConfig::default(), client, Arc::new(show))?;

    let start = Instant::now();
    let encoder = models.text(MINILM_OUTPUT).await?;
    let load = start.elapsed();
    encoder
        .embed(texts.iter().take(8).cloned().collect())
        .await?;

    let start = Instant::now();
    let busy = cpu_seconds();
    encoder.embed(texts.clone()).await?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - busy;

    let mut waits = Vec::with_capacity(queries);
    for text in texts.iter().cycle().take(queries) {
        let words: Vec<_> = text.split_whitespace().take(8).collect();
        let start = Instant::now();
        encoder.embed(vec![words.join(" ")]).await?;
        waits.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    waits.sort_by(f64::total_cmp);
    let at = |percent: usize| waits.get(waits.len() * percent / 100).copied();
    let line = serde_json::json!({
        "runtime": "rten",
        "texts": texts.len(),
        "seconds": seconds,
        "cpu_seconds": cpu,
        "passages_per_second": texts.len() as f64 / seconds,
        "query_p50_ms": at(50),
        "query_p95_ms": at(95),
        "load_seconds": load.as_secs_f64(),
        "cores": std::thread::available_parallelism()?.get(),
    });
    println!("{line}");
    Ok(())
}

/// CPU time of the whole process: comparable on a busy machine, where seconds are not.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
