//! The state of the machine during a measurement: the round trip of a cache line between the
//! processors of client and server, directly before and after it (`harness::state` has the reason).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::child::{Processors, take};

/// The time of one ping-pong.
const SPAN: Duration = Duration::from_millis(10);

/// Round trips between two readings of the clock.
const BATCH: u64 = 200;

/// A word that has its cache line, and the next one, to itself.
#[repr(align(128))]
struct Line(AtomicU64);

/// The median round trip in ns; `None` if the two sides have no processors of their own.
pub(crate) fn round_trip(processors: Option<Processors>) -> Option<f64> {
    let [near, far] = processors?;
    let lines = [Line(AtomicU64::new(0)), Line(AtomicU64::new(0))];
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            if take(far).is_ok() {
                answer(&lines, &stop);
            }
        });
        let asked = scope.spawn(|| {
            let median = take(near).ok().and_then(|()| ask(&lines));
            stop.store(true, Ordering::Relaxed);
            median
        });
        // It has no reason to panic.
        asked.join().ok().flatten()
    })
}

fn answer([asked, answered]: &[Line; 2], stop: &AtomicBool) {
    let mut last = 0;
    while !stop.load(Ordering::Relaxed) {
        let now = asked.0.load(Ordering::Acquire);
        if now != last {
            answered.0.store(now, Ordering::Release);
            last = now;
        }
    }
}

/// The median over batches; `None` if the other side is missing.
#[expect(clippy::cast_precision_loss, reason = "a batch is small")]
fn ask([asked, answered]: &[Line; 2]) -> Option<f64> {
    let (begin, mut times, mut number) = (Instant::now(), Vec::new(), 0);
    while begin.elapsed() < SPAN {
        let batch = Instant::now();
        for _ in 0..BATCH {
            number += 1;
            asked.0.store(number, Ordering::Release);
            while answered.0.load(Ordering::Acquire) != number {
                if begin.elapsed() > 100 * SPAN {
                    return None;
                }
            }
        }
        times.push(batch.elapsed());
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2)?;
    Some(median.as_secs_f64() * 1e9 / BATCH as f64)
}
