//! A device of DPDK with a queue of packets to send, one or more of received ones, and the packets
//! of its pool.
//!
//! Invariants: a queue is used by one thread at a time, because its methods take `&mut`. A packet
//! belongs to one value of this crate, or to the device. A running device is never closed, because
//! its driver may handle events on a thread of DPDK at any time; so its parts live as long as the
//! process.
//! Called by `port`, `receive` and `transmit`.

use std::ffi::{CString, c_void};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::atomic::AtomicU8;

use dunlin_msgbuf::RegionId;

use crate::ffi::{Facts, Functions, Tail, Wish};
use crate::site::{complete, name_of};
use crate::words;
use shared::{Memory, Shared};

mod packet;
mod received;
mod shared;
mod tx_packets;

pub(crate) use packet::{BATCH, Packet};
pub(crate) use received::Received;
pub(crate) use tx_packets::{SHORT, TxPackets};

/// An open device.
#[derive(Debug)]
struct Opened {
    functions: &'static Functions,
    facts: Facts,
}

/// Opens the device that these arguments of DPDK name. `around` is the number of bytes of Ethernet
/// around an IP packet.
///
/// The caller opens one device at a time.
///
/// # Errors
/// `InvalidInput` for a name with a zero; `ResourceBusy` if the device is open, perhaps by another
/// spelling of its name; otherwise the last lines of DPDK's log.
pub(crate) fn open(functions: &'static Functions, device: &str, wish: Wish) -> io::Result<Parts> {
    let string = |text: &str| {
        CString::new(text).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "a device's name has a zero byte",
            )
        })
    };
    let (name, all) = (string(name_of(device))?, string(&complete(device))?);
    let mut facts = Facts {
        pool: std::ptr::null_mut(),
        bytes_per_second: 0,
        room: 0,
        start: 0,
        rx_descriptors: 0,
        bell: -1,
        port: 0,
        mtu: 0,
        queues: 1,
        mac: [0; 6],
        answers: 0,
        lends: 0,
    };
    let (name, all) = (name.as_ptr(), all.as_ptr());
    // SAFETY: two strings, and two live structures of the types that the function expects.
    let code = unsafe { (functions.open)(name, all, &raw const wish, &raw mut facts) };
    if code != 0 {
        let why = words::error_of(code);
        let kind = io::Error::from_raw_os_error(code.saturating_neg()).kind();
        let what = format!("the device {device} cannot be opened: {why}");
        return Err(io::Error::new(kind, what));
    }
    Ok(Parts::new(Box::leak(Box::new(Opened { functions, facts }))))
}

/// The interrupts of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bell(&'static Opened);

impl Bell {
    /// The descriptor that becomes readable when a packet comes; `None` if the device has no
    /// interrupts.
    pub(crate) fn fd(&self) -> Option<RawFd> {
        Some(self.0.facts.bell).filter(|bell| *bell >= 0)
    }

    /// Forgets the packets so far. If `on`, the descriptor becomes readable when the next packet
    /// comes; otherwise it may stay unreadable.
    pub(crate) fn listen(&self, on: bool) {
        if let Some(bell) = self.fd() {
            // SAFETY: the device is open, and the descriptor is its own.
            unsafe {
                (self.0.functions.listen)(self.0.facts.port, self.0.facts.queues, bell, on.into());
            }
        }
    }
}

/// The parts of an open device.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) rx: RxQueue,
    /// Queues that have only the packets of a rule.
    pub(crate) ruled: Vec<RxQueue>,
    pub(crate) tx: TxQueue,
    pub(crate) pool: Pool,
    pub(crate) bell: Bell,
    pub(crate) facts: Facts,
}

impl Parts {
    /// The parts of a device that a test plays.
    #[cfg(test)]
    pub(crate) fn played(functions: &'static Functions, facts: Facts) -> Self {
        Self::new(Box::leak(Box::new(Opened { functions, facts })))
    }

    fn new(opened: &'static Opened) -> Self {
        Self {
            facts: opened.facts,
            rx: RxQueue(opened, 0),
            ruled: (1..opened.facts.queues)
                .map(|number| RxQueue(opened, number))
                .collect(),
            tx: TxQueue(opened, Shared::default()),
            pool: Pool(opened),
            bell: Bell(opened),
        }
    }
}

/// For each packet of a batch, the data after its own bytes, which the device reads in a msgbuf.
#[derive(Debug)]
pub(crate) struct Tails([Tail; BATCH]);

// SAFETY: the packets of tails belong to their holder alone.
unsafe impl Send for Tails {}

impl Tails {
    /// The tail of a packet that has none.
    const NONE: Tail = Tail {
        handle: std::ptr::null_mut(),
        bytes: std::ptr::null(),
        done: std::ptr::null(),
        len: 0,
    };

    /// No tails.
    pub(crate) fn new() -> Self {
        Self([Self::NONE; BATCH])
    }

    /// Adds a tail to the packet at a place. `empty` is the packet that will describe the tail to
    /// the device, and belongs to the tail from then on.
    ///
    /// # Safety
    /// The bytes stay unchanged, and `done` stays where it is, until the device sets `done` to 1.
    pub(crate) unsafe fn add(
        &mut self,
        place: usize,
        empty: Packet,
        bytes: &[u8],
        done: &AtomicU8,
    ) {
        self.0[place] = Tail {
            handle: empty.into_handle(),
            bytes: bytes.as_ptr(),
            done,
            len: u32::try_from(bytes.len()).expect("it fits a datagram"),
        };
    }

    /// Forgets all tails, after the first `sent` packets were sent and the others freed. Returns
    /// the number of tails that were sent.
    pub(crate) fn clear(&mut self, sent: usize) -> u64 {
        let count = self.0[..sent].iter().filter(|it| !it.handle.is_null());
        let count = count.count() as u64;
        self.0 = [Self::NONE; BATCH];
        count
    }
}

/// A queue of received packets, by its number.
#[derive(Debug)]
pub(crate) struct RxQueue(&'static Opened, u16);

/// A rule of a device. Dropping this value ends the rule.
#[derive(Debug)]
pub(crate) struct Rule(&'static Opened, *mut c_void);

// SAFETY: DPDK keeps the rule, whichever thread ends it.
unsafe impl Send for Rule {}
// SAFETY: a shared rule can only be looked at.
unsafe impl Sync for Rule {}

impl Drop for Rule {
    fn drop(&mut self) {
        // SAFETY: the device is open, and the rule is one of its own that has not ended.
        unsafe { (self.0.functions.unsteer)(self.0.facts.port, self.1) };
    }
}

impl RxQueue {
    /// Makes the device put the datagrams for an address and a port into this queue. `None` if it
    /// refuses.
    pub(crate) fn steer(&self, to: SocketAddr) -> Option<Rule> {
        let Self(opened, number) = *self;
        let address = match to.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let address = address.octets();
        // SAFETY: the device is open and has the queue, and the address has 16 bytes.
        let rule = unsafe {
            (opened.functions.steer)(opened.facts.port, number, address.as_ptr(), to.port())
        };
        (!rule.is_null()).then_some(Rule(opened, rule))
    }

    /// Adds up to `most` received packets, while there is room. Returns their number.
    #[inline]
    pub(crate) fn receive(&mut self, batch: &mut Received, most: usize) -> usize {
        let (handles, bytes, lens) = batch.places(most);
        // One argument fewer, so that all of them go in registers.
        let from = u32::from(self.1) << 16 | u32::from(self.0.facts.port);
        let mut start = 0;
        // SAFETY: the device is open, the arrays have this room, and only this value receives.
        let count = unsafe {
            (self.0.functions.receive)(
                from,
                handles.as_mut_ptr(),
                bytes.as_mut_ptr(),
                lens.as_mut_ptr(),
                u32::try_from(handles.len()).expect("32"),
                &raw mut start,
            )
        };
        batch.on_received(count as usize, start as usize);
        count as usize
    }

    /// Packets that the device dropped, by cause.
    pub(crate) fn drops(&self) -> [u64; 4] {
        let mut drops = [0; 4];
        // SAFETY: the device is open, and the numbers are live.
        unsafe { (self.0.functions.drops)(self.0.facts.port, &raw mut drops) };
        drops
    }
}

/// The queue of packets to send, and the memory that the device may read for them.
#[derive(Debug)]
pub(crate) struct TxQueue(&'static Opened, Shared);

impl TxQueue {
    /// Hands the complete packets to the device, which takes the first of them. The others stay,
    /// and keep their tails.
    #[inline]
    pub(crate) fn send(&mut self, packets: &mut TxPackets, tails: Option<&Tails>) {
        let (handles, lens) = packets.complete();
        let tails = tails.map_or(std::ptr::null(), |it| it.0[..handles.len()].as_ptr());
        // SAFETY: the device is open, the packets are ours and at most as long as the pool's, and
        // only this value sends. Packets that the device takes are no longer used. The tails are
        // as many, and `Tails::add` vouches for their bytes.
        let sent = unsafe {
            (self.0.functions.send)(
                self.0.facts.port,
                handles.as_ptr(),
                lens.as_ptr(),
                tails,
                u32::try_from(handles.len()).expect("32"),
            )
        };
        packets.on_sent(sent as usize);
    }

    /// Lets the device read a region of msgbufs, if it can; returns whether it may.
    ///
    /// # Safety
    /// The region's bytes begin at `base`, and it lives during the call.
    pub(crate) unsafe fn share(&mut self, region: RegionId, base: *const u8) -> bool {
        let Self(opened, shared) = self;
        let share = |Memory(base, len): Memory, on: bool| {
            // SAFETY: the device is open. Memory to share is mapped; that of earlier regions is
            // not, and no packet names it any more.
            unsafe { (opened.functions.share)(opened.facts.port, base, len, on.into()) == 0 }
        };
        shared.may_read(region, base.cast_mut().cast(), share)
    }

    /// Notes that an endpoint has gone before the device gave all of its packets back.
    pub(crate) fn on_owed(&mut self) {
        self.1.on_owed();
    }

    /// Whether the link is up.
    pub(crate) fn is_up(&mut self) -> bool {
        // SAFETY: the device is open.
        unsafe { (self.0.functions.is_up)(self.0.facts.port) != 0 }
    }

    /// Makes the device give back the packets that it has sent. Without effect if it cannot be
    /// asked.
    pub(crate) fn ask(&mut self) {
        // SAFETY: the device is open.
        unsafe { (self.0.functions.ask)(self.0.facts.port) };
    }
}

/// The pool of packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool(&'static Opened);

impl Pool {
    /// No packets yet, on their way to the device.
    pub(crate) fn tx_packets(&self) -> TxPackets {
        let Facts { start, room, .. } = self.0.facts;
        TxPackets::new(start as usize, room)
    }

    /// If there are fewer than `wanted` empty packets, adds some, up to [`BATCH`]. If the pool has
    /// too few, there may still be fewer than `wanted`.
    #[inline]
    pub(crate) fn refill(&self, packets: &mut TxPackets, wanted: usize) {
        if packets.empty() < wanted {
            let places = packets.places();
            let count = u32::try_from(places.len()).expect("32");
            // SAFETY: the pool is never freed, and the places are as many.
            let count =
                unsafe { (self.0.functions.take)(self.0.facts.pool, places.as_mut_ptr(), count) };
            packets.on_taken(count as usize);
        }
    }

    /// One empty packet, as long as the longest frame.
    pub(crate) fn take_one(&self) -> Option<Packet> {
        let Facts {
            pool, start, room, ..
        } = self.0.facts;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pool is never freed, and there is one place.
        let count = unsafe { (self.0.functions.take)(pool, &raw mut handle, 1) };
        let bytes = handle.cast::<u8>().wrapping_add(start as usize);
        // SAFETY: the packet is ours. The memory of a packet of a pool lies after its descriptor,
        // at the same distance in each.
        (count == 1).then(|| unsafe { Packet::new(handle, bytes, room) })
    }

    /// Takes back received packets.
    #[inline]
    pub(crate) fn free(&self, packets: &mut Received) {
        let (handles, is_mixed) = packets.give_up();
        if !handles.is_empty() {
            self.free_all(handles, is_mixed);
        }
    }

    /// Takes back complete packets, and the empty ones if `has_empty`.
    #[cold]
    pub(crate) fn free_tx_packets(&self, packets: &mut TxPackets, has_empty: bool) {
        self.free_all(packets.give_up(has_empty), true);
    }

    /// Takes back one packet.
    pub(crate) fn free_one(&self, packet: Packet) {
        self.free_all(&[packet.into_handle()], true);
    }

    /// Takes back packets that belonged to the caller.
    #[inline]
    fn free_all(&self, handles: &[*mut c_void], is_mixed: bool) {
        let count = u32::try_from(handles.len()).expect("64");
        // SAFETY: the packets were the caller's, which does not use them any longer.
        unsafe { (self.0.functions.free)(handles.as_ptr(), count, is_mixed.into()) };
    }

    /// Number of empty packets.
    pub(crate) fn empty(&self) -> u32 {
        // SAFETY: the pool is never freed.
        unsafe { (self.0.functions.empty)(self.0.facts.pool) }
    }
}
