//! The server that a client command names: its address, and the address of this side.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use anyhow::{Context, anyhow};
use dunlin::settings::Configurable;
use dunlin::{DEFAULT_PORT, EndpointBuilder, Idle, Settings};

/// The address of a host, with the usual port if none is given.
///
/// # Errors
/// It cannot be resolved.
pub(crate) fn resolve(address: &str) -> anyhow::Result<SocketAddr> {
    let bare = address.trim_start_matches('[').trim_end_matches(']');
    let found = match bare.parse::<IpAddr>() {
        Ok(ip) => return Ok(SocketAddr::new(ip, DEFAULT_PORT)),
        Err(_) if !address.contains(':') => (address, DEFAULT_PORT).to_socket_addrs(),
        Err(_) => address.to_socket_addrs(),
    };
    let mut found =
        found.with_context(|| format!("`{address}` is not a HOST:PORT that can be resolved"))?;
    found
        .next()
        .ok_or_else(|| anyhow!("{address} has no address"))
}

/// A name with its port, which may be missing in `address`.
pub(crate) fn with_port(address: &str) -> String {
    let bare = address.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, DEFAULT_PORT).to_string(),
        Err(_) if !address.contains(':') => format!("{address}:{DEFAULT_PORT}"),
        Err(_) => address.to_owned(),
    }
}

/// The address to bind so that packets reach `to` and come back.
pub(crate) fn bind_ip(to: IpAddr) -> IpAddr {
    match to {
        _ if to.is_loopback() => to,
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// The endpoint that asks a server. Its nexus is hidden, because it lives for milliseconds. A probe
/// runs in the server's container, with the server's variables, so it takes any free UDP port, not
/// the port that they name.
///
/// # Errors
/// The nexus cannot listen.
pub(crate) fn asker<T: Configurable>(
    settings: &Settings,
    to: SocketAddr,
) -> anyhow::Result<EndpointBuilder<T>> {
    let settings = settings
        .clone()
        .with_from("any free port", "udp.port", "0")?;
    let nexus = settings.nexus().hidden(true);
    let nexus = nexus.bind(SocketAddr::new(bind_ip(to.ip()), 0))?;
    Ok(settings.endpoint::<T>(&nexus).idle(Idle::default()))
}

/// True if the text cannot be an address; false if it is a name that cannot be resolved now.
pub(crate) fn is_no_address(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::InvalidInput)
}
