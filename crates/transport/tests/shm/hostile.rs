//! A peer that writes arbitrary values into all memory that it can map.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dunlin_core::transport::{PeerId, RX_BURST, Rx};
use dunlin_testkit::random::Random;

use crate::endpoint::{End, SOON};

/// The memory of a descriptor, as a hostile peer sees it.
struct Loot {
    words: *const AtomicU64,
    count: usize,
}

// SAFETY: the memory is shared between processes anyway, and all access is atomic.
unsafe impl Send for Loot {}
// SAFETY: as above.
unsafe impl Sync for Loot {}

impl Loot {
    fn of(fd: &OwnedFd) -> Self {
        let len = File::from(fd.try_clone().unwrap())
            .metadata()
            .unwrap()
            .len();
        let len = usize::try_from(len).unwrap();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which is never taken away.
        let base = unsafe {
            let fd = fd.as_raw_fd();
            libc::mmap(
                std::ptr::null_mut(),
                len,
                protection,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        Self {
            words: base.cast(),
            count: len / 8,
        }
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is that long and is never taken away.
        unsafe { std::slice::from_raw_parts(self.words, self.count) }
    }
}

/// A value to write: any bits, or bits like those of a packet's word or of a position.
fn word(random: &mut Random) -> u64 {
    let lap = random.word() % 6;
    match random.below(6) {
        0 => random.word(),
        1 => 0,
        2 => u64::MAX,
        3 => lap << 1 | 1 | (random.word() % 70) << 32,
        4 => lap << 1 | 1 | (random.word() % 5000) << 32,
        _ => lap << 1 | 1 | (random.word() % 8) << 48 | (random.word() % 70) << 32,
    }
}

/// Two endpoints, and all memory that either could overwrite: the channel and both doorbells.
fn pair() -> (End, End, PeerId, PeerId, Vec<Loot>) {
    let (mut a, mut b) = (End::new(1), End::new(2));
    let (pending, offer) = a.offer(&b.info()).unwrap();
    let mut loot = vec![Loot::of(&offer.fds[0]), Loot::of(&offer.fds[1])];
    let (to_a, answer) = b.accept(&a.info(), offer).unwrap();
    loot.push(Loot::of(&answer.fds[0]));
    let to_b = a.complete(pending, answer).unwrap();
    (a, b, to_b, to_a, loot)
}

/// Reads all frames of a burst, as an endpoint would, whatever their contents.
fn look(end: &mut End) -> usize {
    let start = Instant::now();
    let frames = end.rx.burst();
    assert!(frames <= RX_BURST);
    let mut sum = 0_u64;
    for index in 0..frames {
        let frame = end.rx.frame(index);
        assert!(frame.bytes.len() <= (32 << 10) + 56);
        let mut data = Vec::new();
        if let Some(elsewhere) = frame.elsewhere {
            data.resize(elsewhere.len().min(1 << 20), 0);
            let _whole_or_not = elsewhere.copy_to(&mut data);
        }
        sum = frame
            .bytes
            .iter()
            .chain(&data)
            .fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)));
    }
    std::hint::black_box(sum);
    assert!(start.elapsed() < SOON, "a burst does not end");
    frames
}

#[test]
fn nonsense_between_the_bursts_harms_no_peer() {
    let mut closed = 0;
    for seed in 1..60 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let (mut a, mut b, to_b, to_a, loot) = pair();
        let mut honest = End::new(3);
        let (to_honest, from_honest) = a.connect(&mut honest);
        for number in 0..300 {
            for _ in 0..random.below(40) {
                let words = loot[random.below(loot.len())].words();
                // The control page and the heads of the rings are hit as often as all the rest.
                let near = if random.below(2) == 0 {
                    1100
                } else {
                    words.len()
                };
                words[random.below(near.min(words.len()))]
                    .store(word(&mut random), Ordering::Relaxed);
            }
            a.send(to_b, number);
            b.send(to_a, number);
            look(&mut a);
            look(&mut b);
            if number % 16 == 0 {
                a.sleep(Duration::ZERO);
                b.sleep(Duration::ZERO);
            }
        }
        closed += a.counters().rx_corrupt + b.counters().rx_corrupt;
        a.remove(to_b);
        b.release(to_a);
        // An honest third endpoint has lost nothing.
        while look(&mut a) > 0 {}
        for number in 0..50 {
            assert!(honest.send(from_honest, number));
            assert_eq!(a.receive(), [number]);
            assert!(a.send(to_honest, number));
            assert_eq!(honest.receive(), [number]);
        }
    }
    assert!(closed > 0, "the nonsense was never noticed");
}

#[test]
fn nonsense_during_the_bursts_harms_no_peer() {
    let (mut a, mut b, to_b, to_a, loot) = pair();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(77);
            while !stop.load(Ordering::Relaxed) {
                let words = loot[random.below(loot.len())].words();
                let near = if random.below(2) == 0 {
                    2000
                } else {
                    words.len()
                };
                words[random.below(near.min(words.len()))]
                    .store(word(&mut random), Ordering::Relaxed);
            }
        });
        let start = Instant::now();
        let mut number = 0;
        while start.elapsed() < Duration::from_millis(400) {
            number += 1;
            a.send(to_b, number);
            b.send(to_a, number);
            look(&mut a);
            look(&mut b);
            if number % 64 == 0 {
                a.sleep(Duration::ZERO);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_packet_does_not_change_after_it_was_shown() {
    for number in [4, 1998] {
        let (mut a, mut b, to_b, _, loot) = pair();
        assert!(a.send(to_b, number));
        while b.rx.burst() == 0 {}
        let before = b.rx.frame(0).bytes.to_vec();
        for word in loot[0].words() {
            word.store(u64::MAX, Ordering::Relaxed);
        }
        assert_eq!(
            b.rx.frame(0).bytes,
            before,
            "the peer can change what was validated"
        );
    }
}

#[test]
fn a_wiped_doorbell_only_delays() {
    let (mut hub, mut hostile) = (End::new(1), End::new(2));
    let (pending, offer) = hub.offer(&hostile.info()).unwrap();
    let bell = Loot::of(&offer.fds[1]);
    let (_, answer) = hostile.accept(&hub.info(), offer).unwrap();
    hub.complete(pending, answer).unwrap();
    let mut honest: Vec<_> = (10..30).map(End::new).collect();
    let names: Vec<_> = honest
        .iter_mut()
        .map(|end| end.connect(&mut hub).0)
        .collect();
    // There are enough empty rings for the hub to park them.
    for _ in 0..10_000 {
        assert_eq!(hub.poll(), []);
    }
    for (number, (end, name)) in (0..).zip(honest.iter_mut().zip(&names)) {
        assert!(end.send(*name, number));
        for word in bell.words() {
            word.store(0, Ordering::Relaxed);
        }
        assert_eq!(hub.receive(), [number]);
    }
}
