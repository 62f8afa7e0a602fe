//! Packets that arrive just when their receiver falls asleep, on both sides: no wake-up is lost
//! (design §10).
//!
//! Here, an endpoint sleeps until it is woken or has blocked for the longest time, 50 ms, because
//! all time-outs are far away. So a lost wake-up costs about 50 ms. A busy machine can cost as much
//! time, but the kernel reports how long our threads have waited for a processor, and how long
//! another virtual machine had it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dunlin::{Auto, Idle, Nexus, ReqType, Rpc, Session, Shm, Udp};

use crate::end_to_end::Named;
use crate::end_to_end::client::{Client, PATIENCE};

/// A request that is answered after the number of nanoseconds that it states.
const LATER: ReqType = ReqType(1);
/// How long both sides spin: longer than it takes to wake the other, so that one of them is awake.
const SPIN: Duration = Duration::from_micros(100);
/// The longest pause, well beyond the time for which a side spins.
const LONGEST_PAUSE: Duration = Duration::from_micros(250);
/// The difference between two successive pauses.
const STEP: Duration = Duration::from_nanos(250);
const SPAN: Duration = Duration::from_secs(2);
/// Timers are so late that no retransmission and no probe hides a lost wake-up.
const NEVER: Duration = Duration::from_secs(60);
/// The test asks the kernel once in this number of RPCs how long our threads have waited.
const ASK_EVERY: u32 = 50;
/// Half of the cost of a lost wake-up; far more than a wake-up takes.
const LATE: Duration = Duration::from_millis(25);

/// For the thread of each endpoint, the file in which the kernel reports how long it has waited.
struct Threads([String; 2]);

impl Threads {
    /// The file for the calling thread.
    fn own() -> String {
        // SAFETY: the call has no arguments and cannot fail.
        let thread = unsafe { libc::gettid() };
        format!("/proc/self/task/{thread}/schedstat")
    }

    /// How long the threads were ready to run but had no processor.
    fn kept_waiting(&self) -> Duration {
        // The fields are the time on a processor and the time of waiting for one, both in
        // nanoseconds, and a count.
        let waited = self.0.iter().filter_map(|path| number(path, 1)).sum();
        // The first line has the sums over all processors: a word, then times, the eighth of which
        // other virtual machines stole. The unit is 10 ms (proc(5)).
        let stolen = number("/proc/stat", 8).unwrap_or(0);
        Duration::from_nanos(waited) + Duration::from_millis(10 * stolen)
    }
}

/// The word at `index` of a file of numbers; `None` if the kernel does not have it.
fn number(path: &str, index: usize) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.split_whitespace().nth(index)?.parse().ok()
}

fn spin(span: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < span {
        std::hint::spin_loop();
    }
}

fn serve<T: Named>(nexus: &Nexus, stop: &AtomicBool, ready: impl FnOnce(String)) {
    let builder = nexus.endpoint_builder::<T>();
    let mut rpc: Rpc<T, ()> = builder
        .idle(Idle::Adaptive { spin: SPIN })
        .config(|config| config.ack_delay = NEVER.into())
        .build(())
        .unwrap();
    rpc.on(LATER, |(), request, cx| {
        let span = request.data().try_into().map_or(0, u64::from_le_bytes);
        spin(Duration::from_nanos(span).min(LONGEST_PAUSE));
        request.reply_bytes(cx, &span.to_le_bytes());
    });
    ready(Threads::own());
    rpc.run_until(|_| stop.load(Ordering::Relaxed));
}

/// A pause that is adjusted to end just when the other side falls asleep.
#[derive(Default)]
struct Aim {
    pause: Duration,
    /// Wake-ups so far.
    wakeups: u64,
}

impl Aim {
    /// Shortens the pause if a thread had to be woken after the last one, and lengthens it
    /// otherwise. If wake-ups are not counted, it sweeps over the whole range.
    fn adjust(&mut self, wakeups: u64) {
        let woken = std::mem::replace(&mut self.wakeups, wakeups) != wakeups;
        self.pause = match woken {
            true => self.pause.saturating_sub(STEP),
            false if self.pause >= LONGEST_PAUSE => Duration::ZERO,
            false => self.pause + STEP,
        };
    }
}

/// Makes RPCs, some after a pause of the client, some with a pause of the server. Returns the times
/// of the RPCs that took too long although the machine was not busy.
fn ask<T: Named>(client: &mut Client<T>, session: Session, threads: &Threads) -> Vec<Duration> {
    let (begin, mut count) = (Instant::now(), 0);
    let (mut longest, mut lost) = (Duration::ZERO, Vec::new());
    let (mut server, mut own) = (Aim::default(), Aim::default());
    let mut waited = threads.kept_waiting();
    while begin.elapsed() < SPAN {
        count += 1;
        let server_falls_asleep = count % 2 == 0;
        let (before, after) = match server_falls_asleep {
            true => (server.pause, Duration::ZERO),
            false => (Duration::ZERO, own.pause),
        };
        spin(before);
        let issued = Instant::now();
        let after = u64::try_from(after.as_nanos()).unwrap();
        client.call(session, LATER, &after.to_le_bytes(), 0);
        let done = client.finish(1, PATIENCE).remove(0);
        assert_eq!(done.result, Ok(()));
        let took = issued.elapsed();
        longest = longest.max(took);
        let counters = client.rpc.transport_counters();
        match server_falls_asleep {
            true => server.adjust(counters.wakeups_sent),
            false => own.adjust(counters.wakeups_received),
        }
        // Asking the kernel takes long enough for the server to fall asleep, so we do not ask it
        // each time.
        if took >= LATE || count % ASK_EVERY == 0 {
            let now = threads.kept_waiting();
            if took >= LATE + now.saturating_sub(waited) {
                lost.push(took);
            }
            waited = now;
        }
    }
    println!("{}: {count} RPCs, the longest took {longest:?}", T::NAME);
    lost
}

fn edge<T: Named>() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (told, thread) = std::sync::mpsc::channel();
    let (server_nexus, stopped) = (nexus.clone(), Arc::clone(&stop));
    let server = std::thread::spawn(move || {
        serve::<T>(&server_nexus, &stopped, |file| told.send(file).unwrap());
    });
    let threads = Threads([Threads::own(), thread.recv().unwrap()]);
    let mut client = Client::<T>::with(|builder| {
        builder
            .idle(Idle::Adaptive { spin: SPIN })
            .config(|config| {
                config.rto_floor = NEVER.into();
                config.rto_initial = NEVER.into();
                config.response_hold = (3 * NEVER).into();
            })
    });
    let session = client.connect(nexus.address());
    let lost = ask(&mut client, session, &threads);
    stop.store(true, Ordering::Relaxed);
    server.join().unwrap();
    let again = client.rpc.counters().retransmissions;
    assert_eq!(again, 0, "something came to the rescue");
    assert!(lost.is_empty(), "{}: wake-ups were lost: {lost:?}", T::NAME);
}

#[test]
fn no_wakeup_of_an_endpoint_that_falls_asleep_is_lost_over_shared_memory() {
    edge::<Shm>();
}

#[test]
fn no_wakeup_of_an_endpoint_that_falls_asleep_is_lost_over_udp() {
    edge::<Udp>();
}

#[test]
fn no_wakeup_of_an_endpoint_that_falls_asleep_is_lost_over_auto() {
    edge::<Auto>();
}
