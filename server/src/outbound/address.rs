//! Which addresses may be asked: public ones, and those that the settings open by hand.

use std::net::{IpAddr, Ipv6Addr};

use anyhow::Context;
use ipnet::{IpNet, Ipv6Net};
use loupe_engine::web::WebError;
use url::{Host, Url};

/// Below 1024 two ports are open; above, those of services that believe whoever reaches them are not: databases, caches,
/// queues, container engines, remote desktops.
const CLOSED_PORTS: [u16; 35] = [
    1433, 1521, 2049, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 4369, 5432, 5433, 5671, 5672, 5900,
    5984, 6000, 6333, 6334, 6379, 6380, 6443, 7000, 7001, 8500, 9042, 9092, 9200, 9300, 10250,
    11211, 15672, 27017, 28015,
];

/// Networks of IPv6 that are routed and carry an IPv4 address or are for tests and protocols: Teredo and the like, 6to4,
/// documentation.
const CLOSED_NETWORKS: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// The rule, made from the settings.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    allowed: Vec<IpNet>,
}

impl Rule {
    /// # Errors
    /// A network that is not written as `10.1.0.0/16` or one address.
    pub fn new(allowed: &[String]) -> anyhow::Result<Self> {
        let net = |text: &String| {
            let one = || text.parse::<IpAddr>().ok().map(IpNet::from);
            let net = text.parse::<IpNet>().ok().or_else(one);
            net.with_context(|| {
                format!("outbound.allow: '{text}' is not a network such as 10.1.0.0/16")
            })
        };
        let allowed = allowed.iter().map(net).collect::<anyhow::Result<_>>()?;
        Ok(Self { allowed })
    }

    /// Whether the settings open the address.
    pub fn opens(&self, address: IpAddr) -> bool {
        // `::ffff:10.0.0.1` is 10.0.0.1 to whoever connects.
        let address = address.to_canonical();
        self.allowed.iter().any(|net| net.contains(&address))
    }

    /// Whether the address is public, or opened by the settings.
    pub fn takes(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        if self.opens(address) {
            return true;
        }
        let closed = match address {
            IpAddr::V4(_) => false,
            IpAddr::V6(address) => CLOSED_NETWORKS.iter().any(|&(network, length)| {
                Ipv6Net::new(network, length).is_ok_and(|net| net.contains(&address))
            }),
        };
        !closed && !bogon::is_bogon(address)
    }

    /// The address as far as it can be judged before its name is looked up.
    pub fn parse(&self, text: &str) -> Result<Url, WebError> {
        let url = Url::parse(text)
            .map_err(|error| WebError::Refused(format!("this is no web address: {error}")))?;
        self.check(&url)?;
        Ok(url)
    }

    /// Scheme, credentials, port, and the host if it is an address; names are checked when they are looked up.
    pub fn check(&self, url: &Url) -> Result<(), WebError> {
        let refused = |reason: &str| Err(WebError::Refused(reason.into()));
        if !matches!(url.scheme(), "http" | "https") {
            return refused("only http and https addresses are asked");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused("an address with a user name or password in it is not asked");
        }
        let port = url.port_or_known_default().unwrap_or_default();
        let open = matches!(port, 80 | 443) || (port >= 1024 && !CLOSED_PORTS.contains(&port));
        if !open {
            return Err(WebError::Refused(format!("port {port} is not asked")));
        }
        let address = match url.host() {
            None => return refused("the address names no host"),
            Some(Host::Domain(_)) => return Ok(()),
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
        };
        if self.takes(address) {
            return Ok(());
        }
        Err(private())
    }
}

/// The same words for every private address: what is there is not told.
pub fn private() -> WebError {
    WebError::Refused("this address is not on the public internet".into())
}
