//! The plan of a seed: servers, calls, faults and the channel's options. Called by `run`.

use dunlin_channel::{Config, Pick};
use dunlin_core::Nanos;

use super::bug::Bug;
use crate::world::net::FaultRates;
use crate::world::rng::{Ppm, Rng};

/// The plan of a run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) channel: Config,
    pub(super) servers: Vec<ServerPlan>,
    pub(super) clients: usize,
    /// Number of channels of each client, which share its sessions.
    pub(super) channels: usize,
    /// A channel that each client drops while its others go on, and the time at which it does.
    pub(super) drops: Option<(usize, Nanos)>,
    /// Calls of each channel that begin at random times.
    pub(super) calls: u32,
    /// Further calls that each channel keeps in flight: when one ends, another begins.
    pub(super) in_flight: usize,
    /// Number of different keys of calls, which begin with `first_key`; 0: each call has its own.
    pub(super) keys: u64,
    pub(super) first_key: u64,
    /// Whether some calls are notifications.
    pub(super) notices: bool,
    /// Whether a server may restart as another version of the program.
    pub(super) versions: bool,
    /// The window of each session.
    pub(super) window: u32,
    /// The time at which the first calls begin.
    pub(super) begin: Nanos,
    /// Mean time between two calls of a channel.
    pub(super) gap: Nanos,
    pub(super) idempotent: Ppm,
    pub(super) deadlines: Ppm,
    pub(super) cancels: Ppm,
    pub(super) faults: u64,
    /// A server that leaves the list of addresses, and the time at which it does.
    pub(super) leaves: Option<(usize, Nanos)>,
    /// The planted bug of a process or the stage.
    pub(super) bug: Option<Bug>,
    pub(super) rates: FaultRates,
}

/// The behaviour of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerPlan {
    /// Time from a request to its answer.
    pub(super) takes: Takes,
    /// How often it refuses a request, before or after it ran.
    pub(super) refuses: Ppm,
    /// How often a handler answers with an error.
    pub(super) fails: Ppm,
    /// Whether its error codes are precise about whether the request ran, as the protocol demands.
    pub(super) precise: bool,
}

/// A random time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Takes {
    /// Exponentially distributed, with this mean.
    Mean(Nanos),
    /// Uniformly distributed from zero to this.
    UpTo(Nanos),
}

/// The options of every endpoint.
pub(super) fn endpoint() -> dunlin_core::Config {
    dunlin_core::Config {
        readable_buffers: true,
        check: dunlin_core::Check::Event,
        ..dunlin_core::Config::default()
    }
}

/// The most channels of a client.
pub(super) const MOST_CHANNELS: usize = 4;
/// Faults strike until this time.
pub(super) const CHAOS: Nanos = Nanos::from_millis(1500);
/// From this time on, every server must serve again.
pub(super) const SETTLE: Nanos = Nanos::from_millis(3500);
/// By this time, every call has ended.
pub(super) const END: Nanos = Nanos::from_millis(6000);
/// A peer that does not answer for this long has failed.
pub(super) const FAILURE: Nanos = Nanos::from_millis(300);

impl Plan {
    /// Makes the plan of a seed. Every 16th plan is a calm one, whose shares are judged.
    pub(super) fn draw(seed: u64, rng: &mut Rng) -> Self {
        match seed.is_multiple_of(16) {
            true => Self::calm(seed / 16, rng),
            false => Self::wild(rng),
        }
    }

    fn wild(rng: &mut Rng) -> Self {
        let storm = rng.one_in(5);
        let mut channel = Config {
            pick: *rng.pick(&[Pick::RoundRobin, Pick::LeastOfTwo, Pick::Hash]),
            hedge: rng
                .one_in(2)
                .then(|| Nanos::from_micros(rng.log_between(50, 20_000))),
            patience: Nanos::from_millis(*rng.pick(&[0, 200, 1000])),
            deadline: rng
                .one_in(4)
                .then(|| Nanos::from_millis(rng.log_between(1, 800))),
            lookup: Some(Nanos::from_millis(rng.between(100, 500))),
            lookup_pause: Nanos::from_millis(rng.between(0, 100)),
            // A link is a trunk, which opens more sessions by itself.
            links_per_endpoint: 1,
            ..Config::DEFAULT
        };
        channel.retry.attempts = *rng.pick(&[1, 2, 3]);
        let servers = (0..rng.between(1, 4)).map(|_| ServerPlan::draw(rng, storm));
        let servers = servers.collect();
        let channels = *rng.pick(&[1, 1, 2, 3]);
        Self {
            channel,
            servers,
            clients: 1 + rng.index(2),
            channels,
            drops: (channels > 1 && rng.one_in(2))
                .then(|| (rng.index(channels), Nanos(rng.below(CHAOS.0)))),
            calls: if storm { 250 } else { 60 },
            in_flight: 0,
            keys: *rng.pick(&[0, 8, 40]),
            first_key: 0,
            notices: true,
            versions: true,
            window: *rng.pick(&[2, 8]),
            begin: Nanos::ZERO,
            gap: if storm {
                Nanos::from_micros(500)
            } else {
                Nanos::from_millis(20)
            },
            idempotent: *rng.pick(&[Ppm::NEVER, Ppm::percent(50), Ppm::ALWAYS]),
            deadlines: *rng.pick(&[Ppm::NEVER, Ppm::percent(30)]),
            cancels: *rng.pick(&[Ppm::NEVER, Ppm::percent(15)]),
            faults: rng.between(0, 8),
            leaves: None,
            bug: None,
            rates: FaultRates::draw(rng),
        }
    }

    /// The key of a call.
    pub(super) fn draw_key(&self, rng: &mut Rng) -> u64 {
        match self.keys {
            0 => rng.next_u64(),
            keys => self.first_key + rng.below(keys),
        }
    }
}

impl ServerPlan {
    fn draw(rng: &mut Rng, storm: bool) -> Self {
        let refuses = if storm { 90 } else { *rng.pick(&[0, 0, 5]) };
        Self {
            takes: Takes::Mean(Nanos::from_micros(*rng.pick(&[1, 100, 10_000, 100_000]))),
            refuses: Ppm::percent(refuses),
            fails: *rng.pick(&[Ppm::NEVER, Ppm::percent(5)]),
            precise: !rng.one_in(4),
        }
    }

    /// Whether calls at the other server take as long as at this one.
    pub(super) fn is_equal(&self, other: &Self) -> bool {
        let ends = |it: &Self| (it.takes, it.refuses, it.fails);
        ends(self) == ends(other)
    }
}

impl Takes {
    pub(super) const fn mean(self) -> Nanos {
        match self {
            Self::Mean(mean) => mean,
            Self::UpTo(most) => Nanos(most.0 / 2),
        }
    }

    pub(super) fn draw(self, rng: &mut Rng) -> Nanos {
        Nanos(match self {
            Self::Mean(mean) => rng.exponential(mean.0),
            Self::UpTo(most) => rng.below(most.0 + 1),
        })
    }
}
