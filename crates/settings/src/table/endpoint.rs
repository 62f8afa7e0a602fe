//! The settings of endpoints and of the sessions that they open.

use dunlin_core::Config;
use dunlin_core::config::{MAX_CREDITS, MAX_SESSIONS, MAX_WINDOW};
use dunlin_nexus::ConnectOptions;

use crate::setting::{FieldOf, HOUR, Lens, MICROS, MILLIS, MS, NANOS, S, SECONDS, Setting};
use crate::setting::{Shape, US, Unit};

const SCHEMES: &[&str] = &["auto", "none", "timely", "patched-timely", "dcqcn", "swift"];

/// The largest value that an endpoint's checks allow (`dunlin_core::Config::check`).
const MAX_MESSAGE: u64 = 1 << 30;

const fn row(name: &'static str, unit: Unit, lens: Lens<Config>, meaning: &'static str) -> Setting {
    Setting::new(name, unit, FieldOf::Endpoint(lens), meaning)
}

const fn session(
    name: &'static str,
    unit: Unit,
    lens: Lens<ConnectOptions>,
    meaning: &'static str,
) -> Setting {
    Setting::new(name, unit, FieldOf::Session(lens), meaning)
}

pub(super) const ENDPOINT: &[Setting] = &[
    Setting::new(
        "endpoint.idle",
        MICROS,
        FieldOf::Idle(|idle| idle),
        "how long the thread looks for packets before it blocks; `spin`: it never blocks",
    )
    .within(0..=S)
    .words(&["spin"]),
    row(
        "endpoint.max_sessions",
        Unit::Count,
        |config| &mut config.max_sessions,
        "sessions that the endpoint takes part in, as client or server side",
    )
    .within(1..=MAX_SESSIONS as u64),
    row(
        "endpoint.max_window",
        Unit::Count,
        |config| &mut config.max_window,
        "largest window of a session; a session that asks for more gets this one",
    )
    .within(1..=MAX_WINDOW as u64)
    .shape(Shape::PowerOfTwo),
    row(
        "endpoint.max_credits",
        Unit::Count,
        |config| &mut config.max_credits,
        "most credits of a session; a session that asks for more gets this number",
    )
    .within(1..=MAX_CREDITS as u64),
    row(
        "endpoint.backlog",
        Unit::Count,
        |config| &mut config.backlog,
        "requests that may wait per session for a slot or a credit; then `call` is refused",
    )
    .within(0..=1 << 24),
    row(
        "endpoint.max_message",
        Unit::Bytes,
        |config| &mut config.max_message,
        "largest message, as request and as response",
    )
    .within(1..=MAX_MESSAGE),
    row(
        "endpoint.receive_budget",
        Unit::Bytes,
        |config| &mut config.receive_budget,
        "memory for large requests of which only a part has arrived, in all sessions together; \
         beyond it, requests are rejected as overloaded",
    )
    .within(0..=1 << 40),
    row(
        "endpoint.session_receive_budget",
        Unit::Bytes,
        |config| &mut config.session_receive_budget,
        "memory for large requests of one session of which only a part has arrived",
    )
    .within(0..=1 << 40),
    row(
        "endpoint.strict_credits",
        Unit::Switch,
        |config| &mut config.strict_credits,
        "refuse sessions whose credits could overflow the receive queue",
    ),
    row(
        "endpoint.rto_floor",
        MILLIS,
        |config| &mut config.rto_floor,
        "smallest retransmission timeout",
    )
    .within(US..=HOUR),
    row(
        "endpoint.rto_initial",
        MILLIS,
        |config| &mut config.rto_initial,
        "timeout of a retransmission before the first sample of a round trip; on one machine, \
         also the smallest timeout",
    )
    .within(US..=HOUR),
    row(
        "endpoint.ack_delay",
        MICROS,
        |config| &mut config.ack_delay,
        "time after which an unanswered background or deferred request is acknowledged",
    )
    .within(US..=HOUR),
    row(
        "endpoint.response_hold",
        MILLIS,
        |config| &mut config.response_hold,
        "time for which a response is kept in case the client asks for it again",
    )
    .within(US..=HOUR),
    row(
        "endpoint.failure_timeout",
        MILLIS,
        |config| &mut config.failure_timeout,
        "a peer that sends nothing for this time, although it is asked to, has failed",
    )
    .within(US..=HOUR)
    .follow("nexus.heartbeat.timeout"),
    row(
        "endpoint.scan_interval",
        MICROS,
        |config| &mut config.scan_interval,
        "time between two scans for lost packets and passed deadlines while calls are pending",
    )
    .within(US..=HOUR),
    row(
        "endpoint.probe_max",
        MILLIS,
        |config| &mut config.probe_max,
        "longest time between two probes of a request that the server has accepted",
    )
    .within(US..=HOUR),
    row(
        "endpoint.scheme",
        Unit::Word,
        |config| &mut config.scheme,
        "congestion control; `auto`: none for shared memory and loopback, Swift for networks",
    )
    .words(SCHEMES),
    row(
        "endpoint.bypasses.timely",
        Unit::Switch,
        |config| &mut config.bypasses.timely,
        "sessions at line rate measure few round trips; short round trips leave the rate as it is",
    ),
    row(
        "endpoint.bypasses.limiter",
        Unit::Switch,
        |config| &mut config.bypasses.limiter,
        "packets of sessions at line rate do not go through the timing wheel",
    ),
    row(
        "endpoint.bypasses.clock",
        Unit::Switch,
        |config| &mut config.bypasses.clock,
        "one reading of the clock serves all packets of a burst",
    ),
    row(
        "endpoint.bypasses.common",
        Unit::Switch,
        |config| &mut config.bypasses.common,
        "ordinary short messages take a faster path",
    ),
    row(
        "endpoint.bypasses.lanes",
        Unit::Switch,
        |config| &mut config.bypasses.lanes,
        "short packets are staged in lines that the transport sends in one run",
    ),
    row(
        "endpoint.check",
        Unit::Word,
        |config| &mut config.check,
        "when the endpoint checks that its state is consistent: one session now and then \
         (`sweep`), or after each event, which is slow and for tests (`event`)",
    )
    .words(&["never", "sweep", "event"]),
    row(
        "endpoint.wheel_slot",
        NANOS,
        |config| &mut config.wheel_slot,
        "time that one slot of the timing wheel covers; a paced packet leaves at most this late",
    )
    .within(1..=S),
    row(
        "endpoint.wheel_horizon",
        MILLIS,
        |config| &mut config.wheel_horizon,
        "how far the timing wheel reaches ahead: from 2 to 4096 slots",
    )
    .within(2..=HOUR),
    row(
        "endpoint.pool_bytes",
        Unit::Bytes,
        |config| &mut config.pool_bytes,
        "memory for message buffers of the endpoint, taken when it is needed",
    )
    .within(1 << 20..=1 << 40),
    row(
        "endpoint.hugepages",
        Unit::Switch,
        |config| &mut config.hugepages,
        "use huge pages for message buffers if the system has any, or can make them",
    ),
    row(
        "endpoint.readable_buffers",
        Unit::Switch,
        |config| &mut config.readable_buffers,
        "let safe code read message buffers, at the price of a lock at each release; for tests",
    ),
    row(
        "endpoint.first_req",
        Unit::Count,
        |config| &mut config.first_req,
        "first request number of sessions that this side opens; for tests of the wrap",
    )
    .within(0..=0xffff_ffc0)
    .shape(Shape::MultipleOf(MAX_WINDOW as u64)),
];

pub(super) const SESSION: &[Setting] = &[
    session(
        "session.endpoint",
        Unit::Count,
        |connect| &mut connect.endpoint,
        "index of the server's endpoint in its nexus; `any`: that nexus chooses one",
    )
    .within(0..=0xffff)
    .words(&["any"]),
    session(
        "session.patience",
        SECONDS,
        |connect| &mut connect.patience,
        "how long to try to make a session; the server may start within this time",
    )
    .within(MS..=HOUR),
    session(
        "session.window",
        Unit::Count,
        |connect| &mut connect.session.window,
        "concurrent requests in each direction; more wait in the backlog",
    )
    .within(1..=MAX_WINDOW as u64)
    .shape(Shape::PowerOfTwo),
    session(
        "session.credits",
        Unit::Count,
        |connect| &mut connect.session.credits,
        "packets in flight; large messages are faster with more",
    )
    .within(1..=MAX_CREDITS as u64),
    session(
        "session.scheme",
        Unit::Word,
        |connect| &mut connect.session.scheme,
        "congestion control of the requests of this side; `auto`: that of the endpoint",
    )
    .words(SCHEMES)
    .follow("endpoint.scheme"),
];
