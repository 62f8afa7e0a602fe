//! Compares the shared-memory transport, called through its two traits, with the bare hardware: a
//! ping-pong of one cache line, and a ring of cache lines that hold a sequence number.
//!
//! ```text
//! cargo run --release -p dunlin-transport --example shm_pingpong [runs]
//! ```
//!
//! Every run measures the bare hardware and the transport in turn, between two threads and between
//! two processes. The program prints the medians and their ratio. Each packet carries a new
//! counter; the other side reads it and answers with a function of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_msgbuf::{BufRef, Pool, PoolConfig};
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{Options, Shm, ShmRx, ShmTx};

type End = (Halves<ShmRx, ShmTx>, PeerId);

/// Runs by default. The figures of a build with debug assertions mean nothing.
const RUNS: usize = if cfg!(debug_assertions) { 3 } else { 7 };
const ROUND_TRIPS: u64 = 300_000;
const PACKETS: u64 = 4_000_000;
const RING: usize = 2048;
/// The most packets in flight. The sender waits until the receiver has reported earlier ones.
const WINDOW: u64 = 1536;
const ACK_EVERY: u64 = 256;

#[repr(align(64))]
struct Cell {
    word: AtomicU64,
    body: [AtomicU64; 7],
}

struct Raw {
    there: Vec<Cell>,
    back: Vec<Cell>,
}

/// A measurement: a name, a unit, and both figures of each run.
struct Row {
    name: &'static str,
    unit: &'static str,
    raw: Vec<f64>,
    own: Vec<f64>,
}

fn main() {
    let runs = std::env::args().nth(1).and_then(|runs| runs.parse().ok());
    let mut rows: [Row; 6] = [
        ("round trip, threads", "ns"),
        ("round trip, processes", "ns"),
        ("one way, threads, burst 32", "M/s"),
        ("one way, threads, burst 3", "M/s"),
        ("one way, threads, burst 1", "M/s"),
        ("one way, processes, burst 32", "M/s"),
    ]
    .map(|(name, unit)| Row {
        name,
        unit,
        raw: Vec::new(),
        own: Vec::new(),
    });
    for _ in 0..runs.unwrap_or(RUNS) {
        let (round_trip, one_way) = (raw_ping_pong(), raw_one_way());
        let own = [
            threads(ping, echo),
            processes(ping, echo),
            threads(|end| stream(end, 32), sink),
            threads(|end| stream(end, 3), sink),
            threads(|end| stream(end, 1), sink),
            processes(|end| stream(end, 32), sink),
        ];
        for (row, own) in rows.iter_mut().zip(own) {
            row.raw.push(if row.unit == "ns" {
                round_trip
            } else {
                one_way
            });
            row.own.push(own);
        }
    }
    println!(
        "{:30} {:>8} {:>10} {:>6}  spread",
        "", "raw", "transport", "ratio"
    );
    for Row {
        name,
        unit,
        raw,
        own,
    } in &mut rows
    {
        let mut ratio: Vec<_> = raw
            .iter()
            .zip(own.iter())
            .map(|(raw, own)| own / raw)
            .collect();
        let (raw, median_own, ratio) = (median(raw), median(own), median(&mut ratio));
        let (least, most) = (own[0], own[own.len() - 1]);
        println!(
            "{name:30} {raw:>8.1} {median_own:>10.1} {ratio:>6.2}  {least:.1} to {most:.1} {unit}"
        );
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn pin(core: usize) {
    run_on(&[core]);
}

/// Restricts this thread, and every thread that it makes from now on, to these cores.
fn run_on(cores: &[usize]) {
    // SAFETY: the set is plain data, and the call reads no more than its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &core in cores {
            libc::CPU_SET(core, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

fn cells() -> Vec<Cell> {
    let cell = || Cell {
        word: AtomicU64::new(0),
        body: Default::default(),
    };
    std::iter::repeat_with(cell).take(RING).collect()
}

/// The cell of packet `n`.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is small")]
const fn slot(n: u64) -> usize {
    (n % RING as u64) as usize
}

impl Raw {
    fn put(cells: &[Cell], n: u64) {
        let cell = &cells[slot(n)];
        for (i, word) in cell.body.iter().enumerate() {
            word.store(n + i as u64, Ordering::Relaxed);
        }
        cell.word.store(n / RING as u64 + 1, Ordering::Release);
    }

    fn try_get(cells: &[Cell], n: u64) -> Option<u64> {
        let cell = &cells[slot(n)];
        if cell.word.load(Ordering::Acquire) != n / RING as u64 + 1 {
            return None;
        }
        let sum = cell.body.iter().map(|word| word.load(Ordering::Relaxed));
        Some(sum.fold(0, u64::wrapping_add))
    }

    fn get(cells: &[Cell], n: u64) -> u64 {
        loop {
            if let Some(got) = Self::try_get(cells, n) {
                return got;
            }
        }
    }
}

fn raw_ping_pong() -> f64 {
    run_on(&[0, 1]);
    let raw = Raw {
        there: cells(),
        back: cells(),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            for n in 0..ROUND_TRIPS {
                Raw::get(&raw.there, n);
                Raw::put(&raw.back, n);
            }
        });
        pin(0);
        let start = Instant::now();
        for n in 0..ROUND_TRIPS {
            Raw::put(&raw.there, n);
            assert_eq!(Raw::get(&raw.back, n), 7 * n + 21);
        }
        start.elapsed().as_nanos() as f64 / ROUND_TRIPS as f64
    })
}

fn raw_one_way() -> f64 {
    run_on(&[0, 1]);
    let raw = Raw {
        there: cells(),
        back: Vec::new(),
    };
    let consumed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            let mut sum = 0_u64;
            for n in 0..PACKETS {
                sum = sum.wrapping_add(Raw::get(&raw.there, n));
                if n % ACK_EVERY == 0 {
                    consumed.store(n, Ordering::Release);
                }
            }
            consumed.store(PACKETS, Ordering::Release);
            assert_eq!(sum, 7 * (PACKETS * (PACKETS - 1) / 2) + 21 * PACKETS);
        });
        pin(0);
        let start = Instant::now();
        let mut seen = 0;
        for n in 0..PACKETS {
            while n - seen >= WINDOW {
                seen = consumed.load(Ordering::Acquire);
            }
            Raw::put(&raw.there, n);
        }
        while consumed.load(Ordering::Acquire) < PACKETS {}
        PACKETS as f64 / start.elapsed().as_nanos() as f64 * 1e3
    })
}

fn pair() -> (End, End) {
    let [mut near, mut far] =
        [(); 2].map(|()| Shm::open(Options::default()).expect("the defaults fit"));
    let infos = [1, 2].map(|uid| PeerInfo::of_this_host(EndpointUid([uid; 16])));
    let met = meet::<Shm>([&mut near, &mut far], &infos);
    let [to_far, to_near] = met.expect("the ends fit each other");
    ((near, to_far), (far, to_near))
}

fn threads(client: impl FnOnce(&mut End) -> f64, server: impl FnOnce(&mut End) + Send) -> f64 {
    run_on(&[0, 1]);
    let (mut a, mut b) = pair();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            pin(1);
            server(&mut b);
        });
        pin(0);
        client(&mut a)
    })
}

fn processes(client: impl FnOnce(&mut End) -> f64, server: impl FnOnce(&mut End)) -> f64 {
    run_on(&[0, 1]);
    let (mut a, mut b) = pair();
    // SAFETY: this process has one thread now, so the child may call any function.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    if child == 0 {
        pin(1);
        server(&mut b);
        std::process::exit(0);
    }
    pin(0);
    let result = client(&mut a);
    let mut status = 0;
    // SAFETY: the status outlives the call.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the server failed");
    result
}

fn item(peer: PeerId, n: u64, data: BufRef) -> TxItem {
    let mut inline = [0; MAX_INLINE];
    inline[..8].copy_from_slice(&n.to_le_bytes());
    TxItem {
        peer,
        inline_len: 24,
        inline,
        data,
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(
        *bytes
            .first_chunk()
            .expect("every packet begins with a number"),
    )
}

fn wait_one(rx: &mut ShmRx) -> u64 {
    while rx.burst() == 0 {}
    let bytes = rx.frame(0).bytes;
    number(bytes).wrapping_add(number(&bytes[48..]))
}

fn ping((end, peer): &mut End) -> f64 {
    let mut pool = Pool::new(PoolConfig::default()).expect("memory");
    let mut buf = pool.alloc(32).expect("memory");
    let start = Instant::now();
    for n in 0..ROUND_TRIPS {
        buf.data_mut()[24..].copy_from_slice(&n.to_le_bytes());
        end.tx.burst(&[item(*peer, n, buf.lend())]);
        assert_eq!(wait_one(&mut end.rx), 4 * n + 1);
    }
    start.elapsed().as_nanos() as f64 / ROUND_TRIPS as f64
}

fn echo((end, peer): &mut End) {
    let mut pool = Pool::new(PoolConfig::default()).expect("memory");
    let mut buf = pool.alloc(32).expect("memory");
    for _ in 0..ROUND_TRIPS {
        let sum = wait_one(&mut end.rx);
        buf.data_mut()[24..].copy_from_slice(&(sum + 1).to_le_bytes());
        end.tx.burst(&[item(*peer, sum, buf.lend())]);
    }
}

fn stream((end, peer): &mut End, burst: usize) -> f64 {
    let mut pool = Pool::new(PoolConfig::default()).expect("memory");
    let buf = pool.alloc(32).expect("memory");
    let mut items = vec![item(*peer, 0, buf.lend()); burst];
    let start = Instant::now();
    let (mut sent, mut arrived) = (0, 0);
    while arrived < PACKETS {
        if sent < PACKETS && sent - arrived + burst as u64 <= WINDOW {
            for item in &mut items {
                item.inline[..8].copy_from_slice(&sent.to_le_bytes());
                sent += 1;
            }
            end.tx.burst(&items);
        } else {
            for i in 0..end.rx.burst() {
                arrived = number(end.rx.frame(i).bytes);
            }
        }
    }
    assert_eq!(end.tx.counters().tx_dropped_full, 0);
    PACKETS as f64 / start.elapsed().as_nanos() as f64 * 1e3
}

fn sink((end, peer): &mut End) {
    let mut received = 0;
    while received < PACKETS {
        let frames = end.rx.burst();
        for i in 0..frames {
            let bytes = end.rx.frame(i).bytes;
            assert_eq!(number(bytes), received);
            received += 1;
            if received % ACK_EVERY == 0 || received == PACKETS {
                end.tx.burst(&[item(*peer, received, BufRef::EMPTY)]);
            }
        }
    }
}
