//! RPCs over two links of memif, with a relay between them that loses, delays and changes packets.
//! It passes the questions of neighbours unchanged.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use dunlin_core::Nanos;
use dunlin_dpdk::{Bare, Dpdk};
use dunlin_testkit::child::Child;

use crate::echo::Echo;
use crate::{open, pair};

/// A fault that datagrams meet at the relay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Loss,
    Delay,
    Change,
    /// All are lost, until the hole ends.
    Hole(Instant),
}

/// One datagram in this many meets a fault. The number is a prime so that it falls on packets of
/// all kinds.
const EVERY: u64 = 23;

/// Datagrams that overtake a delayed one.
const LATER: usize = 5;

/// How long the black hole lasts.
const HOLE: Duration = Duration::from_millis(300);

/// Where a frame names its kind, the protocol after IPv4 without options, and its payload begins.
const KIND: usize = 12;
const PROTOCOL: usize = 14 + 9;
const PAYLOAD: usize = 14 + 20 + 8;

struct Relay {
    near: Bare,
    far: Bare,
    there: Way,
    back: Way,
    fault: Option<Fault>,
}

impl Relay {
    /// A relay without faults between two devices.
    fn between(left: &str, right: &str) -> Self {
        Self {
            near: Bare::open(left).unwrap(),
            far: Bare::open(right).unwrap(),
            there: Way::default(),
            back: Way::default(),
            fault: None,
        }
    }

    fn turn(&mut self) {
        self.there.carry(self.fault, &mut self.near, &mut self.far);
        self.back.carry(self.fault, &mut self.far, &mut self.near);
    }

    /// Datagrams that have met a fault.
    fn met(&self) -> u64 {
        self.there.met + self.back.met
    }
}

/// One direction.
#[derive(Default)]
struct Way {
    seen: u64,
    met: u64,
    ready: VecDeque<Vec<u8>>,
    /// A delayed frame, and how many others it still waits for.
    late: Option<(Vec<u8>, usize)>,
}

impl Way {
    fn carry(&mut self, fault: Option<Fault>, from: &mut Bare, to: &mut Bare) {
        let mut got = Vec::new();
        from.receive(32, |bytes| got.push(bytes.to_vec()));
        for frame in got {
            self.take(fault, frame);
        }
        while let Some(frame) = self.ready.front() {
            if !to.push(frame.len(), |room| room.copy_from_slice(frame)) {
                break;
            }
            self.ready.pop_front();
        }
        to.send();
    }

    fn take(&mut self, fault: Option<Fault>, mut frame: Vec<u8>) {
        if frame[KIND..KIND + 2] != [8, 0] || frame[PROTOCOL] != 17 {
            return self.ready.push_back(frame);
        }
        self.seen += 1;
        let meets = match fault {
            Some(Fault::Hole(until)) => Instant::now() < until,
            _ => self.seen.is_multiple_of(EVERY),
        };
        if let Some(fault) = fault.filter(|_| meets) {
            self.met += 1;
            match fault {
                Fault::Loss | Fault::Hole(_) => return,
                Fault::Change => frame[PAYLOAD] ^= 0x10,
                Fault::Delay => {
                    let earlier = self.late.replace((frame, LATER));
                    return self.ready.extend(earlier.map(|(frame, _)| frame));
                }
            }
        }
        self.ready.push_back(frame);
        if let Some((_, left)) = &mut self.late {
            *left -= 1;
            if *left == 0 {
                self.ready.extend(self.late.take().map(|(frame, _)| frame));
            }
        }
    }
}

#[test]
#[ignore = "needs DPDK"]
fn calls_survive_loss_reordering_changed_packets_and_a_black_hole() {
    let place = |number: u32| format!("ip=10.82.15.{number}/24");
    let (_near, [near, left]) = pair::devices(15, place);
    // The relay's devices are bare, so their addresses have no effect.
    let (_far, [right, far]) = pair::devices(16, place);
    let near = open(&near);
    let mut relay = Relay::between(&left, &right);
    let mut echo = Echo::<Dpdk, Dpdk>::new(near, open(&far));
    echo.calls_while(40, 1000, || relay.turn());
    for fault in [Fault::Loss, Fault::Delay, Fault::Change] {
        relay.fault = Some(fault);
        let before = relay.met();
        echo.calls_while(300, 32, || relay.turn());
        echo.calls_while(100, 1000, || relay.turn());
        echo.calls_while(10, 5000, || relay.turn());
        let met = relay.met() - before;
        assert!(met > 10, "{met} of {fault:?}");
        let wrong: u64 = echo.details("rx_wrong_sum").iter().sum();
        assert_eq!(wrong > 0, fault == Fault::Change, "{fault:?}: {wrong}");
    }
    // The calls begin in the hole, which ends while they wait.
    let before = relay.met();
    relay.fault = Some(Fault::Hole(Instant::now() + HOLE));
    echo.calls_while(40, 1000, || relay.turn());
    assert!(relay.met() > before, "no packet met the black hole");
}

/// The time after which a silent peer has failed.
const SILENCE: Nanos = Nanos::from_secs(1);

/// Longer than any test.
const FOREVER: Duration = Duration::from_secs(3600);

/// Plays a client, a server, and a relay between them that loses all datagrams until the session
/// has failed.
pub(crate) fn fail_in_a_hole() {
    let place = |number: u32| format!("ip=10.82.17.{number}/24");
    let (_near, [near, left]) = pair::devices(1, place);
    let (_far, [right, far]) = pair::devices(2, place);
    let near = open(&near);
    let mut relay = Relay::between(&left, &right);
    let mut echo = Echo::<Dpdk, Dpdk>::with_patience(near, open(&far), SILENCE);
    for _ in 0..2 {
        echo.calls_while(40, 1000, || relay.turn());
        relay.fault = Some(Fault::Hole(Instant::now() + FOREVER));
        echo.fail_while(1000, || relay.turn());
        relay.fault = None;
        echo.open_again();
    }
    echo.calls_while(40, 1000, || relay.turn());
}

#[test]
#[ignore = "needs DPDK"]
fn a_lasting_black_hole_fails_the_session_and_another_one_works_after_it() {
    // A process has room for few devices.
    assert_eq!(Child::start("fails in a hole").line(), "done");
}
