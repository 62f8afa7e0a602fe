//! A device of DPDK with one queue in each direction, and the packets of its pool.
//!
//! Invariants: a queue is used by one thread at a time, because its methods take `&mut`. A packet
//! belongs to one value of this crate, or to the device. A running device is never closed, because
//! its driver may handle events on a thread of DPDK at any time; so its parts live as long as the
//! process.
//! Called by `port`, `receive` and `transmit`.

use std::ffi::{CString, c_void};
use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;

use dunlin_core::transport::RX_BURST;

use crate::ffi::{Facts, Functions, Wish};

/// Most packets of a batch.
pub(crate) const BATCH: usize = RX_BURST;

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
/// spelling of its name; otherwise DPDK's words.
pub(crate) fn open(functions: &'static Functions, device: &str, wish: Wish) -> io::Result<Parts> {
    let name = CString::new(device).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "a device's name has a zero byte",
        )
    })?;
    let mut facts = Facts {
        pool: std::ptr::null_mut(),
        bytes_per_second: 0,
        room: 0,
        rx_descriptors: 0,
        bell: -1,
        port: 0,
        mtu: 0,
        mac: [0; 6],
        answers: 0,
    };
    // SAFETY: a string, and two live structures of the types that the function expects.
    let code = unsafe { (functions.open)(name.as_ptr(), &raw const wish, &raw mut facts) };
    if code != 0 {
        let why = functions.error_of(code);
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
            tx: TxQueue(opened),
            pool: Pool(opened),
            bell: Bell(opened),
        }
    }
}

/// A packet, which belongs to its holder. It must go back by [`Pool::free`], or to the device.
#[derive(Debug)]
pub(crate) struct Packet {
    handle: NonNull<c_void>,
    bytes: NonNull<u8>,
    len: u32,
}

// SAFETY: the packet belongs to its holder alone, in memory of the process.
unsafe impl Send for Packet {}

impl Packet {
    /// Its bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are the packet's, and nothing else writes them.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len as usize) }
    }

    /// Its bytes, to write.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.len as usize) }
    }

    /// Makes it shorter. A longer one keeps its length.
    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(u32::try_from(len).unwrap_or(u32::MAX));
    }
}

/// Up to [`BATCH`] packets, in the arrays that DPDK takes and fills.
#[derive(Debug)]
pub(crate) struct Batch {
    handles: [*mut c_void; BATCH],
    bytes: [*mut u8; BATCH],
    lens: [u32; BATCH],
    /// The packets have the places from `first` to below `end`.
    first: usize,
    end: usize,
}

// SAFETY: as for `Packet`.
unsafe impl Send for Batch {}

impl Default for Batch {
    fn default() -> Self {
        Self {
            handles: [std::ptr::null_mut(); BATCH],
            bytes: [std::ptr::null_mut(); BATCH],
            lens: [0; BATCH],
            first: 0,
            end: 0,
        }
    }
}

impl Batch {
    /// Number of packets.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.end - self.first
    }

    /// Whether there is no room for another packet.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.end == BATCH
    }

    /// Adds a packet.
    ///
    /// # Panics
    /// If the batch is full.
    #[inline]
    pub(crate) fn push(&mut self, packet: Packet) {
        let at = self.end;
        self.handles[at] = packet.handle.as_ptr();
        self.bytes[at] = packet.bytes.as_ptr();
        self.lens[at] = packet.len;
        self.end += 1;
    }

    /// Takes the first packet.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Packet> {
        if self.first == self.end {
            return None;
        }
        let packet = self.packet(self.first);
        self.first += 1;
        Some(packet)
    }

    /// The bytes of packet `index`, counted from the first.
    ///
    /// # Panics
    /// If there is no such packet.
    #[inline]
    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        assert!(index < self.len(), "a frame of the burst");
        let at = self.first + index;
        // SAFETY: the packet is ours, and has this many bytes.
        unsafe { std::slice::from_raw_parts(self.bytes[at], self.lens[at] as usize) }
    }

    /// Passes the packets from number `from` on to `keep`, each with its new number. A packet that
    /// `keep` refuses leaves the batch and goes to `other`.
    #[inline]
    pub(crate) fn sift<E>(
        &mut self,
        from: usize,
        mut keep: impl FnMut(usize, &[u8]) -> Result<(), E>,
        mut other: impl FnMut(Packet, E),
    ) {
        let (begin, end) = (self.first + from, self.end.min(BATCH));
        // If one of them panics, packets are lost, but none has two owners.
        self.end = begin;
        let mut next = begin;
        for at in begin..end {
            // SAFETY: the packet is ours, and has this many bytes.
            let bytes =
                unsafe { std::slice::from_raw_parts(self.bytes[at], self.lens[at] as usize) };
            if let Err(why) = keep(next - self.first, bytes) {
                other(self.packet(at), why);
                continue;
            }
            if next < at {
                self.handles[next] = self.handles[at];
                self.bytes[next] = self.bytes[at];
                self.lens[next] = self.lens[at];
            }
            next += 1;
        }
        self.end = next;
    }

    /// The packet at a place. The caller must remove it from the batch.
    #[inline]
    fn packet(&self, at: usize) -> Packet {
        Packet {
            handle: NonNull::new(self.handles[at]).expect("DPDK names packets by addresses"),
            bytes: NonNull::new(self.bytes[at]).expect("a packet has memory"),
            len: self.lens[at],
        }
    }

    /// Makes an empty batch one with room for [`BATCH`] packets again.
    #[inline]
    pub(crate) fn clear(&mut self) {
        (self.first, self.end) = (0, 0);
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
        // SAFETY: the device is open, the arrays have room for `most` packets, and only this value
        // receives.
        let count = unsafe {
            (self.0.functions.receive)(
                self.0.facts.port,
                batch.handles[at..].as_mut_ptr(),
                batch.bytes[at..].as_mut_ptr(),
                batch.lens[at..].as_mut_ptr(),
                most,
            )
        };
        batch.end += count as usize;
        count as usize
    }

    /// Packets that the device had to drop.
    pub(crate) fn missed(&self) -> u64 {
        // SAFETY: the device is open.
        unsafe { (self.0.functions.missed)(self.0.facts.port) }
    }
}

/// The queue of packets to send.
#[derive(Debug)]
pub(crate) struct TxQueue(&'static Opened);

impl TxQueue {
    /// Hands packets to the device, which takes the first of them. The others stay in the batch.
    #[inline]
    pub(crate) fn send(&mut self, batch: &mut Batch) {
        let (first, end) = (batch.first, batch.end);
        // SAFETY: the device is open, the packets are ours and at most as long as the pool's, and
        // only this value sends. Packets that the device takes are not used any more.
        let sent = unsafe {
            (self.0.functions.send)(
                self.0.facts.port,
                batch.handles[first..end].as_ptr(),
                batch.lens[first..end].as_ptr(),
                u32::try_from(end - first).expect("32"),
            )
        };
        batch.first += sent as usize;
    }

    /// Makes the device free the packets that it has sent. Devices that cannot be asked ignore it.
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
        debug_assert_eq!(batch.len(), 0, "its packets would be lost");
        batch.clear();
        // SAFETY: the pool is never freed, and the arrays have this room.
        let count = unsafe {
            (self.0.functions.take)(
                self.0.facts.pool,
                batch.handles.as_mut_ptr(),
                batch.bytes.as_mut_ptr(),
                u32::try_from(BATCH).expect("32"),
            )
        };
        batch.end = count as usize;
        batch.lens = [self.0.facts.room; BATCH];
    }

    /// One empty packet, as [`Pool::take`].
    pub(crate) fn take_one(&self) -> Option<Packet> {
        let mut batch = Batch::default();
        // SAFETY: as above, for one packet.
        let count = unsafe {
            (self.0.functions.take)(
                self.0.facts.pool,
                batch.handles.as_mut_ptr(),
                batch.bytes.as_mut_ptr(),
                1,
            )
        };
        batch.end = count as usize;
        batch.lens[0] = self.0.facts.room;
        batch.take()
    }

    /// Takes back all packets of a batch.
    #[inline]
    pub(crate) fn free(&self, batch: &mut Batch) {
        if batch.len() > 0 {
            let handles = &batch.handles[batch.first..batch.end];
            let count = u32::try_from(handles.len()).expect("32");
            // SAFETY: the packets are ours, and are not used any more.
            unsafe { (self.0.functions.free)(handles.as_ptr(), count) };
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
