//! TLS of every client. What the system trusts is read once a process: it takes as long as half of a start.

use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use rustls::{ClientConfig, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

static TRUSTED: OnceLock<ClientConfig> = OnceLock::new();

/// What clients are made with: the system's roots, and the cryptography that this program uses.
///
/// # Errors
/// The system's roots cannot be read.
pub fn client_config() -> anyhow::Result<ClientConfig> {
    if let Some(config) = TRUSTED.get() {
        return Ok(config.clone());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()
        .context("cannot read the certificates that this system trusts")?
        .with_no_client_auth();
    Ok(TRUSTED.get_or_init(|| config).clone())
}
