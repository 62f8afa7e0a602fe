//! The plans of calm runs, whose shares are judged: no server fails or refuses, and there are
//! enough calls. Called by `plan`.

use dunlin_channel::{Config, Pick};
use dunlin_core::Nanos;

use super::plan::{Plan, ServerPlan, Takes};
use crate::world::net::FaultRates;
use crate::world::rng::{Ppm, Rng};

/// The first call begins when all servers are ready.
const BEGIN: Nanos = Nanos::from_millis(450);

/// The time in which all calls begin.
const SPAN: Nanos = Nanos::from_millis(950);

/// If a server leaves, it leaves at this time.
const LEAVE: Nanos = Nanos::from_millis(800);

/// The number of calls in an equal share, for each kind of judgement.
const TURNS: u64 = 150;
const LEAST: u64 = 400;
const KEYS: u64 = 780;
/// With this number, a limit of 10 % is wider than five standard deviations.
const MANY: u64 = 7_800;

/// The number of keys of each server in runs in which one leaves.
const KEYS_OF_SERVER: u64 = 130;

/// For runs in which one server is ten times as slow as the others: the time of a handler at the
/// other servers; the attempts that are outstanding at each server if there are three or more; and
/// the same number if there are two. While channels counted only attempts, and few were
/// outstanding, the slow one of two servers got most calls.
const FAST: Nanos = Nanos::from_millis(1);
const OUTSTANDING: u64 = 12;
const OUTSTANDING_OF_TWO: u64 = 4;

impl Plan {
    /// Makes a calm plan. Four consecutive plans cover these picks: round robin, the least of two
    /// with equal servers, the least of two with a slow one, and hashes with a server that leaves.
    /// In every eighth group of four, the least of two and the hashes instead have equal servers
    /// and enough calls for the limit of 10 %.
    pub(super) fn calm(number: u64, rng: &mut Rng) -> Self {
        let servers = 2 + rng.index(3);
        let has_many = (number / 4).is_multiple_of(8);
        match (number % 4, has_many) {
            (0, _) => Self::equal(Pick::RoundRobin, servers, TURNS, rng),
            (1, true) => Self::equal(Pick::LeastOfTwo, servers, MANY, rng),
            (1, false) => Self::equal(Pick::LeastOfTwo, servers, LEAST, rng),
            (2, _) if number & 4 == 0 => Self::slowed(servers.max(3), OUTSTANDING, rng),
            (2, _) => Self::slowed(2, OUTSTANDING_OF_TWO, rng),
            (_, true) => Self::equal(Pick::Hash, servers, MANY, rng),
            (_, false) => Self {
                first_key: rng.next_u64() / 2,
                keys: KEYS_OF_SERVER * servers as u64,
                leaves: Some((rng.index(servers), LEAVE)),
                ..Self::equal(Pick::Hash, servers, KEYS, rng)
            },
        }
    }

    fn equal(pick: Pick, servers: usize, share: u64, rng: &mut Rng) -> Self {
        let mean = Nanos::from_micros(*rng.pick(&[1, 300, 3_000]));
        let server = ServerPlan {
            takes: Takes::Mean(mean),
            refuses: Ppm::NEVER,
            fails: Ppm::NEVER,
            precise: true,
        };
        let calls = share * servers as u64;
        Self {
            channel: Config {
                pick,
                lookup: Some(Nanos::from_millis(100)),
                links_per_endpoint: 1,
                ..Config::DEFAULT
            },
            servers: vec![server; servers],
            clients: 1,
            channels: 1,
            drops: None,
            calls: u32::try_from(calls).unwrap_or(u32::MAX),
            in_flight: 0,
            first_key: 0,
            keys: 0,
            notices: true,
            versions: false,
            window: 64,
            begin: BEGIN,
            gap: Nanos(SPAN.0 / calls),
            idempotent: Ppm::percent(50),
            deadlines: Ppm::NEVER,
            cancels: *rng.pick(&[Ppm::NEVER, Ppm::percent(15)]),
            faults: 0,
            leaves: None,
            bug: None,
            rates: FaultRates::NONE,
        }
    }

    fn slowed(servers: usize, outstanding: u64, rng: &mut Rng) -> Self {
        let others = servers as u64 - 1;
        let calls = SPAN.0 / FAST.0 * outstanding * others;
        let mut plan = Self::equal(Pick::LeastOfTwo, servers, calls / servers as u64, rng);
        for server in &mut plan.servers {
            server.takes = Takes::Mean(FAST);
        }
        plan.servers[rng.index(servers)].takes = Takes::Mean(Nanos(10 * FAST.0));
        plan
    }
}
