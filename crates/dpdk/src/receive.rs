//! The receiving half: packets that another thread has received for this endpoint, and then those
//! of the device.
//!
//! An endpoint answers the packets of an iteration together. If it saw all datagrams that wait at
//! once, its peer would wait for the answers to all of them, and then the endpoint for the peer. So
//! it sees one half of a few full datagrams first, and the other half in its next iteration, while
//! the peer works on the answers to the first (docs/decisions/dpdk.md).
//!
//! Invariant: the packets that are shown are ours until the device is next asked for packets.
//! Called by the event loop, and by `connect`.

use std::sync::Arc;

use dunlin_core::transport::{Frame, Rx};
use dunlin_packet::{Home, Seen};
use dunlin_transport::counters::Counters;
use dunlin_wire::{HEADER_LEN, Header, PacketType};

use crate::device::Received;
use crate::port::{Looked, Port, Seat};
use crate::rules::Own;

/// The most datagrams that are shown in halves. If there are more, the peer has others to work on,
/// and an iteration costs more than its wait.
const FEW: usize = 8;

/// Fewest bytes of a datagram, on average, for which datagrams are shown in halves. An iteration of
/// its own would cost too much for a few small messages.
const LONG: u64 = 256;

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

/// The packets that the device and the inbox had together.
#[derive(Debug, Default)]
struct Shown {
    batch: Received,
    packets: u64,
    bytes: u64,
}

impl Shown {
    /// Shows all packets, or the first half of them. Returns the number of those that are shown.
    #[inline]
    fn show_first(&mut self) -> usize {
        let (count, bytes) = (self.batch.len(), self.batch.total());
        self.bytes += bytes;
        if (2..=FEW).contains(&count) && bytes >= LONG * count as u64 {
            self.halve();
        }
        self.count()
    }

    /// Hides half of the datagrams if they hold several messages each. Packets of a large message
    /// are not halved: its sender does not wait for the answer to each.
    #[inline(never)]
    fn halve(&mut self) {
        if begins_with_short_message(self.batch.bytes(0)) {
            self.batch.hide_half();
        }
    }

    /// Shows the other half. Returns its number of packets.
    fn show_rest(&mut self) -> usize {
        self.batch.show_rest();
        self.count()
    }

    /// Counts the packets that are shown, and returns their number.
    #[inline]
    fn count(&mut self) -> usize {
        self.packets += self.batch.len() as u64;
        self.batch.len()
    }
}

/// Whether a datagram begins with a message that fills at most half of it, so others follow.
fn begins_with_short_message(datagram: &[u8]) -> bool {
    Header::decode(datagram).is_ok_and(|header| {
        let is_message = matches!(header.kind, PacketType::Req | PacketType::Resp);
        is_message && header.size as usize + HEADER_LEN <= datagram.len() / 2
    })
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

    /// Whether packets that the device has given are still to be shown.
    pub(crate) fn has_rest(&self) -> bool {
        self.shown.batch.has_rest()
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
        if shown.batch.has_rest() {
            return shown.show_rest();
        }
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
        shown.show_first()
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
