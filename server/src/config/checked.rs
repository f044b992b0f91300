//! What a file or the environment may not say: settings that nothing would read, and figures that nothing could run with. A
//! server that started all the same would do something else than its owner believes.

use anyhow::{bail, ensure};
use secrecy::{ExposeSecret, SecretString};

use super::{Blobs, Config, Mail};

impl Config {
    /// # Errors
    /// The first setting that is wrong, in a sentence.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.check_read()?;
        self.check_words()?;
        self.check_figures()
    }

    /// Some are read only beside another one.
    fn check_read(&self) -> anyhow::Result<()> {
        let key = [("qdrant_api_key", is_set(&self.qdrant_api_key))];
        let from = [("mail.from", self.mail.from != Mail::default().from)];
        beside("qdrant_url", !self.qdrant_url.is_empty(), &key)?;
        beside("mail.url", is_set(&self.mail.url), &from)?;
        let (blobs, plain) = (&self.blobs, Blobs::default());
        let of_bucket = [
            ("blobs.endpoint", blobs.endpoint != plain.endpoint),
            ("blobs.region", blobs.region != plain.region),
            (
                "blobs.access_key_id",
                blobs.access_key_id != plain.access_key_id,
            ),
            ("blobs.secret_access_key", is_set(&blobs.secret_access_key)),
            ("blobs.session_token", is_set(&blobs.session_token)),
            ("blobs.path_style", blobs.path_style != plain.path_style),
            ("blobs.allow_http", blobs.allow_http != plain.allow_http),
            ("blobs.direct", blobs.direct != plain.direct),
        ];
        beside("blobs.url", !blobs.url.is_empty(), &of_bucket)
    }

    fn check_words(&self) -> anyhow::Result<()> {
        if !matches!(self.log_format.as_str(), "text" | "json") {
            bail!("log_format is text or json, not {}", self.log_format);
        }
        let address = &self.base_url;
        let is_web = ["http://", "https://"]
            .iter()
            .any(|scheme| address.starts_with(scheme));
        ensure!(
            address.is_empty() || is_web,
            "base_url is an address such as https://loupe.example.com, not {address}"
        );
        Ok(())
    }

    /// A process without workers, or one that admits no batches, is one that only answers.
    fn check_figures(&self) -> anyhow::Result<()> {
        let (limits, jobs, rates) = (&self.limits, &self.jobs, &self.rates);
        for (member, is_some) in [
            ("limits.body_bytes", limits.body_bytes > 0),
            ("limits.body_seconds", limits.body_seconds > 0),
            ("limits.head_seconds", limits.head_seconds > 0),
            ("limits.upload_bytes", limits.upload_bytes > 0),
            ("limits.request_seconds", limits.request_seconds > 0),
            ("limits.concurrent_requests", limits.concurrent_requests > 0),
            ("limits.batch_objects", limits.batch_objects > 0),
            ("rates.per_minute", rates.per_minute > 0),
            ("rates.per_second", rates.per_second > 0),
            ("rates.burst", rates.burst > 0),
            ("rates.concurrent", rates.concurrent > 0),
            ("jobs.chunk_objects", jobs.chunk_objects > 0),
            ("jobs.lease_seconds", jobs.lease_seconds > 0),
            ("jobs.extractors", jobs.extractors > 0),
            ("jobs.alert_seconds", jobs.alert_seconds > 0),
        ] {
            ensure!(
                is_some,
                "{member} is 0, and nothing would run: it is 1 at least"
            );
        }
        let outbound = &self.outbound;
        ensure!(
            (1..=10_000).contains(&outbound.messages),
            "outbound.messages lies between 1 and 10000, and is {}",
            outbound.messages
        );
        ensure!(
            (1..=100).contains(&outbound.share),
            "outbound.share is a part in percent, between 1 and 100, and is {}",
            outbound.share
        );
        Ok(())
    }
}

fn is_set(secret: &SecretString) -> bool {
    !secret.expose_secret().is_empty()
}

/// Refuses members that are set where the one is not beside which they are read.
fn beside(needed: &str, is_there: bool, members: &[(&str, bool)]) -> anyhow::Result<()> {
    let alone = members.iter().find(|(_, is_set)| *is_set && !is_there);
    match alone {
        Some((member, _)) => bail!("{member} is set, and nothing reads it without {needed}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;

    #[test]
    fn settings_that_nothing_reads_are_refused() {
        for (text, sentence) in [
            (
                "qdrant_api_key = \"k\"",
                "qdrant_api_key is set, and nothing reads it without qdrant_url",
            ),
            (
                "[blobs]\nendpoint = \"http://127.0.0.1\"",
                "blobs.endpoint is set, and nothing reads it without blobs.url",
            ),
            (
                "[blobs]\ndirect = false",
                "blobs.direct is set, and nothing reads it without blobs.url",
            ),
            (
                "[mail]\nfrom = \"Me <me@example.com>\"",
                "mail.from is set, and nothing reads it without mail.url",
            ),
            (
                "log_format = \"xml\"",
                "log_format is text or json, not xml",
            ),
            ("base_url = \"loupe.example.com\"", "base_url is an address"),
            ("[jobs]\nchunk_objects = 0", "jobs.chunk_objects is 0"),
            (
                "[limits]\nconcurrent_requests = 0",
                "limits.concurrent_requests is 0",
            ),
            (
                "[outbound]\nshare = 101",
                "outbound.share is a part in percent",
            ),
            ("[outbound]\nmessages = 0", "outbound.messages lies between"),
        ] {
            let refused = read(text).unwrap().check().unwrap_err().to_string();
            assert!(refused.contains(sentence), "{text}: {refused}");
        }
    }

    #[test]
    fn settings_that_go_together_are_taken() {
        for text in [
            "",
            "qdrant_url = \"http://127.0.0.1:6333\"\nqdrant_api_key = \"k\"",
            "[blobs]\nurl = \"s3://media\"\ndirect = false\nregion = \"eu-west-1\"",
            "[mail]\nurl = \"smtp://127.0.0.1\"\nfrom = \"Me <me@example.com>\"",
            "base_url = \"https://loupe.example.com\"\nlog_format = \"json\"",
        ] {
            read(text).unwrap().check().unwrap();
        }
    }
}
