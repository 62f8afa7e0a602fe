//! The plan of a seed: how many calls of which kinds, how many faults, and the channel's options.

use dunlin_core::{Nanos, Rng};

use dunlin_channel::Config;

/// The shape of a run, before it begins.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) calls: u32,
    /// Mean time between two calls.
    pub(crate) gap: Nanos,
    pub(crate) faults: u32,
    /// How many of a hundred calls may run twice, have a deadline, or are cancelled.
    pub(crate) idempotent: u32,
    pub(crate) deadlines: u32,
    pub(crate) cancels: u32,
    pub(crate) endpoints: u32,
}

/// The limit of actions and of steps; no sound run reaches it.
pub(crate) const ACTIONS: u64 = 50_000;
pub(crate) const CHAOS: Nanos = Nanos::from_secs(3);
/// Time after the faults within which everything must work again.
pub(crate) const SETTLE: Nanos = Nanos::from_secs(4);
/// Time after the end of [`SETTLE`] within which every call must end.
pub(crate) const END: Nanos = Nanos::from_secs(12);

impl Plan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        use dunlin_channel::Pick::{Hash, LeastOfTwo, RoundRobin};
        let one_in = |rng: &mut Rng, n| rng.below(n) == 0;
        let millis = |rng: &mut Rng, n| Nanos::from_millis(u64::from(rng.below(n)));
        let storm = one_in(rng, 4);
        let mut config = Config {
            pick: [RoundRobin, LeastOfTwo, Hash][rng.below(3) as usize],
            hedge: one_in(rng, 2).then(|| Nanos(1) + millis(rng, 20)),
            patience: [Nanos::ZERO, Nanos::from_millis(300), Nanos::from_secs(2)]
                [rng.below(3) as usize],
            deadline: one_in(rng, 4).then(|| Nanos::from_millis(1) + millis(rng, 1000)),
            lookup: Some(Nanos::from_millis(100) + millis(rng, 900)),
            lookup_pause: millis(rng, 100),
            links_per_server: 1 + rng.below(4) as usize,
            calls: if one_in(rng, 8) { 8 } else { 4096 },
            ..Config::DEFAULT
        };
        // One link for each endpoint, as in a hub, or as many as there can be.
        config.links_per_endpoint = if config.links_per_server == 2 { 1 } else { 8 };
        config.retry.attempts = 1 + u8::try_from(rng.below(4)).unwrap_or(0);
        Self {
            config,
            calls: if storm { 400 } else { 20 + rng.below(100) },
            gap: Nanos(if storm { 500_000 } else { 20_000_000 }),
            faults: rng.below(12),
            idempotent: [0, 50, 100][rng.below(3) as usize],
            deadlines: [0, 30][rng.below(2) as usize],
            cancels: [0, 20][rng.below(2) as usize],
            endpoints: [0, 10][rng.below(2) as usize],
        }
    }
}
