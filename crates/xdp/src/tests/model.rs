//! A kernel in user space, for tests: it plays the other end of the four rings, honestly or not, so
//! that both halves run without root and without a device, and under Miri.
//!
//! [`model`] makes the rings of a socket and this kernel, whose steps a test takes one by one.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::device::{Device, Kicked, Statistics};
use crate::receive::arrivals::fill;
use crate::ring::{Consumer, Desc, Memory, Producer, RingEntry};
use crate::shared::{SharedRings, Shares};
use crate::socket::Rings;
use crate::umem::{FRAME, Ledger, MIN_FRAMES, Umem};

/// Bytes that the kernel leaves free in front of a received packet.
pub(crate) const HEADROOM: u64 = 256;

/// The kernel's ends of the rings, and what it has done.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) rx: Producer<Desc>,
    pub(crate) fill: Consumer<u64>,
    pub(crate) tx: Consumer<Desc>,
    /// The transmit rings of further sockets.
    pub(crate) more: Vec<Consumer<Desc>>,
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

/// The rings of a socket, and those that it shares with other sockets.
#[derive(Debug)]
pub(crate) struct Modelled {
    pub(crate) rings: Rings,
    pub(crate) shared: Arc<SharedRings>,
    pub(crate) receiving: Ledger,
    pub(crate) sending: Vec<Ledger>,
    pub(crate) kernel: Arc<Kernel>,
}

/// A region of `MIN_FRAMES` frames with this number of shares, rings with an entry for each second
/// frame, and their kernel.
pub(crate) fn model(shares: u32) -> Modelled {
    let umem = Umem::new(MIN_FRAMES).unwrap();
    let (receiving, sending) = umem.split(shares);
    let count = umem.frames() / 2;
    let (rx, rx_end) = ring(count);
    let (empty, fill_end) = ring(count);
    let (tx, tx_end) = ring(count);
    let (completion, completion_end) = ring(count);
    let ends = Ends {
        rx: Producer::new(rx_end),
        fill: Consumer::new(fill_end),
        tx: Consumer::new(tx_end),
        more: Vec::new(),
        completion: Producer::new(completion_end),
        sent: Vec::new(),
        uncompleted: Vec::new(),
        refuses: None,
    };
    // As in copy mode: it sends when it is asked to.
    ends.tx.ask_for_wakeup(true);
    let rings = Rings {
        rx: Consumer::new(rx.clone()),
        tx: Producer::new(tx),
        received: rx,
    };
    let shape = Shares {
        start: sending[0].start(),
        bytes: u64::from(sending[0].count()) * FRAME as u64,
        count: sending.len(),
        frames: sending[0].count() as usize,
    };
    let ends = Mutex::new(ends);
    let shared = SharedRings::new(Producer::new(empty), Consumer::new(completion), shape);
    fill(&receiving, &shared, 0..receiving.count());
    Modelled {
        rings,
        shared: Arc::new(shared),
        receiving,
        sending,
        kernel: Arc::new(Kernel { umem, ends }),
    }
}

/// The transmit ring of another socket at the same queue.
pub(crate) fn transmit_ring(kernel: &Kernel) -> Producer<Desc> {
    let (tx, end) = ring(kernel.umem.frames() / 2);
    let end = Consumer::new(end);
    end.ask_for_wakeup(true);
    kernel.ends().more.push(end);
    Producer::new(tx)
}

fn ring<E: RingEntry>(count: u32) -> (Memory<E>, Memory<E>) {
    let memory = Memory::anonymous(count).unwrap();
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
        let Ends {
            tx,
            more,
            sent,
            uncompleted,
            ..
        } = &mut *ends;
        for tx in std::iter::once(tx).chain(more) {
            let mut frame = Vec::new();
            tx.available(u32::MAX);
            while let Some(desc) = tx.pop() {
                frame.extend(self.read(desc));
                uncompleted.push(desc.addr);
                if !desc.continues() {
                    sent.push(std::mem::take(&mut frame));
                }
            }
            assert!(frame.is_empty(), "a datagram is whole in the ring");
            tx.release();
        }
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
