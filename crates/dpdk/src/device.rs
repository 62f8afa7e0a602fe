//! A device of DPDK with one queue in each direction, and the packets of its pool.
//!
//! Invariants: a queue is used by one thread at a time, because its methods take `&mut`. A packet
//! belongs to one value of this crate, or to the device. A running device is never closed, because
//! its driver may handle events on a thread of DPDK at any time; so its parts live as long as the
//! process.
//! Called by `port`, `receive` and `transmit`.

use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::AtomicU8;

use dunlin_msgbuf::RegionId;

use crate::ffi::{Facts, Functions, Tail, Wish};
use crate::site::name_of;
use crate::words;
use shared::{Memory, Shared};

mod batch;
mod shared;

pub(crate) use batch::{BATCH, Batch, Packet};

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
    let (name, all) = (string(name_of(device))?, string(device)?);
    let mut facts = Facts {
        pool: std::ptr::null_mut(),
        bytes_per_second: 0,
        room: 0,
        start: 0,
        rx_descriptors: 0,
        bell: -1,
        port: 0,
        mtu: 0,
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

    /// Forgets the packets so far. If `on`, the descriptor becomes readable when the next one
    /// comes; otherwise it need not.
    pub(crate) fn listen(&self, on: bool) {
        if let Some(bell) = self.fd() {
            // SAFETY: the device is open, and the descriptor is its own.
            unsafe { (self.0.functions.listen)(self.0.facts.port, bell, on.into()) };
        }
    }
}

/// The parts of an open device.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) rx: RxQueue,
    pub(crate) tx: TxQueue,
    pub(crate) pool: Pool,
    pub(crate) bell: Bell,
    pub(crate) facts: Facts,
}

impl Parts {
    fn new(opened: &'static Opened) -> Self {
        Self {
            facts: opened.facts,
            rx: RxQueue(opened),
            tx: TxQueue(opened, Shared::default()),
            pool: Pool(opened),
            bell: Bell(opened),
        }
    }
}

/// The tails of the packets of a batch, by their places.
#[derive(Debug)]
pub(crate) struct Tails([Tail; BATCH]);

// SAFETY: the packets of tails belong to their holder alone.
unsafe impl Send for Tails {}

impl Tails {
    /// Bytes of packets that have none.
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

    /// Adds one to the packet at a place; the empty packet belongs to it from then on.
    ///
    /// # Safety
    /// The bytes stay unchanged, and `done` stays where it is, until the device sets that to 1.
    pub(crate) unsafe fn add(
        &mut self,
        place: usize,
        empty: Packet,
        bytes: &[u8],
        done: &AtomicU8,
    ) {
        let Packet { handle, .. } = empty;
        self.0[place] = Tail {
            handle: handle.as_ptr(),
            bytes: bytes.as_ptr(),
            done,
            len: u32::try_from(bytes.len()).expect("it fits a datagram"),
        };
    }

    /// Forgets all, after the first `sent` packets were sent, and the others are free. Returns the
    /// number of those that were sent.
    pub(crate) fn clear(&mut self, sent: usize) -> u64 {
        let count = self.0[..sent].iter().filter(|it| !it.handle.is_null());
        let count = count.count() as u64;
        self.0 = [Self::NONE; BATCH];
        count
    }
}

/// The queue of received packets.
#[derive(Debug)]
pub(crate) struct RxQueue(&'static Opened);

impl RxQueue {
    /// Adds packets that have come, at most `most`, as far as there is room. Returns their number.
    #[inline]
    pub(crate) fn receive(&mut self, batch: &mut Batch, most: usize) -> usize {
        let at = batch.end;
        let most = u32::try_from(most.min(BATCH - at)).expect("32");
        let mut is_mixed = 0;
        // SAFETY: the device is open, the arrays have room for `most` packets, and only this value
        // receives.
        let count = unsafe {
            (self.0.functions.receive)(
                self.0.facts.port,
                batch.handles[at..].as_mut_ptr(),
                batch.bytes[at..].as_mut_ptr(),
                batch.lens[at..].as_mut_ptr(),
                most,
                &raw mut is_mixed,
            )
        };
        batch.end += count as usize;
        batch.is_mixed |= is_mixed != 0;
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
    /// Hands packets to the device, which takes the first of them. The others stay in the batch,
    /// with their tails.
    #[inline]
    pub(crate) fn send(&mut self, batch: &mut Batch, tails: Option<&Tails>) {
        let (first, end) = (batch.first, batch.end);
        let tails = tails.map_or(std::ptr::null(), |it| it.0[first..end].as_ptr());
        // SAFETY: the device is open, the packets are ours and at most as long as the pool's, and
        // only this value sends. Packets that the device takes are not used any more. The tails are
        // as many, and `Tails::add` vouches for their bytes.
        let sent = unsafe {
            (self.0.functions.send)(
                self.0.facts.port,
                batch.handles[first..end].as_ptr(),
                batch.lens[first..end].as_ptr(),
                tails,
                u32::try_from(end - first).expect("32"),
            )
        };
        batch.first += sent as usize;
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

    /// Makes the device give back what it has sent. Without effect if it cannot be asked.
    pub(crate) fn ask(&mut self) {
        // SAFETY: the device is open.
        unsafe { (self.0.functions.ask)(self.0.facts.port) };
    }
}

/// The pool of packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool(&'static Opened);

impl Pool {
    /// Fills an empty batch with empty packets, whose length is that of the longest frame. It stays
    /// empty if there are too few.
    pub(crate) fn take(&self, batch: &mut Batch) {
        self.take_up_to(BATCH, batch);
    }

    /// One empty packet, as [`Pool::take`].
    pub(crate) fn take_one(&self) -> Option<Packet> {
        let mut batch = Batch::default();
        self.take_up_to(1, &mut batch);
        batch.take()
    }

    /// As [`Pool::take`], for fewer packets.
    fn take_up_to(&self, most: usize, batch: &mut Batch) {
        debug_assert_eq!(batch.len(), 0, "its packets would be lost");
        batch.clear();
        let Facts {
            pool, room, start, ..
        } = self.0.facts;
        let handles = &mut batch.handles[..most];
        let count = u32::try_from(most).expect("32");
        // SAFETY: the pool is never freed, and the array has this room.
        let count = unsafe { (self.0.functions.take)(pool, handles.as_mut_ptr(), count) };
        let places = batch.bytes.iter_mut().zip(&batch.handles);
        for (bytes, handle) in places.take(count as usize) {
            // The memory of a packet of a pool lies after its descriptor, at the same distance in
            // each.
            *bytes = handle.cast::<u8>().wrapping_add(start as usize);
        }
        batch.end = count as usize;
        batch.lens = [room; BATCH];
    }

    /// Takes back all packets of a batch.
    #[inline]
    pub(crate) fn free(&self, batch: &mut Batch) {
        if batch.len() > 0 {
            let handles = &batch.handles[batch.first..batch.end];
            let count = u32::try_from(handles.len()).expect("32");
            // SAFETY: the packets are ours, and are not used any more.
            unsafe { (self.0.functions.free)(handles.as_ptr(), count, batch.is_mixed.into()) };
        }
        batch.clear();
    }

    /// Takes back one packet.
    pub(crate) fn free_one(&self, packet: Packet) {
        let mut batch = Batch::default();
        batch.push(packet);
        self.free(&mut batch);
    }

    /// Number of empty packets.
    pub(crate) fn empty(&self) -> u32 {
        // SAFETY: the pool is never freed.
        unsafe { (self.0.functions.empty)(self.0.facts.pool) }
    }
}
