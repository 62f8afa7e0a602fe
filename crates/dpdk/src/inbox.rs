//! Packets that another thread has received for an endpoint, and the bell that wakes it.
//!
//! Invariant (no wake-up is lost): a giver adds a packet and then looks at `asleep`; an endpoint
//! that goes to sleep sets `asleep` and then looks at the packets. Both use sequentially consistent
//! operations. Called by `port` and `receive`.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dunlin_packet::{Datagram, Home, Payload, Refused, Written};

use crate::device::{Packet, Pool};
use crate::ffi::Event;

/// A packet with the place of its payload.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) packet: Packet,
    pub(crate) payload: Payload,
}

/// The payload of a datagram. Refuses one whose checksum covers only the pseudo header, because a
/// packet from a network has a full one.
pub(crate) fn payload_of(found: Datagram) -> Result<Payload, Refused> {
    if found.sum == Written::Partial {
        return Err(Refused::Sum);
    }
    Ok(found.into())
}

/// The room of all inboxes of a device together. Its limit leaves packets of the pool for endpoints
/// that receive, while the inboxes of others are full.
#[derive(Debug)]
pub(crate) struct Room {
    most: usize,
    taken: AtomicUsize,
}

impl Room {
    /// Room for up to `most` packets.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            taken: AtomicUsize::new(0),
        }
    }

    /// Takes room for one packet. False if there is none.
    fn enter(&self) -> bool {
        let has_room = self.taken.fetch_add(1, Ordering::Relaxed) < self.most;
        if !has_room {
            self.leave(1);
        }
        has_room
    }

    fn leave(&self, count: usize) {
        self.taken.fetch_sub(count, Ordering::Relaxed);
    }
}

/// The inbox of one endpoint.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// The address of the endpoint.
    home: Home,
    /// The most packets; 0 once the endpoint is closed.
    capacity: AtomicUsize,
    /// Shared with the other inboxes of the device.
    room: Arc<Room>,
    packets: Mutex<VecDeque<Arrived>>,
    /// The number of packets.
    count: AtomicUsize,
    asleep: AtomicBool,
    event: Event,
    overflow: AtomicU64,
    wakeups: AtomicU64,
}

impl Inbox {
    /// An empty inbox for up to `capacity` packets, if `room` has room for them.
    pub(crate) fn new(home: Home, capacity: usize, room: Arc<Room>) -> io::Result<Self> {
        Ok(Self {
            home,
            capacity: AtomicUsize::new(capacity),
            room,
            packets: Mutex::new(VecDeque::with_capacity(capacity)),
            count: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
            event: Event::new()?,
            overflow: AtomicU64::new(0),
            wakeups: AtomicU64::new(0),
        })
    }

    /// The address of the endpoint.
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// Adds a packet, and wakes the endpoint if it sleeps. If there is no room, frees and counts
    /// the packet.
    pub(crate) fn give(&self, arrived: Arrived, pool: &Pool) {
        let mut packets = self.packets();
        let is_full = packets.len() >= self.capacity.load(Ordering::Relaxed);
        if is_full || !self.room.enter() {
            drop(packets);
            pool.free_one(arrived.packet);
            self.overflow.fetch_add(1, Ordering::Relaxed);
            return;
        }
        packets.push_back(arrived);
        self.count.store(packets.len(), Ordering::SeqCst);
        drop(packets);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.wakeups.fetch_add(1, Ordering::Relaxed);
            self.event.signal();
        }
    }

    /// Takes packets, oldest first, until `take` returns false.
    #[inline]
    pub(crate) fn take(&self, mut take: impl FnMut(Arrived) -> bool) {
        if self.is_empty() {
            return;
        }
        let mut packets = self.packets();
        let before = packets.len();
        while let Some(arrived) = packets.pop_front() {
            if !take(arrived) {
                break;
            }
        }
        self.room.leave(before - packets.len());
        self.count.store(packets.len(), Ordering::SeqCst);
    }

    /// Frees all packets, and those that come later.
    pub(crate) fn close(&self, pool: &Pool) {
        let mut packets = self.packets();
        self.capacity.store(0, Ordering::Relaxed);
        self.room.leave(packets.len());
        packets.drain(..).for_each(|it| pool.free_one(it.packet));
        self.count.store(0, Ordering::SeqCst);
    }

    /// Whether it has no packets.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Announces that the endpoint will wait for the descriptor. False if it must not, because
    /// packets are there.
    pub(crate) fn sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Whether the endpoint waits for the descriptor.
    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Notes that the endpoint is awake. A giver that has just seen it asleep may still ring, and
    /// then the next sleep is short.
    pub(crate) fn wake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
        self.event.clear();
    }

    /// The descriptor that becomes readable when a packet comes during sleep.
    pub(crate) fn fd(&self) -> RawFd {
        self.event.number()
    }

    /// Packets for which there was no room.
    pub(crate) fn overflow(&self) -> u64 {
        self.overflow.load(Ordering::Relaxed)
    }

    /// Times that a packet woke the endpoint.
    pub(crate) fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }

    fn packets(&self) -> MutexGuard<'_, VecDeque<Arrived>> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
