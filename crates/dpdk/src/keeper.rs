//! The thread that keeps the devices: while no endpoint of a device polls, it answers questions of
//! neighbours, hands packets to endpoints, and wakes those that sleep; and it repeats our own
//! questions. It is the thread on which DPDK was started.
//!
//! Between two looks it sleeps for [`BUSY`] while a device is in use, later for a [`SHARE`] of the
//! time since the last use, and at most for [`QUIET`]. That is also the longest time that a packet
//! waits for an endpoint that sleeps. A look with its sleep takes some 20 µs, and three times as
//! long on a busy machine, so an idle process uses below 1 % of a processor.

use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::port::Port;
use crate::words;

/// Time between two looks while a device is in use.
pub(crate) const BUSY: Duration = Duration::from_millis(1);
/// The longest time between two looks.
const QUIET: Duration = Duration::from_millis(10);
/// After the last use of a device, the thread sleeps for the time since then divided by this.
const SHARE: u32 = 32;

/// Once in this number of looks, the thread reads the log of DPDK, which takes a call to the
/// kernel.
const TURNS: u32 = 64;

/// The devices.
static KEPT: Mutex<Vec<&'static Port>> = Mutex::new(Vec::new());
/// Notified when [`keep`] has added a device.
static ADDED: Condvar = Condvar::new();

/// The moment from which the thread counts the time.
static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Keeps a device from now on. Sets the device's clock at once: a packet that came before the first
/// look would otherwise count from time 0, as if it were as old as the thread.
pub(crate) fn keep(port: &'static Port) {
    port.begin(in_ms(BEGIN.elapsed()));
    KEPT.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(port);
    ADDED.notify_one();
}

/// Keeps devices for ever.
pub(crate) fn run() {
    let (mut ports, mut used, mut turns) = (Vec::new(), Duration::ZERO, 0_u32);
    loop {
        await_ports(&mut ports);
        let now = BEGIN.elapsed();
        for port in &ports {
            if port.on_time(in_ms(now)) {
                used = now;
            }
        }
        turns += 1;
        if turns % TURNS == 0 {
            words::collect();
        }
        std::thread::sleep(((now - used) / SHARE).clamp(BUSY, QUIET));
    }
}

fn in_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Fills `ports` with the open devices, of which there is at least one when this returns.
fn await_ports(ports: &mut Vec<&'static Port>) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    while kept.is_empty() {
        kept = ADDED.wait(kept).unwrap_or_else(PoisonError::into_inner);
    }
    ports.clone_from(&kept);
}
