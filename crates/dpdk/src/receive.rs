//! The receiving half: packets that another thread has received for this endpoint, and then those
//! of the device.
//!
//! Invariant: the packets of a burst are ours until the next one. Called by the event loop, and by
//! `connect`.

use std::sync::Arc;

use dunlin_core::transport::{Frame, Rx};
use dunlin_packet::{Home, Seen};
use dunlin_transport::counters::Counters;

use crate::device::Received;
use crate::port::{Looked, Port, Seat};
use crate::rules::Own;

/// The receiving half of a `dpdk` endpoint.
#[derive(Debug)]
pub struct DpdkRx {
    seat: Arc<Seat>,
    home: Home,
    seen: Seen,
    shown: Shown,
    corrupt: u64,
    /// Whether the device counts this endpoint as asleep.
    is_asleep: bool,
}

/// The packets of a burst.
#[derive(Debug, Default)]
struct Shown {
    batch: Received,
    packets: u64,
    bytes: u64,
}

impl DpdkRx {
    pub(crate) fn new(seat: Arc<Seat>) -> Self {
        Self {
            home: *seat.inbox.home(),
            seat,
            seen: Seen::default(),
            shown: Shown::default(),
            corrupt: 0,
            is_asleep: false,
        }
    }

    /// The address and port of this endpoint.
    pub fn local_addr(&self) -> std::net::SocketAddr {
        self.home.address
    }

    /// Counters of the device, which all of its endpoints share: packets that no endpoint got, by
    /// cause, and the empty packets of its pool.
    pub fn details(&self) -> Vec<(&'static str, u64)> {
        let mut details = vec![("pool_empty", u64::from(self.port().pool().empty()))];
        self.port()
            .show_counters(&mut |name, count| details.push((name, count)));
        details
    }

    /// Notes that the endpoint will sleep.
    pub(crate) fn sleep(&mut self) {
        if !self.is_asleep {
            self.is_asleep = true;
            self.seat.own.iter().for_each(Own::on_sleep);
            self.port().on_sleep();
        }
    }

    /// Notes that the endpoint is awake.
    pub(crate) fn wake(&mut self) {
        self.seat.inbox.wake();
        if self.is_asleep {
            self.is_asleep = false;
            self.port().on_wake();
        }
    }

    pub(crate) fn seat(&self) -> &Seat {
        &self.seat
    }

    /// The counters of this half.
    pub(crate) fn counters(&self) -> Counters {
        Counters {
            rx_packets: self.shown.packets,
            rx_bytes: self.shown.bytes,
            rx_corrupt: self.corrupt,
            rx_overflow: self.seat.inbox.overflow(),
            wakeups_received: self.seat.inbox.wakeups(),
            ..Counters::default()
        }
    }

    fn port(&self) -> &'static Port {
        self.seat.port
    }

    #[cold]
    fn other_whole(&self, index: usize) -> Option<&[u8]> {
        self.frame(index).whole()
    }
}

impl Rx for DpdkRx {
    #[inline]
    fn burst(&mut self) -> usize {
        let Seat { port, inbox, own } = &*self.seat;
        let shown = &mut self.shown;
        port.pool().free(&mut shown.batch);
        inbox.take(|arrived| {
            shown.batch.push_payload(arrived.packet, arrived.payload);
            !shown.batch.is_full()
        });
        if !shown.batch.is_full() {
            let (home, seen, batch) = (&self.home, &mut self.seen, &mut shown.batch);
            let mut looked = Looked::default();
            if let Some(own) = own {
                looked = port.receive_own(own, home, seen, batch);
                self.corrupt += looked.corrupt;
            }
            // While its own queue has packets, the keeper looks at the shared one.
            if looked.packets == 0 {
                port.on_poll();
                self.corrupt += port.receive(home, seen, batch).corrupt;
            }
        }
        let count = shown.batch.len();
        shown.packets += count as u64;
        shown.bytes += shown.batch.total();
        count
    }

    #[inline]
    fn frame(&self, index: usize) -> Frame<'_> {
        let batch = &self.shown.batch;
        Frame {
            bytes: batch.bytes(index),
            congestion: batch.is_marked(index),
            elsewhere: None,
        }
    }

    #[inline]
    fn lined_up(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.shown.batch.alike_from(first)
    }

    #[inline]
    fn whole(&self, index: usize) -> Option<&[u8]> {
        if self.shown.batch.is_alike(index) {
            return Some(self.shown.batch.bytes(index));
        }
        self.other_whole(index)
    }
}

impl Drop for DpdkRx {
    fn drop(&mut self) {
        self.wake();
        self.seat.port.pool().free(&mut self.shown.batch);
    }
}
