//! Rows of channels, servers and sequencers.

use crate::options::{ChannelOptions, SequencerOptions, ServerOptions};
use crate::setting::{FieldOf, HOUR, Lens, MILLIS, MS, SECONDS, Setting, US, Unit};

const fn channel(
    name: &'static str,
    unit: Unit,
    lens: Lens<ChannelOptions>,
    meaning: &'static str,
) -> Setting {
    Setting::new(name, unit, FieldOf::Channel(lens), meaning)
}

const fn server(
    name: &'static str,
    unit: Unit,
    lens: Lens<ServerOptions>,
    meaning: &'static str,
) -> Setting {
    Setting::new(name, unit, FieldOf::Server(lens), meaning)
}

const fn sequencer(
    name: &'static str,
    unit: Unit,
    lens: Lens<SequencerOptions>,
    meaning: &'static str,
) -> Setting {
    Setting::new(name, unit, FieldOf::Sequencer(lens), meaning)
}

pub(super) const CHANNEL: &[Setting] = &[
    channel(
        "channel.listen",
        Unit::Address,
        |channel| &mut channel.listen,
        "address at which the hub listens and to which servers send their answers; port 0: any",
    ),
    channel(
        "channel.threads",
        Unit::Count,
        |channel| &mut channel.threads,
        "endpoint threads of the hub; a channel belongs to one of them",
    )
    .within(1..=1024),
    channel(
        "channel.queue",
        Unit::Count,
        |channel| &mut channel.queue,
        "calls of one channel that have not ended, or whose requests a server may still hold; a \
         further one fails",
    )
    .within(1..=1 << 20),
    channel(
        "channel.patience",
        SECONDS,
        |channel| &mut channel.patience,
        "time for which a call waits for a server to be ready; 0: it fails at once",
    )
    .within(0..=HOUR),
    channel(
        "channel.deadline",
        MILLIS,
        |channel| &mut channel.deadline,
        "time that a call without a deadline of its own has; `none`: as long as it takes",
    )
    .within(US..=24 * HOUR)
    .words(&["none"]),
    channel(
        "channel.lookup",
        SECONDS,
        |channel| &mut channel.lookup,
        "time after which the names of servers are looked up again, if no session is lost before",
    )
    .within(MS..=24 * HOUR),
    channel(
        "channel.endpoints_per_server",
        Unit::Count,
        |channel| &mut channel.endpoints_per_server,
        "endpoints of a server that share the calls that name no endpoint",
    )
    .within(1..=1024),
    channel(
        "channel.pick",
        Unit::Word,
        |channel| &mut channel.pick,
        "server that gets a call: each in turn, the one of two with fewer calls, or the one to \
         which the call's key belongs",
    )
    .words(&["round_robin", "least_of_two", "hash"]),
    channel(
        "channel.attempts",
        Unit::Count,
        |channel| &mut channel.attempts,
        "attempts at one call, including the first and hedges; attempts that were never \
         transmitted or that a draining server refused do not count",
    )
    .within(1..=3),
    channel(
        "channel.pause.least",
        MILLIS,
        |channel| &mut channel.pause_least,
        "shortest pause before a repeat",
    )
    .within(US..=HOUR),
    channel(
        "channel.pause.first",
        MILLIS,
        |channel| &mut channel.pause_first,
        "bound of the random pause before a call's first repeat",
    )
    .within(US..=HOUR),
    channel(
        "channel.pause.factor",
        Unit::Count,
        |channel| &mut channel.pause_factor,
        "factor by which the bound grows with each further repeat",
    )
    .within(2..=1000),
    channel(
        "channel.pause.most",
        MILLIS,
        |channel| &mut channel.pause_most,
        "longest pause before a repeat",
    )
    .within(US..=HOUR),
    channel(
        "channel.hedge",
        MILLIS,
        |channel| &mut channel.hedge,
        "time after which an idempotent call without an answer is sent to a second server as well; \
         `none`: never; needs `channel.attempts` of 2 or more",
    )
    .within(US..=HOUR)
    .words(&["none"]),
];

pub(super) const SERVER: &[Setting] = &[
    server(
        "server.threads",
        Unit::Count,
        |server| &mut server.threads,
        "threads of a server, each with an endpoint",
    )
    .within(1..=1024),
    server(
        "server.drain_delay",
        SECONDS,
        |server| &mut server.drain_delay,
        "time for which a server still serves after it was asked to end, so that a load balancer \
         can take it out first",
    )
    .within(0..=HOUR),
    server(
        "server.drain_timeout",
        SECONDS,
        |server| &mut server.drain_timeout,
        "longest time of a drain; requests that are left then are cut off",
    )
    .within(0..=24 * HOUR),
    server(
        "server.health",
        Unit::Switch,
        |server| &mut server.health,
        "a separate endpoint answers whether the server serves",
    ),
    server(
        "server.health_stuck",
        MILLIS,
        |server| &mut server.health_stuck,
        "if a thread of a server makes no turn for this time, the server answers that it does not \
         serve",
    )
    .within(250 * MS..=HOUR),
    server(
        "server.max_message",
        Unit::Bytes,
        |server| &mut server.max_message,
        "most bytes of a request of one service, without metadata; `none`: `endpoint.max_message`",
    )
    .within(0..=1 << 30)
    .words(&["none"]),
    server(
        "server.max_calls",
        Unit::Count,
        |server| &mut server.max_calls,
        "most calls that a service runs at once, on all threads together; further ones are refused",
    )
    .within(1..=1 << 20)
    .words(&["none"]),
    server(
        "server.timeout",
        MILLIS,
        |server| &mut server.timeout,
        "time of a call whose client gives no deadline; then its handler is dropped",
    )
    .within(MS..=24 * HOUR)
    .words(&["none"]),
];

pub(super) const SEQUENCER: &[Setting] = &[
    sequencer(
        "sequencer.block",
        Unit::Count,
        |sequencer| &mut sequencer.block,
        "numbers of a sequence that are reserved on the disk together; a crash leaves about as \
         many unused",
    )
    .within(1..=1 << 40),
    sequencer(
        "sequencer.lease",
        SECONDS,
        |sequencer| &mut sequencer.lease,
        "time for which a server gives numbers after it last saw that no other server has taken \
         over; a server that takes over waits for this time, and an eighth longer; no clock may \
         stand meanwhile",
    )
    .within(MS..=HOUR),
];
