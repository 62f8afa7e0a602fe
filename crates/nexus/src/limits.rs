//! Limits the connections by the number of descriptors that the process may have. Each connection
//! takes one, and half of all descriptors are reserved for sessions, so that peers cannot take the
//! descriptors that a session needs (rule C9). `nexus.rs` calls this once.

use dunlin_control::PlaneConfig;

/// Connections that have not sent Hello get at most one descriptor in this many, and at most
/// `max_half_open`.
const HALF_OPEN: usize = 16;

/// The limits of the control plane in a process that may have this number of descriptors.
pub(crate) fn within(config: PlaneConfig, descriptors: usize) -> PlaneConfig {
    let max_half_open = config.max_half_open.min(descriptors / HALF_OPEN).max(1);
    let left = (descriptors / 2).saturating_sub(max_half_open);
    let max_links = config.max_links.min(left).max(1);
    if max_links < config.max_links && config.max_links > PlaneConfig::default().max_links {
        tracing::warn!(
            max_links,
            wanted = config.max_links,
            descriptors,
            "the limit of open files (ulimit -n) is too low for nexus.max_links: half of it is for \
             connections"
        );
    }
    PlaneConfig {
        max_links,
        max_half_open,
        ..config
    }
}

#[cfg(test)]
mod tests;
