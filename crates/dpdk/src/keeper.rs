//! The thread that keeps the devices: while no endpoint of a device polls, it answers questions of
//! neighbours, hands packets to endpoints, and wakes those that sleep; and it repeats our own
//! questions. It is the thread on which DPDK was started.
//!
//! It looks once in [`PERIOD`], which is also the longest time that a packet waits for an endpoint
//! that sleeps. A look takes about a microsecond, so an idle process uses well below 1 % of a
//! processor. Without devices it does not run.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::port::Port;

/// Time between two looks.
const PERIOD: Duration = Duration::from_millis(1);

/// The devices.
static KEPT: Mutex<Vec<&'static Port>> = Mutex::new(Vec::new());
/// Notified when there is another one.
static ADDED: Condvar = Condvar::new();

/// Keeps a device from now on.
pub(crate) fn keep(port: &'static Port) {
    KEPT.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(port);
    ADDED.notify_one();
}

/// Keeps devices for ever.
pub(crate) fn run() {
    let begin = Instant::now();
    let mut ports = Vec::new();
    loop {
        await_ports(&mut ports);
        let now_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        for port in &ports {
            port.on_time(now_ms);
        }
        std::thread::sleep(PERIOD);
    }
}

/// Fills `ports` with the open devices, of which there is at least one when this returns.
fn await_ports(ports: &mut Vec<&'static Port>) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    while kept.is_empty() {
        kept = ADDED.wait(kept).unwrap_or_else(PoisonError::into_inner);
    }
    ports.clone_from(&kept);
}
