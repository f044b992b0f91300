//! A file from the public model hub by URL, checked while it arrives.

use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use url::Url;

use super::fetch::{ModelFile, verify};

type Outcome<T> = std::result::Result<T, String>;

/// An unreachable hub must not hold up the start.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const STALLED_AFTER: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 5;

/// Streams one file into `folder` and refuses a wrong checksum.
pub(super) async fn download(
    client: &reqwest::Client,
    address: &str,
    file: &ModelFile,
    folder: &Path,
    report: &(dyn Fn(u64) + Sync),
) -> Outcome<()> {
    let answer = open(client, address).await?;
    let mut stream = answer.bytes_stream();
    let mut target = tokio::fs::File::create(folder.join(file.name))
        .await
        .map_err(|error| error.to_string())?;
    let (mut digest, mut done) = (Sha256::new(), 0);
    loop {
        let next = tokio::time::timeout(STALLED_AFTER, stream.next());
        let Some(part) = next
            .await
            .map_err(|_| format!("nothing arrived for {} s", STALLED_AFTER.as_secs()))?
        else {
            break;
        };
        let part = part.map_err(|error| explain(&error))?;
        done += part.len() as u64;
        if done > file.bytes {
            return Err(format!("{} is longer than {} bytes", file.name, file.bytes));
        }
        digest.update(&part);
        target
            .write_all(&part)
            .await
            .map_err(|error| error.to_string())?;
        report(done);
    }
    target.sync_all().await.map_err(|error| error.to_string())?;
    verify(file, done, &digest.finalize())
}

/// Follows the hub's redirects to its storage by hand: the server's client follows none.
async fn open(client: &reqwest::Client, address: &str) -> Outcome<reqwest::Response> {
    let mut url = Url::parse(address).map_err(|error| error.to_string())?;
    for _ in 0..=MAX_REDIRECTS {
        let answer = tokio::time::timeout(ANSWER_WITHIN, client.get(url.clone()).send())
            .await
            .map_err(|_| format!("no answer within {} s", ANSWER_WITHIN.as_secs()))?
            .map_err(|error| explain(&error))?;
        if !answer.status().is_redirection() {
            return answer.error_for_status().map_err(|error| explain(&error));
        }
        let next = answer.headers().get("location");
        let next = next.and_then(|value| value.to_str().ok());
        let next = next.ok_or("a redirect without a location")?;
        url = url.join(next).map_err(|error| error.to_string())?;
    }
    Err("too many redirects".to_owned())
}

/// The innermost reason: reqwest's own text names only the address.
pub(super) fn explain(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}
