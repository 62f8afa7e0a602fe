//! The plan of one seed: hosts, network, faults, attacks, endpoints and their work.
//!
//! Invariant: a plan depends only on its seed. Small windows, few credits, short timeouts and late
//! frames are each common in plans, so that they often coincide; otherwise a bug that needs three
//! of them would hardly ever show. Called by `run`.

use dunlin_core::transport::{LANE_PACKET, MAX_INLINE};
use dunlin_core::{Bypasses, Check, Config, Nanos, Scheme};
use dunlin_wire::ReqNum;

use crate::cluster::Kind;
use crate::cluster::mutants::Mutant;
use crate::world::Act;
use crate::world::hostile::Attack;
use crate::world::net::{Fabric, FaultRates, HandOver, HostId, Marking, NetConfig, PortId};
use crate::world::packets;
use crate::world::rng::{Ppm, Rng};

mod changes;
mod sizes;

pub use sizes::Sizes;

/// One run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Processes per host.
    pub hosts: Vec<usize>,
    /// The network.
    pub net: NetConfig,
    /// How often faults strike frames, until `chaos_end`.
    pub rates: FaultRates,
    /// Events of hosts, processes and cables, with their times.
    pub acts: Vec<(Nanos, Act)>,
    /// Hostile frames.
    pub attacks: Vec<(Nanos, Attack)>,
    /// Whether an attacker with the right tokens forges packets. Then only memory safety, exactly
    /// one completion for each call, and the return of all resources can be checked.
    pub insider: bool,
    /// The endpoints.
    pub endpoint: Config,
    /// Deadline for opening a session.
    pub patience: Nanos,
    /// How long a control connection without sessions is kept.
    pub linger: Nanos,
    /// Whether processes of one host use a UNIX socket.
    pub unix: bool,
    /// Whether some processes receive packets at an address other than their control connections',
    /// and must prove that this address is theirs.
    pub elsewhere: bool,
    /// How often faults strike handshakes, until `chaos_end` or to the end.
    pub handshakes: Handshakes,
    /// A planted bug of the control plane.
    pub mutant: Option<Mutant>,
    /// Whether memory, sessions, budgets or credits may run out without that being a failure.
    pub tight: bool,
    /// Whether processes hold nearly all msgbufs of their pools without using them.
    pub hoards: bool,
    /// Whether sessions are paced by a scheme that changes its rate at random.
    pub paced: bool,
    /// The work of processes.
    pub workload: Workload,
    /// When the faults end.
    pub chaos_end: Nanos,
}

/// The work of the processes of a run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Calls that each process issues under faults, not counting nested ones.
    pub calls: u32,
    /// Calls that each process issues over the sound network.
    pub calm_calls: u32,
    /// The most calls issued at the same time.
    pub burst: u64,
    /// Longest time between two bursts.
    pub gap: Nanos,
    /// How long requests and responses are.
    pub sizes: Sizes,
    /// Kinds of requests; the list contains the more frequent ones several times.
    pub kinds: Vec<Kind>,
    /// Share of the calls that have a deadline, and the longest deadline.
    pub deadlines: (Ppm, Nanos),
    /// Share of the calls that are cancelled, and the longest time until a call is.
    pub cancels: (Ppm, Nanos),
    /// How often, per burst, a process disconnects a session.
    pub disconnects: Ppm,
    /// Windows that sessions ask for.
    pub windows: Vec<u32>,
    /// Credits that sessions ask for.
    pub credits: Vec<u32>,
    /// Number of sessions that a process opens to every other process.
    pub sessions: u64,
    /// Longest times that a slow handler computes, that a kept request waits, and that a worker
    /// takes.
    pub slow: (Nanos, Nanos, Nanos),
    /// Longest time that a slow handler computes over the sound network: more than the failure
    /// timeout, if the run has such slow handlers.
    pub sloth: Option<Nanos>,
    /// At most this many jobs of a process wait for workers or run.
    pub worker_queue: usize,
}

/// How often faults strike a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handshakes {
    /// The connection breaks as a grant arrives, so the grant is lost; until `chaos_end`.
    pub lost: Ppm,
    /// A grant arrives twice.
    pub doubled: Ppm,
    /// The peer restarts right after it sent a grant. The memory that it shared with this side is
    /// then gone, and so is its process, or at least the connection to it; until `chaos_end`.
    pub restarted: Ppm,
    /// A channel vanishes between a grant and its completion.
    pub gone: Ppm,
    /// An endpoint takes a grant only after the session's deadline. By then the channel is gone, or
    /// the connection breaks as the peer proves its address; until `chaos_end`.
    pub late: Ppm,
}

impl Handshakes {
    const NONE: Self = Self {
        lost: Ppm::NEVER,
        doubled: Ppm::NEVER,
        restarted: Ppm::NEVER,
        gone: Ppm::NEVER,
        late: Ppm::NEVER,
    };

    fn draw(rng: &mut Rng, seed: u64) -> Self {
        let late = Rng::new(seed ^ LATE).one_in(4);
        let mut often = || *rng.pick(&[Ppm::NEVER, Ppm::percent(5), Ppm::percent(30)]);
        Self {
            lost: often(),
            doubled: often(),
            restarted: often(),
            gone: often(),
            late: if late { Ppm::percent(30) } else { Ppm::NEVER },
        }
    }
}

/// Seeds the random stream for handshakes.
const HANDSHAKES: u64 = 0x6861_6e64_7368_616b;
/// Seeds the random stream for grants that come late.
const LATE: u64 = 0x6c61_7465_0000_0000;
/// Seeds the random stream for handlers that take longer than the failure timeout.
const SLOTH: u64 = 0x736c_6f74_6800_0000;
/// Seeds the random stream for the ways in which packets are handed over.
const HAND_OVER: u64 = 0x6861_6e64_206f_7665;
/// Seeds the random stream for addresses.
const ELSEWHERE: u64 = 0x656c_7365_7768_6572;
/// Sessions to every other process in crowded runs: more than the number of offers that may be
/// outstanding.
const CROWD: u64 = 40;

impl Plan {
    /// The plan of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let rng = &mut rng;
        // Handshakes have a random stream of their own, so that the seed's other choices do not
        // change.
        let mut own = Rng::new(seed ^ HANDSHAKES);
        let together = own.one_in(4);
        let crowd = together && own.one_in(4);
        let mut hosts = draw_hosts(rng);
        if together {
            let count = if crowd { 1 } else { hosts.len() - 1 };
            hosts = vec![2; count];
        }
        let chaos_end = Nanos(rng.log_between(5_000_000, 60_000_000));
        let insider = rng.one_in(24);
        let calm_weather = rng.one_in(16);
        let tight = rng.one_in(4);
        let rates = if calm_weather {
            FaultRates::NONE
        } else {
            FaultRates::draw(rng)
        };
        let mut net = draw_net(rng);
        net.hand_over = draw_hand_over(&mut Rng::new(seed ^ HAND_OVER));
        let data_size = u64::from(net.data_size);
        let mut plan = Self {
            net,
            rates,
            acts: if calm_weather {
                Vec::new()
            } else {
                draw_acts(rng, &hosts, chaos_end)
            },
            attacks: draw_attacks(rng, chaos_end, insider),
            insider,
            endpoint: draw_endpoint(rng, tight),
            patience: Nanos(rng.log_between(2_000_000, 1_000_000_000)),
            linger: Nanos(rng.log_between(500_000, 1_000_000_000)),
            unix: rng.one_in(2) || together,
            elsewhere: Rng::new(seed ^ ELSEWHERE).one_in(4),
            handshakes: match calm_weather {
                true => Handshakes::NONE,
                false => Handshakes::draw(&mut own, seed),
            },
            mutant: None,
            tight,
            hoards: tight && rng.one_in(2),
            paced: rng.one_in(4),
            workload: Workload::draw(rng, data_size),
            chaos_end,
            hosts,
        };
        if crowd {
            plan.workload.sessions = CROWD;
            plan.endpoint.max_sessions = plan.endpoint.max_sessions.max(256);
        } else if rng.one_in(if calm_weather { 1 } else { 3 }) {
            plan.hasten(rng);
        }
        let mut own = Rng::new(seed ^ SLOTH);
        if own.one_in(8) && !insider {
            plan.slow_down(&mut own);
        }
        plan
    }

    /// All processes.
    pub fn processes(&self) -> usize {
        self.hosts.iter().sum()
    }
}

fn draw_hosts(rng: &mut Rng) -> Vec<usize> {
    let count = *rng.pick(&[2, 2, 2, 3, 3, 4]);
    (0..count)
        .map(|_| if rng.one_in(5) { 2 } else { 1 })
        .collect()
}

fn draw_net(rng: &mut Rng) -> NetConfig {
    let mut net = NetConfig {
        line_rate: *rng.pick(&[125_000_000, 1_250_000_000, 12_500_000_000]),
        cable: Nanos(rng.log_between(100, 20_000)),
        nic_bytes: rng.log_between(20_000, 1 << 20),
        fabric: draw_fabric(rng),
        rx_queue: *rng.pick(&[8, 64, 1024, 1024]),
        data_size: *rng.pick(&[64, 200, 1024, 1440]),
        frame_bytes: *rng.pick(&[0, 300, 1472, 4096]),
        dma: (Nanos(100), Nanos(rng.log_between(200, 100_000))),
        // If bits flip and the checksum does not notice it, they are bits of the token.
        reach: 8..12,
        describe: packets::describe,
        ..NetConfig::default()
    };
    net.cpu.iteration = Nanos(rng.between(50, 500));
    net
}

/// Draws how packets are handed over: as over shared memory, as with other transports, or with
/// limits between.
fn draw_hand_over(rng: &mut Rng) -> HandOver {
    let most = LANE_PACKET as u64;
    let any = rng.between(MAX_INLINE as u64, most);
    let longest = *rng.pick(&[MAX_INLINE as u64, any, most, most]);
    HandOver {
        longest_staged: usize::try_from(longest).unwrap_or(LANE_PACKET),
        rows: !rng.one_in(4),
        at_once: rng.one_in(4),
    }
}

/// Draws the fabric: one switch in half of the seeds, and two tiers in the others. Spine cables may
/// be slower or faster than host cables, and switches have little or much memory.
fn draw_fabric(rng: &mut Rng) -> Fabric {
    let from = rng.log_between(1_000, 100_000);
    let tiers = rng.one_in(2);
    Fabric {
        racks: if tiers { 2 } else { 1 },
        neighbours: 1,
        spines: *rng.pick(&[1, 1, 2, 3]),
        uplinks: *rng.pick(&[1, 1, 2]),
        uplink_rate: *rng.pick(&[125_000_000, 1_250_000_000, 12_500_000_000]),
        buffer_bytes: rng.log_between(20_000, 2 << 20),
        alpha: *rng.pick(&[0.5, 1.0, 8.0, f64::INFINITY]),
        marking: Marking {
            from,
            to: from * rng.between(1, 4),
            most: Ppm::percent(20),
        },
        latency: Nanos(rng.log_between(1, 1_000)),
    }
}

/// A `response_hold` that is longer than any run.
pub const NEVER_FORGET: Nanos = Nanos::from_secs(60);

fn draw_endpoint(rng: &mut Rng, tight: bool) -> Config {
    let micros =
        |rng: &mut Rng, low: u64, high: u64| Nanos::from_micros(rng.log_between(low, high));
    let budget = |rng: &mut Rng, usual: u64| match tight {
        true => rng.log_between(200, 200_000),
        false => usual,
    };
    let usual = Config::default();
    let max_sessions = if tight { rng.between(1, 8) } else { 64 };
    Config {
        max_sessions: usize::try_from(max_sessions).unwrap_or(64),
        strict_credits: tight && rng.one_in(2),
        backlog: *rng.pick(&[1, 2, 8, 64, 1024]),
        rto_floor: micros(rng, 20, 5_000),
        rto_initial: micros(rng, 50, 10_000),
        ack_delay: micros(rng, 10, 1_000),
        response_hold: if rng.one_in(3) {
            NEVER_FORGET
        } else {
            micros(rng, 200, 100_000)
        },
        failure_timeout: micros(rng, 20_000, 200_000),
        scan_interval: micros(rng, 50, 500),
        probe_max: micros(rng, 500, 20_000),
        max_message: *rng.pick(&[usual.max_message, usual.max_message, 100_000, 3_000]),
        receive_budget: budget(rng, usual.receive_budget),
        session_receive_budget: budget(rng, usual.session_receive_budget),
        pool_bytes: if tight { 1 << 20 } else { 64 << 20 },
        hugepages: false,
        readable_buffers: true,
        check: Check::Event,
        first_req: draw_first_req(rng),
        scheme: Some(*rng.pick(&Scheme::ALL)),
        bypasses: Bypasses {
            timely: rng.one_in(2),
            limiter: rng.one_in(2),
            // Without this option there is no common path.
            clock: !rng.one_in(4),
            ..Bypasses::default()
        },
        // The wheel's horizon is short, so that packets of slowly paced sessions lie beyond it.
        wheel_slot: Nanos(rng.log_between(50, 20_000)),
        wheel_horizon: Nanos(rng.log_between(40_000, 200_000)),
        ..usual
    }
}

/// In half of the seeds, request numbers start just below the wrap or just below 2^31 (design §13).
fn draw_first_req(rng: &mut Rng) -> ReqNum {
    if rng.one_in(2) {
        return ReqNum(0);
    }
    // All are multiples of 64, the largest window: 64 or 128 below the wrap, and 64 below 2^31,
    // where a signed comparison goes wrong.
    ReqNum(*rng.pick(&[
        0_u32.wrapping_sub(64),
        0_u32.wrapping_sub(128),
        (1 << 31) - 64,
    ]))
}

fn draw_attacks(rng: &mut Rng, chaos_end: Nanos, insider: bool) -> Vec<(Nanos, Attack)> {
    let count = *rng.pick(&[0, 0, 5, 20, 60]);
    let count = if insider { 40 } else { count };
    (0..count)
        .map(|_| {
            let at = Nanos(rng.below(chaos_end.0));
            let harmless = *rng.pick(&Attack::HARMLESS);
            let attack = if insider && rng.one_in(2) {
                Attack::Insider
            } else {
                harmless
            };
            (at, attack)
        })
        .collect()
}

/// Draws pauses, crashes and cuts. Each begins before `chaos_end`, and has ended by then.
fn draw_acts(rng: &mut Rng, hosts: &[usize], chaos_end: Nanos) -> Vec<(Nanos, Act)> {
    let mut acts = Vec::new();
    let ports = hosts.iter().sum::<usize>();
    for _ in 0..*rng.pick(&[0, 0, 1, 1, 2, 4]) {
        let start = Nanos(rng.below(chaos_end.0));
        let end = start + Nanos(rng.log_between(100_000, 40_000_000));
        let host = HostId(rng.index(hosts.len()));
        let other = HostId(rng.index(hosts.len()));
        let port = PortId(rng.index(ports));
        let (begin, over) = match rng.below(6) {
            0 => (Act::Pause(host), Act::Resume(host)),
            1 => (Act::Unplug(host), Act::Plug(host)),
            2 => (Act::Block(host, other), Act::Unblock(host, other)),
            3 => (Act::Exit(port), Act::Boot(port)),
            _ => (Act::Crash(port), Act::Boot(port)),
        };
        acts.push((start, begin));
        acts.push((end.min(chaos_end), over));
    }
    acts
}

impl Workload {
    fn draw(rng: &mut Rng, data_size: u64) -> Self {
        let one_or_few = |rng: &mut Rng, tiny: &[u32], any: &[u32]| match rng.below(3) {
            0 => vec![*rng.pick(tiny)],
            1 => vec![*rng.pick(any)],
            _ => any.to_vec(),
        };
        Self {
            calls: u32::try_from(rng.between(20, 80)).unwrap_or(80),
            calm_calls: 10,
            burst: *rng.pick(&[1, 3, 8, 30]),
            gap: Nanos(rng.log_between(2_000, 1_000_000)),
            sizes: Sizes::draw(rng, data_size),
            kinds: draw_kinds(rng),
            deadlines: (
                *rng.pick(&RARE_TO_COMMON),
                Nanos(rng.log_between(5_000, 20_000_000)),
            ),
            cancels: (
                *rng.pick(&RARE_TO_COMMON),
                Nanos(rng.log_between(100, 5_000_000)),
            ),
            disconnects: *rng.pick(&[Ppm::NEVER, Ppm::percent(1), Ppm::percent(5)]),
            windows: one_or_few(rng, &[1, 2], &[1, 2, 4, 8, 16, 64]),
            credits: one_or_few(rng, &[1, 2], &[1, 2, 3, 8, 32, 256]),
            sessions: *rng.pick(&[1, 1, 2]),
            slow: (
                Nanos(rng.log_between(1_000, 2_000_000)),
                Nanos(rng.log_between(1_000, 20_000_000)),
                Nanos(rng.log_between(1_000, 5_000_000)),
            ),
            sloth: None,
            worker_queue: *rng.pick(&[1, 4, 64, 64]),
        }
    }
}

const RARE_TO_COMMON: [Ppm; 4] = [Ppm::NEVER, Ppm(20_000), Ppm::percent(10), Ppm::percent(40)];

/// Draws all kinds, or only a few, so that one kind dominates some runs.
fn draw_kinds(rng: &mut Rng) -> Vec<Kind> {
    if rng.one_in(3) {
        return (0..rng.between(1, 3))
            .map(|_| *rng.pick(&Kind::ALL))
            .collect();
    }
    let mut kinds = Kind::ALL.to_vec();
    kinds.extend([Kind::Echo; 6]);
    kinds.extend([Kind::Nested, Kind::Background, Kind::Batch, Kind::Later]);
    kinds
}

#[cfg(test)]
mod tests;
