//! A kernel in user space, for tests: it plays the other end of the four rings, honestly or not, so
//! that both halves run without root and without a device, and under Miri.
//!
//! [`model`] makes the rings of a socket and this kernel, whose steps a test takes one by one.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::device::{Device, Kicked, Statistics};
use crate::mapping::Mapping;
use crate::ring::{Consumer, Desc, Entry, Memory, Offsets, Producer};
use crate::socket::Rings;
use crate::umem::{FRAME, Umem};

/// Bytes that the kernel leaves free in front of a received packet.
pub(crate) const HEADROOM: u64 = 256;

const AT: Offsets = Offsets {
    producer: 0,
    consumer: 64,
    flags: 128,
    entries: 192,
};

/// The kernel's ends of the rings, and what it has done.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) rx: Producer<Desc>,
    pub(crate) fill: Consumer<u64>,
    pub(crate) tx: Consumer<Desc>,
    pub(crate) completion: Producer<u64>,
    /// The whole frames that it has sent.
    pub(crate) sent: Vec<Vec<u8>>,
    /// Frames that it took from the transmit ring and has not completed.
    pub(crate) uncompleted: Vec<u64>,
    /// Its answer to a kick while it sends nothing.
    pub(crate) refuses: Option<Kicked>,
}

/// The kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    umem: Arc<Umem>,
    ends: Mutex<Ends>,
}

/// Rings with as many entries as a half of the region has frames, and their kernel.
pub(crate) fn model(umem: Arc<Umem>) -> (Rings, Arc<Kernel>) {
    let count = umem.frames() / 2;
    let (rx, rx_end) = ring(count);
    let (fill, fill_end) = ring(count);
    let (tx, tx_end) = ring(count);
    let (completion, completion_end) = ring(count);
    let ends = Ends {
        rx: Producer::new(rx_end),
        fill: Consumer::new(fill_end),
        tx: Consumer::new(tx_end),
        completion: Producer::new(completion_end),
        sent: Vec::new(),
        uncompleted: Vec::new(),
        refuses: None,
    };
    // As in copy mode: it sends when it is asked to.
    ends.tx.ask_for_wakeup(true);
    let rings = Rings {
        rx: Consumer::new(rx),
        fill: Producer::new(fill),
        tx: Producer::new(tx),
        completion: Consumer::new(completion),
    };
    let ends = Mutex::new(ends);
    (rings, Arc::new(Kernel { umem, ends }))
}

fn ring<E: Entry>(count: u32) -> (Memory<E>, Memory<E>) {
    let mapping = Mapping::anonymous(AT.mapping_len::<E>(count)).unwrap();
    let memory = Memory::of(Arc::new(mapping), &AT, count).unwrap();
    (memory.clone(), memory)
}

impl Kernel {
    pub(crate) fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives a packet, in pieces of at most `piece` bytes. False if there are no frames for it.
    pub(crate) fn deliver(&self, packet: &[u8], piece: usize) -> bool {
        let mut ends = self.ends();
        let pieces = packet.chunks(piece);
        let count = u32::try_from(pieces.len()).unwrap();
        if ends.fill.available(count) < count || ends.rx.room(count) < count {
            return false;
        }
        for (index, bytes) in pieces.enumerate() {
            let addr = ends.fill.pop().unwrap() + HEADROOM;
            self.write(addr, bytes);
            let more = index + 1 < count as usize;
            assert!(ends.rx.push(Desc {
                addr,
                len: u32::try_from(bytes.len()).unwrap(),
                options: if more { Desc::CONTINUES } else { 0 },
            }));
        }
        ends.fill.release();
        ends.rx.publish();
        true
    }

    /// Puts any entry into the receive ring.
    pub(crate) fn lie(&self, desc: Desc) {
        let mut ends = self.ends();
        assert!(ends.rx.push(desc));
        ends.rx.publish();
    }

    /// Puts any entry into the completion ring.
    pub(crate) fn lie_about_completion(&self, addr: u64) {
        let mut ends = self.ends();
        assert!(ends.completion.push(addr));
        ends.completion.publish();
    }

    /// Completes everything that was sent.
    pub(crate) fn complete(&self) {
        let mut ends = self.ends();
        for addr in std::mem::take(&mut ends.uncompleted) {
            assert!(ends.completion.push(addr));
        }
        ends.completion.publish();
    }

    fn write(&self, addr: u64, bytes: &[u8]) {
        let addr = usize::try_from(addr).unwrap();
        assert!(addr % FRAME + bytes.len() <= FRAME && addr + bytes.len() <= self.umem.bytes());
        // SAFETY: within the region, as was just checked, and in a frame of the fill ring, which
        // the other end neither reads nor writes.
        unsafe {
            let to = self.umem.base().add(addr);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    fn read(&self, desc: Desc) -> Vec<u8> {
        let (addr, len) = (usize::try_from(desc.addr).unwrap(), desc.len as usize);
        assert!(addr % FRAME + len <= FRAME && addr + len <= self.umem.bytes());
        // SAFETY: within the region, as was just checked, and in a frame of the transmit ring,
        // which the other end does not write.
        unsafe { std::slice::from_raw_parts(self.umem.base().add(addr), len) }.to_vec()
    }
}

impl Device for Kernel {
    fn kick(&self) -> Kicked {
        let mut ends = self.ends();
        if let Some(answer) = ends.refuses {
            return answer;
        }
        let mut frame = Vec::new();
        ends.tx.available(u32::MAX);
        while let Some(desc) = ends.tx.pop() {
            frame.extend(self.read(desc));
            ends.uncompleted.push(desc.addr);
            if !desc.continues() {
                ends.sent.push(std::mem::take(&mut frame));
            }
        }
        assert!(frame.is_empty(), "a datagram is whole in the ring");
        ends.tx.release();
        Kicked::Done
    }

    fn kick_fill(&self) {}

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn take_error(&self) -> bool {
        false
    }
}
