//! Two endpoints whose promises must hold, whatever packets, users, faults and clocks do. Property
//! tests and the fuzz target in `fuzz/` run them. They also compare two variants of an endpoint
//! whose visible behaviour must be equal.
//!
//! The input is a list of steps. Each step has one byte for its kind, and bytes for its parameters.
//! The checkers run all the time; then the faults end, and everything must complete and be given
//! back.
//!
//! Some steps change header bytes of real packets and leave their tokens right. An attacker that
//! knows the token of a session may end its calls or answer them wrongly. The checkers allow that
//! for sessions that were attacked in this way: see `taint` in `life/ledger.rs`.

mod challenges;
mod host;
mod ledger;
mod letter;
mod net;
mod record;
mod world;

use dunlin_core::transport::{LANE_PACKET, MAX_INLINE};
use dunlin_core::{Bypasses, Config, Nanos, Scheme};
use dunlin_wire::ReqNum;

use crate::session;
use dunlin_core::config::MAX_WINDOW;
use letter::Mode;
use net::{DATA_SIZES, Device};
use record::Recorder;
use world::{Order, World};

/// Room for the longest answer.
const MOST_ROOM: usize = 2048;

const WINDOWS: [u32; 4] = [1, 2, 8, MAX_WINDOW];

/// Request numbers that start here soon wrap: with the largest window, when each slot is used for
/// the second time.
const WRAP_SOON: u32 = MAX_WINDOW.wrapping_neg();

/// Spans by which the clock is set forward: the first is shorter than every timeout of an endpoint,
/// the last is longer.
const SPANS: [Nanos; 8] = [
    Nanos(1),
    Nanos::from_micros(3),
    Nanos::from_micros(60),
    Nanos::from_micros(300),
    Nanos::from_millis(2),
    Nanos::from_millis(9),
    Nanos::from_millis(40),
    Nanos::from_millis(300),
];

/// Runs the steps in the bytes, and panics if the endpoint breaks a promise.
pub fn endpoint(bytes: &[u8]) {
    live(bytes, &Variant::usual(), &Recorder::default());
}

/// An endpoint and the way in which its transport takes staged packets.
#[derive(Clone, Debug)]
struct Variant {
    config: Config,
    /// Longest staged packet.
    longest: usize,
    /// Whether packets that are alike are sent as a row.
    rows: bool,
}

impl Variant {
    /// An endpoint with every path, on a transport that takes staged packets of any length.
    fn usual() -> Self {
        Self {
            config: host::config(),
            longest: LANE_PACKET,
            rows: true,
        }
    }

    /// The same, with or without the common path and lanes.
    fn with(self, common: bool, lanes: bool) -> Self {
        let bypasses = Bypasses {
            common,
            lanes,
            ..self.config.bypasses
        };
        let config = Config {
            bypasses,
            ..self.config
        };
        Self { config, ..self }
    }
}

/// Runs the steps with each of two variants of an endpoint that must behave alike, and panics at
/// the first difference: in the packets, in the events of users and their order, in counters,
/// histograms, msgbufs and sessions. In each of three pairs, one variant lacks something: the
/// common path, rows, or lanes. The variant without lanes is compared with lanes whose packets have
/// one line. A lane with longer packets would copy messages that the queue lends, so calls might
/// end earlier.
pub fn variants(bytes: &[u8]) {
    let usual = Variant::usual();
    let listed = Variant {
        rows: false,
        ..Variant::usual()
    };
    let short = Variant {
        longest: MAX_INLINE,
        ..Variant::usual()
    };
    for pair in [
        [usual.clone().with(false, true), usual.clone()],
        [listed.with(false, true), usual],
        [short.clone().with(true, false), short],
    ] {
        if let Some(difference) = compare(bytes, &pair) {
            panic!("{difference}");
        }
    }
}

/// The first difference between runs of two variants.
fn compare(bytes: &[u8], variants: &[Variant; 2]) -> Option<String> {
    let [first, second] = variants.each_ref().map(|variant| {
        let record = Recorder::on();
        live(bytes, variant, &record);
        record.take()
    });
    record::difference(&first, &second)
}

fn live(bytes: &[u8], variant: &Variant, record: &Recorder) {
    let config = variant.config.clone();
    let mut input = Input(bytes);
    let setup = input.byte();
    let device = Device {
        data_size: DATA_SIZES[usize::from(setup >> 3 & 1)],
        longest_staged: variant.longest,
        rows: variant.rows,
    };
    let options = session::options(WINDOWS[usize::from(setup % 4)], 1 + u32::from(setup >> 4));
    let second = input.byte();
    let config = Config {
        backlog: 1 + u32::from(second % 16),
        scheme: Some(Scheme::ALL[usize::from(second >> 4) % Scheme::ALL.len()]),
        bypasses: Bypasses {
            limiter: second & 64 == 0,
            ..config.bypasses
        },
        first_req: ReqNum(if setup & 4 != 0 { WRAP_SOON } else { 0 }),
        ..config
    };
    let mut world = World::new(options, &config, device, record.clone());
    while !input.0.is_empty() {
        step(&mut world, &mut input);
        world.check();
        world.note_standing();
    }
    world.finish();
}

/// The rest of the input; reading beyond its end gives zeros.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn index(&mut self) -> usize {
        usize::from(self.byte())
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }
}

/// Runs one step. The lower half of the byte selects its kind, a bit of the upper half the host.
fn step(world: &mut World, input: &mut Input<'_>) {
    let what = input.byte();
    let host = usize::from(what >> 7);
    match what & 0x1F {
        0..=5 => call(world, host, input),
        6 => world.cancel(host, input.index()),
        7..=10 => world.run(host),
        11 => world.run_once(host),
        12..=15 => world.exchange(),
        16 | 17 => world.deliver(host, input.index()),
        18 => world.lose(host, input.index()),
        19 => world.duplicate(host, input.index()),
        20 => world.pack(host),
        21 => world.lose_all(host),
        22 | 23 => mutate(world, host, input),
        24 => inject(world, host, input),
        25..=27 => world.pass(SPANS[input.index() % SPANS.len()]),
        28 => world.run_jobs(host, input.index()),
        29 => hold(world, host, input),
        30 => world.set_stuck(host, input.byte() % 2 == 1),
        _ => session(world, host, input),
    }
}

fn call(world: &mut World, host: usize, input: &mut Input<'_>) {
    let (kind, size, rest) = (input.byte(), input.byte(), input.byte());
    let deadline = (rest & 8 != 0).then(|| SPANS[usize::from(rest % 8)]);
    // Messages have up to sixteen packets.
    let [scale, answer_scale] = [64, 128].map(|bit| if rest & bit != 0 { 8_u16 } else { 1 });
    let double = if rest & 16 != 0 { 2 } else { 1 };
    world.call(
        host,
        &Order {
            session: usize::from(kind >> 6),
            kind: kind % 8,
            mode: Mode::from_byte(kind >> 3),
            len: usize::from(u16::from(size) * scale),
            answer_len: u16::from(size) * double * answer_scale,
            room: if rest & 32 != 0 { 16 } else { MOST_ROOM },
            deadline,
        },
    );
}

/// Delivers a copy of a real packet, in which up to two header bytes differ.
fn mutate(world: &mut World, host: usize, input: &mut Input<'_>) {
    let (which, to) = (input.index(), input.index() % 4);
    let changes = [(); 2].map(|()| (input.index(), input.byte()));
    // The copy usually goes to the packet's receiver, and sometimes back to its sender.
    let to = if to == 0 { host } else { 1 - host };
    world.mutate(host, which, to, changes);
}

fn inject(world: &mut World, host: usize, input: &mut Input<'_>) {
    let len = input.index();
    let bytes = input.bytes(len % 64);
    world.inject(host, bytes);
}

fn hold(world: &mut World, host: usize, input: &mut Input<'_>) {
    let which = input.byte();
    world.answer_held(host, usize::from(which >> 1), which & 1 == 0);
}

fn session(world: &mut World, host: usize, input: &mut Input<'_>) {
    let what = input.byte();
    let which = usize::from(what >> 4);
    match what % 8 {
        0 | 1 => world.connect(host),
        2 | 3 => world.complete_opening(),
        4 => world.disconnect(host, which),
        5 | 6 => world.deliver_control(),
        7 if which >= 8 => world.challenge(host, which),
        _ => world.call_again(host, which),
    }
}

#[cfg(test)]
mod tests;
