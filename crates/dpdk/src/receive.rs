//! The receiving half: packets that another thread has received for this endpoint, and then those
//! of the device.
//!
//! Invariant: the packets of a burst are ours until the next one. Called by the event loop, and by
//! `connect`.

use std::sync::Arc;

use dunlin_core::transport::{Frame, RX_BURST, Rx};
use dunlin_packet::Home;
use dunlin_transport::counters::Counters;

use crate::device::Batch;
use crate::inbox::{Arrived, Payload};
use crate::port::{Port, Seat};

/// The receiving half of a `dpdk` endpoint.
#[derive(Debug)]
pub struct DpdkRx {
    seat: Arc<Seat>,
    home: Home,
    shown: Shown,
    corrupt: u64,
}

/// The packets of a burst.
#[derive(Debug)]
struct Shown {
    batch: Batch,
    payloads: [Payload; RX_BURST],
    packets: u64,
    bytes: u64,
}

impl Shown {
    /// Adds a packet. The batch must have room.
    #[inline]
    fn add(&mut self, arrived: Arrived) {
        self.payloads[self.batch.len()] = arrived.payload;
        self.packets += 1;
        self.bytes += arrived.payload.len as u64;
        self.batch.push(arrived.packet);
    }

    #[inline]
    fn bytes(&self, index: usize) -> (&[u8], bool) {
        let payload = self.payloads[index];
        let bytes = &self.batch.bytes(index)[payload.start..payload.start + payload.len];
        (bytes, payload.congestion)
    }
}

impl DpdkRx {
    pub(crate) fn new(seat: Arc<Seat>) -> Self {
        Self {
            home: *seat.inbox.home(),
            seat,
            shown: Shown {
                batch: Batch::default(),
                payloads: [Payload::default(); RX_BURST],
                packets: 0,
                bytes: 0,
            },
            corrupt: 0,
        }
    }

    /// The address and port of this endpoint.
    pub fn local_addr(&self) -> std::net::SocketAddr {
        self.home.address
    }

    /// Counters of the device, which all of its endpoints share: packets that no endpoint got, by
    /// cause, and the empty packets of its pool.
    pub fn details(&self) -> Vec<(&'static str, u64)> {
        self.port().details()
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
}

impl Rx for DpdkRx {
    #[inline]
    fn burst(&mut self) -> usize {
        let Seat { port, inbox } = &*self.seat;
        let shown = &mut self.shown;
        port.pool().free(&mut shown.batch);
        inbox.take(|arrived| {
            shown.add(arrived);
            !shown.batch.is_full()
        });
        let room = RX_BURST - shown.batch.len();
        if room > 0 {
            port.on_poll();
            let looked = port.look(&self.home, room, |arrived| shown.add(arrived));
            self.corrupt += looked.corrupt;
        }
        self.shown.batch.len()
    }

    #[inline]
    fn frame(&self, index: usize) -> Frame<'_> {
        let (bytes, congestion) = self.shown.bytes(index);
        Frame {
            bytes,
            congestion,
            elsewhere: None,
        }
    }
}

impl Drop for DpdkRx {
    fn drop(&mut self) {
        self.seat.port.pool().free(&mut self.shown.batch);
    }
}
