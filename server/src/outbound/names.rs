//! What the world's name servers say of a name: what proves that a domain is its owner's.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;
use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig},
    net::runtime::TokioRuntimeProvider,
    proto::rr::RData,
};

/// How long one try may take; there are two.
const PATIENCE: Duration = Duration::from_secs(3);

/// The TXT records of a name; none when there is no such name. Nothing is remembered: whoever asks has just changed them.
/// `server` is whom to ask instead of the system's name servers.
///
/// # Errors
/// No name server answers.
pub async fn texts(server: Option<SocketAddr>, name: &str) -> Result<Vec<String>> {
    let mut builder = match server {
        None => TokioResolver::builder_tokio()?,
        Some(server) => {
            TokioResolver::builder_with_config(only(server), TokioRuntimeProvider::default())
        }
    };
    let options = builder.options_mut();
    (options.timeout, options.attempts) = (PATIENCE, 2);
    (options.use_hosts_file, options.cache_size) = (ResolveHosts::Never, 0);
    // The dot at the end keeps the system's own search domains out.
    let found = match builder.build()?.txt_lookup(format!("{name}.")).await {
        Ok(found) => found,
        Err(error) if error.is_no_records_found() => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let texts = found
        .answers()
        .iter()
        .filter_map(|record| match &record.data {
            RData::TXT(text) => Some(text.txt_data.concat()),
            _ => None,
        });
    Ok(texts
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect())
}

fn only(server: SocketAddr) -> ResolverConfig {
    let ways = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut way| {
        way.port = server.port();
        way
    });
    let server = NameServerConfig::new(server.ip(), true, ways.into());
    ResolverConfig::from_name_servers(vec![server])
}
