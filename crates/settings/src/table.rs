//! The registry: every option that an operator tunes, one row each. An option has the name of its
//! field, without the unit that may end the field's name.
//!
//! Invariant, tested by `settings/tests/complete.rs`: every field of the option structs has a row
//! here, and a row sets its field and nothing else. A new field without a row fails that test. The
//! ranges are the ones that the option structs accept. All of `settings` reads this table, and so
//! does `dunlin config`.

mod endpoint;
mod kv;
mod nexus;
mod replica;
mod services;
mod transports;

use crate::setting::Setting;

/// The rows, by group.
pub(super) const GROUPS: [&[Setting]; 13] = [
    nexus::NEXUS,
    endpoint::ENDPOINT,
    transports::AUTO,
    transports::SHM,
    transports::UDP,
    transports::XDP,
    transports::DPDK,
    endpoint::SESSION,
    services::CHANNEL,
    services::SERVER,
    kv::KV,
    services::SEQUENCER,
    replica::REPLICA,
];

/// Pairs of options. The first option of a pair must not be more than the second.
pub(super) const NOT_MORE_THAN: [(&str, &str); 9] = [
    // A link whose peer has sent Hello must not lose its place to half-open links.
    ("nexus.max_half_open", "nexus.max_links"),
    // A connection must not have more requests pending than an endpoint's queue holds.
    (
        "nexus.max_pending_per_link",
        "nexus.max_pending_per_endpoint",
    ),
    // Every look-up of a connection may become a request at the other side.
    ("nexus.max_lookups", "nexus.max_pending_per_link"),
    ("nexus.backoff_min", "nexus.backoff_max"),
    // The largest message must fit into the memory for large requests.
    ("endpoint.max_message", "endpoint.session_receive_budget"),
    ("endpoint.max_message", "endpoint.receive_budget"),
    ("channel.pause.least", "channel.pause.first"),
    ("channel.pause.first", "channel.pause.most"),
    ("replica.least_pause", "replica.most_pause"),
];

/// Every row.
pub(super) fn all() -> impl Iterator<Item = &'static Setting> {
    GROUPS.into_iter().flatten()
}
