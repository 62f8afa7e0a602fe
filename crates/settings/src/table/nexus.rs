//! Settings of the nexus: where it listens, its workers, and the control plane.

use crate::options::NexusOptions;
use crate::setting::{FieldOf, HOUR, Lens, MICROS, MILLIS, MS, S, SECONDS, Setting};
use crate::setting::{US, Unit};

const fn row(
    name: &'static str,
    unit: Unit,
    lens: Lens<NexusOptions>,
    meaning: &'static str,
) -> Setting {
    Setting::new(name, unit, FieldOf::Nexus(lens), meaning)
}

pub(super) const NEXUS: &[Setting] = &[
    row(
        "nexus.listen",
        Unit::Address,
        |nexus| &mut nexus.listen,
        "where the nexus listens for other processes (TCP)",
    ),
    row(
        "nexus.any_port",
        Unit::Switch,
        |nexus| &mut nexus.any_port,
        "if the port is taken, take one of the next hundred; if off, a taken port is an error",
    ),
    row(
        "nexus.without_unix",
        Unit::Switch,
        |nexus| &mut nexus.without_unix,
        "do without the UNIX socket: no shared memory with other processes",
    ),
    row(
        "nexus.hidden",
        Unit::Switch,
        |nexus| &mut nexus.hidden,
        "do without the memory file in which `dunlin stats` finds the counters of the process",
    ),
    row(
        "insight.tcp",
        Unit::Word,
        |nexus| &mut nexus.insight_tcp,
        "what `dunlin stats HOST:PORT` can read; any process that connects can read the same",
    )
    .words(&["off", "counters"]),
    row(
        "nexus.advertise",
        Unit::Ip,
        |nexus| &mut nexus.advertise,
        "address to which peers on other hosts send packets, if it is not the bound one",
    )
    .words(&["none"]),
    row(
        "nexus.allow_peers",
        Unit::Networks,
        |nexus| &mut nexus.allow_peers,
        "networks to which packets may go although the peer has connected from another address; \
         it must first prove that packets reach it there",
    )
    .words(&["none"]),
    row(
        "nexus.heartbeat.timeout",
        MILLIS,
        |nexus| &mut nexus.plane.heartbeat.timeout,
        "longest time from a peer's failure until its sessions fail",
    )
    .within(MS..=HOUR),
    row(
        "nexus.heartbeat.beats",
        Unit::Count,
        |nexus| &mut nexus.plane.heartbeat.beats,
        "heartbeats within `nexus.heartbeat.timeout`; fewer cost less, more tolerate a slower peer",
    )
    .within(4..=100),
    row(
        "nexus.hello_timeout",
        MILLIS,
        |nexus| &mut nexus.plane.hello_timeout,
        "time within which a new connection must send its hello",
    )
    .within(MS..=HOUR),
    row(
        "nexus.dial_timeout",
        MILLIS,
        |nexus| &mut nexus.plane.dial_timeout,
        "time that one attempt to reach an address may take",
    )
    .within(MS..=HOUR),
    row(
        "nexus.backoff_min",
        MILLIS,
        |nexus| &mut nexus.plane.backoff_min,
        "wait before the first retry of a failed attempt; doubles with each further retry",
    )
    .within(US..=HOUR),
    row(
        "nexus.backoff_max",
        MILLIS,
        |nexus| &mut nexus.plane.backoff_max,
        "longest wait before a retry",
    )
    .within(US..=HOUR),
    row(
        "nexus.linger",
        SECONDS,
        |nexus| &mut nexus.plane.linger,
        "time for which a connection without sessions is kept by the side that made it",
    )
    .within(0..=24 * HOUR),
    row(
        "nexus.max_links",
        Unit::Count,
        |nexus| &mut nexus.plane.max_links,
        "connections of other processes; once three quarters are taken, each origin gets only its \
         share",
    )
    .within(1..=1 << 16),
    row(
        "nexus.max_half_open",
        Unit::Count,
        |nexus| &mut nexus.plane.max_half_open,
        "incoming connections that have not sent their hello; counted apart from the others",
    )
    .within(1..=1 << 16),
    row(
        "nexus.max_routes",
        Unit::Count,
        |nexus| &mut nexus.plane.max_routes,
        "remote addresses that this process connects to",
    )
    .within(1..=1 << 20),
    row(
        "nexus.max_attempts",
        Unit::Count,
        |nexus| &mut nexus.plane.max_attempts,
        "sessions that this process is connecting",
    )
    .within(1..=1 << 24),
    row(
        "nexus.max_lookups",
        Unit::Count,
        |nexus| &mut nexus.plane.max_lookups,
        "look-ups that one connection waits for; further ones wait in this process",
    )
    .within(1..=1 << 16),
    row(
        "nexus.max_pending_per_link",
        Unit::Count,
        |nexus| &mut nexus.plane.max_pending_per_link,
        "requests for a session, over one connection, that endpoints have not answered",
    )
    .within(1..=1 << 20),
    row(
        "nexus.max_pending_per_endpoint",
        Unit::Count,
        |nexus| &mut nexus.plane.max_pending_per_endpoint,
        "requests for a session that one endpoint has not answered",
    )
    .within(1..=1 << 20),
    row(
        "nexus.max_unproven",
        Unit::Count,
        |nexus| &mut nexus.plane.max_unproven,
        "requests for a session whose clients have to prove an address; once three quarters are \
         taken, each origin gets only its share",
    )
    .within(1..=1 << 20),
    row(
        "nexus.max_sessions_per_link",
        Unit::Count,
        |nexus| &mut nexus.plane.max_sessions_per_link,
        "sessions over one connection",
    )
    .within(1..=1 << 24),
    row(
        "nexus.workers.threads",
        Unit::Count,
        |nexus| &mut nexus.workers.threads,
        "threads for background handlers; with 0, background requests are rejected",
    )
    .within(0..=1024),
    row(
        "nexus.workers.queue",
        Unit::Count,
        |nexus| &mut nexus.workers.queue,
        "background jobs that may be under way per endpoint; further ones are rejected",
    )
    .within(1..=1 << 20),
    row(
        "nexus.workers.spin",
        MICROS,
        |nexus| &mut nexus.workers.spin,
        "how long a worker without work looks for some before it sleeps",
    )
    .within(0..=S),
];
