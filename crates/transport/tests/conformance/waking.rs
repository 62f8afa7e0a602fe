//! Waiting: no endpoint sleeps while a packet waits.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dunlin_core::transport::{Lane, Rx, Tx};
use dunlin_transport::connect::{Arm, Connect};

use crate::harness::{Endpoint, Harness, SOON};
use crate::lanes;

pub(crate) fn run_all<H: Harness>() {
    a_packet_that_is_there_already_keeps_its_receiver_awake::<H>();
    an_armed_endpoint_is_woken::<H>();
    a_lane_wakes_an_armed_endpoint::<H>();
    the_descriptors_stay_the_same::<H>();
    waking_for_nothing_does_no_harm::<H>();
}

fn arm<H: Harness>(end: &mut Endpoint<H>) -> Arm {
    H::T::arm(&mut end.rx, &mut end.tx)
}

fn disarm<H: Harness>(end: &mut Endpoint<H>) {
    H::T::disarm(&mut end.rx, &mut end.tx);
}

fn fds<H: Harness>(end: &Endpoint<H>) -> Vec<RawFd> {
    let mut fds = Vec::new();
    H::T::fds(&end.rx, &end.tx, &mut fds);
    fds
}

/// Blocks until one of the descriptors is readable; false if none is in time.
fn wait(fds: &[RawFd], at_most: Duration) -> bool {
    let mut polled: Vec<_> = fds
        .iter()
        .map(|&fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let count = libc::nfds_t::try_from(polled.len()).unwrap();
    let millis = i32::try_from(at_most.as_millis()).unwrap();
    // SAFETY: the array is as long as we say.
    unsafe { libc::poll(polled.as_mut_ptr(), count, millis) > 0 }
}

fn a_packet_that_is_there_already_keeps_its_receiver_awake<H: Harness>() {
    let (mut a, mut b) = (Endpoint::<H>::new(1), Endpoint::<H>::new(2));
    let (to_b, _) = a.connect(&mut b);
    for number in 0..50 {
        a.send_one(to_b, number, 60);
        if arm(&mut b) == Arm::Wait {
            assert!(
                wait(&fds(&b), SOON),
                "a packet was already there, and its receiver slept on"
            );
        }
        disarm(&mut b);
        assert_eq!(b.receive(1).len(), 1);
        assert_eq!(b.rest(), []);
    }
}

fn a_lane_wakes_an_armed_endpoint<H: Harness>() {
    let (mut a, mut b) = (Endpoint::<H>::new(1), Endpoint::<H>::new(2));
    let (to_b, _) = a.connect(&mut b);
    for number in 0..50 {
        let armed = arm(&mut b) == Arm::Wait;
        let mut lane = Lane::new(a.tx.lane());
        lanes::push(&mut a, &mut lane, to_b, number, 56);
        a.tx.send(&lane, &[]);
        assert!(
            !armed || wait(&fds(&b), SOON),
            "a packet is there, and the endpoint sleeps"
        );
        disarm(&mut b);
        assert_eq!(b.receive(1).len(), 1);
    }
}

fn an_armed_endpoint_is_woken<H: Harness>() {
    let (mut a, mut b) = (Endpoint::<H>::new(1), Endpoint::<H>::new(2));
    let (to_b, _) = a.connect(&mut b);
    let fds = fds(&b);
    let seen = AtomicU32::new(0);
    let seen = &seen;
    let packet = a.packet(to_b, 0, 60, 24);
    let mut sender = a.tx;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for race in 1..=H::RACES {
                sender.burst(&[packet.0]);
                // The delay below varies, so that each packet finds the receiver at another step of
                // going to sleep.
                let start = Instant::now();
                while seen.load(Ordering::Acquire) < race {
                    if start.elapsed() > 3 * SOON {
                        return;
                    }
                    // The burst may not have noticed that the receiver went to sleep.
                    sender.settle();
                    std::thread::yield_now();
                }
                for _ in 0..race * 37 % 2_003 {
                    std::hint::spin_loop();
                }
            }
        });
        let mut received = 0;
        while received < H::RACES {
            let found = b.rx.burst();
            received += u32::try_from(found).unwrap();
            seen.store(received, Ordering::Release);
            if found == 0 {
                if arm(&mut b) == Arm::Wait {
                    assert!(wait(&fds, SOON), "race {received}: a wake-up was lost");
                }
                disarm(&mut b);
            }
        }
    });
}

fn the_descriptors_stay_the_same<H: Harness>() {
    let mut hub = Endpoint::<H>::new(999);
    let before = fds(&hub);
    assert!(!before.is_empty());
    let mut spokes = Vec::new();
    for number in 0..10 {
        let mut spoke = Endpoint::<H>::new(number);
        let (to_hub, to_spoke) = spoke.connect(&mut hub);
        assert_eq!(fds(&hub), before);
        spokes.push((spoke, to_hub, to_spoke));
    }
    // Every spoke wakes the hub, even if its ring has long been quiet.
    for _ in 0..3 {
        for (spoke, to_hub, _) in &mut spokes {
            assert_eq!(hub.rest(), []);
            assert_eq!(arm(&mut hub), Arm::Wait);
            assert!(
                !wait(&before, Duration::ZERO),
                "the hub woke, but nothing has come"
            );
            spoke.send_one(*to_hub, 1, 60);
            assert!(wait(&before, SOON), "a wake-up was lost");
            disarm(&mut hub);
            assert_eq!(hub.receive(1).len(), 1);
        }
    }
    for (_, _, to_spoke) in &spokes {
        hub.remove(*to_spoke);
    }
    assert_eq!(fds(&hub), before);
}

fn waking_for_nothing_does_no_harm<H: Harness>() {
    let (mut a, mut b) = (Endpoint::<H>::new(1), Endpoint::<H>::new(2));
    let (to_b, _) = a.connect(&mut b);
    for number in 0..100 {
        for _ in 0..3 {
            if arm(&mut b) == Arm::Wait {
                assert!(!wait(&fds(&b), Duration::ZERO));
            }
            disarm(&mut b);
        }
        a.send_one(to_b, number, 60);
        assert_eq!(b.receive(1).len(), 1);
    }
}
