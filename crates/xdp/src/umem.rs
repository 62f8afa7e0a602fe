//! The region of frames that we share with the kernel (UMEM), and the ledger of their owners.
//!
//! A region is cut into frames of [`FRAME`] bytes. One half of them is for received packets and
//! belongs to all endpoints of a queue; the other half is for packets to send, and each endpoint
//! has a share of it.
//!
//! Invariants:
//! - A frame is either ours or lent to the kernel. We read and write only frames that are ours,
//!   and lend only those.
//! - The kernel gives back only a frame that it has, and a piece of a frame lies within it. All
//!   else is a [`Bad`] entry, which changes nothing; the halves count them.
//!
//! Made by `socket`; used by `receive` and `transmit`.

mod hand;
mod supply;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::mapping::Mapping;
use crate::ring::Desc;
pub(crate) use hand::Hand;
pub(crate) use supply::Supply;

/// Bytes of a frame. The kernel needs up to 256 of them in front of a received packet.
pub const FRAME: usize = 4096;

/// Fewest frames of a region. With fewer, a burst would have to wait for the kernel before its end.
pub const MIN_FRAMES: u32 = 128;

/// The most frames of a region: 4 GiB.
pub const MAX_FRAMES: u32 = 1 << 20;

/// The memory of all frames.
#[derive(Debug)]
pub struct Umem {
    mapping: Mapping,
    frames: u32,
}

impl Umem {
    /// A region of `frames` frames; it is not yet registered.
    ///
    /// # Errors
    /// `InvalidInput` for a number outside [`MIN_FRAMES`] to [`MAX_FRAMES`], or the kernel's error.
    pub fn new(frames: u32) -> io::Result<Arc<Self>> {
        check_frames(frames)?;
        let mapping = Mapping::anonymous(frames as usize * FRAME)?;
        mapping.prefer_large_pages();
        Ok(Arc::new(Self { mapping, frames }))
    }

    /// A region of `frames` frames in memory that another process may have too.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn shared(memory: BorrowedFd<'_>, frames: u32) -> io::Result<Arc<Self>> {
        check_frames(frames)?;
        let mapping = Mapping::shared(memory, frames as usize * FRAME, 0)?;
        Ok(Arc::new(Self { mapping, frames }))
    }

    /// Its frames.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.mapping.len()
    }

    /// Where it begins in this process.
    pub(crate) fn base(&self) -> *mut u8 {
        self.mapping.base().as_ptr()
    }

    /// Copies `len` bytes from `at` to `to_at` in another region, like a kernel that has both
    /// places.
    ///
    /// # Panics
    /// If a place is not within a frame.
    #[cfg(feature = "wire")]
    pub(crate) fn copy_to(&self, at: u64, other: &Self, to_at: u64, len: u32) {
        let len = len as usize;
        let (from, to) = (self.place_of(at, len), other.place_of(to_at, len));
        // SAFETY: both places are within their regions, which are different, and the caller plays
        // the kernel, which has these frames.
        unsafe {
            let (from, to) = (self.base().add(from), other.base().add(to));
            std::ptr::copy_nonoverlapping(from, to, len);
        }
    }

    /// The bytes of a frame from a place on. The caller plays the kernel, which has the frame.
    #[cfg(feature = "wire")]
    pub(crate) fn copy_out(&self, at: u64, len: u32) -> Vec<u8> {
        let at = self.place_of(at, len as usize);
        // SAFETY: the place is within the region, and its other end does not write to the frame.
        unsafe { std::slice::from_raw_parts(self.base().add(at), len as usize) }.to_vec()
    }

    /// Writes bytes to a place in a frame. The caller plays the kernel, which has the frame.
    #[cfg(feature = "wire")]
    pub(crate) fn copy_in(&self, at: u64, bytes: &[u8]) {
        let at = self.place_of(at, bytes.len());
        // SAFETY: the place is within the region, and its other end does not use the frame.
        unsafe {
            let to = self.base().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    #[cfg(feature = "wire")]
    fn place_of(&self, at: u64, len: usize) -> usize {
        let at = usize::try_from(at).expect("64 bits");
        let is_inside = at % FRAME + len <= FRAME && at < self.bytes();
        assert!(is_inside, "a piece lies within a frame");
        at
    }

    /// The ledger of the half for receiving, and one for each of `shares` equal shares of the half
    /// for sending. Call this once.
    pub(crate) fn split(self: &Arc<Self>, shares: u32) -> (Ledger, Vec<Ledger>) {
        let half = self.frames / 2;
        let share = half / shares;
        let ledger = |first, count| Ledger {
            umem: self.clone(),
            first,
            lent: (0..count).map(|_| AtomicBool::new(false)).collect(),
        };
        let sending = (0..shares).map(|index| ledger(half + index * share, share));
        (ledger(0, half), sending.collect())
    }
}

fn check_frames(frames: u32) -> io::Result<()> {
    if (MIN_FRAMES..=MAX_FRAMES).contains(&frames) {
        return Ok(());
    }
    let least = u64::from(MIN_FRAMES) * FRAME as u64;
    let most = u64::from(MAX_FRAMES) * FRAME as u64;
    let why = format!("a region of frames has {least} to {most} bytes");
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// The record of some frames: which of them the kernel has. It outlives the endpoints that use the
/// frames.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    umem: Arc<Umem>,
    /// The number of its first frame in the region.
    first: u32,
    /// For each frame, whether the kernel has it. The rings order the accesses: a frame is marked
    /// before its entry is published, and the mark is removed after the kernel's entry is read. A
    /// [`Supply`] keeps its own record while it lives.
    lent: Arc<[AtomicBool]>,
}

impl Ledger {
    /// The frames with which one endpoint sends. Call this again only after that endpoint has
    /// ended.
    pub(crate) fn own(&self) -> Supply {
        Supply::new(self.clone())
    }

    /// The frames into which several endpoints receive: a frame belongs to the endpoint that takes
    /// it back.
    ///
    /// # Panics
    /// If they are not the first ones of the region.
    pub(crate) fn shared(&self) -> Part {
        assert_eq!(self.first, 0, "the half for receiving comes first");
        Part {
            ledger: self.clone(),
        }
    }

    /// Its frames.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.lent.len()).expect("a region has at most MAX_FRAMES frames")
    }

    /// The address of its first frame.
    pub(crate) fn start(&self) -> u64 {
        u64::from(self.first) * FRAME as u64
    }

    #[inline]
    fn view(&self) -> View<'_> {
        View {
            lent: &self.lent,
            base: self.umem.base(),
        }
    }
}

/// The fault of an entry that no honest kernel writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bad {
    /// The address is not in this part of the region.
    Outside,
    /// The piece ends after its frame.
    Length,
    /// The kernel does not have that frame.
    NotLent,
}

/// Bytes of one frame, which is ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Piece {
    frame: u32,
    at: u32,
    len: u32,
}

impl Piece {
    /// `len` of its bytes from `start` on, without those beyond its end.
    pub(crate) fn part(&self, start: usize, len: usize) -> Self {
        let start = u32::try_from(start).map_or(self.len, |start| start.min(self.len));
        let rest = self.len - start;
        Self {
            frame: self.frame,
            at: self.at + start,
            len: u32::try_from(len).map_or(rest, |len| len.min(rest)),
        }
    }
}

/// The frames for receiving, which are the first of the region, as an endpoint uses them. They are
/// only read.
#[derive(Debug)]
pub struct Part {
    ledger: Ledger,
}

impl Part {
    /// Its frames.
    pub(crate) fn count(&self) -> u32 {
        self.ledger.count()
    }

    /// The frames that the kernel does not have.
    #[cfg(any(test, feature = "check"))]
    pub(crate) fn kept(&self) -> Vec<u32> {
        let is_kept = |frame: &u32| !self.is_lent(*frame);
        (0..self.count()).filter(is_kept).collect()
    }

    /// Lends a frame of ours. Returns its address; `None` if the kernel has it already.
    #[inline]
    pub(crate) fn lend(&mut self, frame: u32) -> Option<u64> {
        self.view().lend(frame)
    }

    /// All of its frames, to lend many of them or to take them back.
    #[inline]
    pub(crate) fn view(&mut self) -> View<'_> {
        self.ledger.view()
    }

    /// Bytes of the whole region.
    pub(crate) fn region_bytes(&self) -> usize {
        self.ledger.umem.bytes()
    }

    /// Takes back a frame, which the kernel may name by any address within it.
    ///
    /// # Errors
    /// See [`Bad`].
    #[inline]
    pub(crate) fn take_back(&mut self, addr: u64) -> Result<u32, Bad> {
        self.view().take_back(addr)
    }

    /// The bytes of an entry, in the frame that holds its address.
    ///
    /// # Errors
    /// They end after the frame.
    fn piece(frame: u32, desc: Desc) -> Result<Piece, Bad> {
        let at = u32::try_from(desc.addr % FRAME as u64).map_err(|_| Bad::Outside)?;
        let end = u64::from(at) + u64::from(desc.len);
        if end > FRAME as u64 {
            return Err(Bad::Length);
        }
        let len = desc.len;
        Ok(Piece { frame, at, len })
    }

    /// The frame that holds this address, if it is in this part.
    #[inline]
    pub(crate) fn frame_of(&self, addr: u64) -> Option<u32> {
        self.ledger.view().find(addr).map(number_of)
    }

    /// The bytes of a piece.
    #[inline]
    pub(crate) fn bytes(&self, piece: Piece) -> &[u8] {
        let range = self.range(piece.frame, piece.at as usize, piece.len as usize);
        // SAFETY: the range is within the region, which is initialised (zeroed, then written by the
        // kernel). The frame is ours, so the kernel does not write to it, and endpoints only read
        // frames for receiving.
        unsafe {
            std::slice::from_raw_parts(self.ledger.umem.base().add(range), piece.len as usize)
        }
    }

    /// Where bytes of a frame begin in the region, after the checks.
    #[inline]
    fn range(&self, frame: u32, at: usize, len: usize) -> usize {
        assert!(!self.is_lent(frame), "the kernel has this frame");
        let is_inside = at.checked_add(len).is_some_and(|end| end <= FRAME);
        assert!(is_inside, "a piece lies within its frame");
        frame as usize * FRAME + at
    }

    #[inline]
    fn is_lent(&self, frame: u32) -> bool {
        self.ledger.lent[frame as usize].load(Ordering::Relaxed)
    }
}

/// The frames of a part, for a loop over many of them, which does not look up the ledger each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    lent: &'a [AtomicBool],
    base: *mut u8,
}

impl View<'_> {
    /// The number of the frame that holds this address, if it is one of these.
    #[inline]
    fn find(&self, addr: u64) -> Option<usize> {
        let frame = usize::try_from(addr / FRAME as u64).ok()?;
        (frame < self.lent.len()).then_some(frame)
    }

    /// As [`Part::lend`].
    #[inline]
    pub(crate) fn lend(&self, frame: u32) -> Option<u64> {
        let lent = self.lent.get(frame as usize)?;
        if lent.load(Ordering::Relaxed) {
            return None;
        }
        lent.store(true, Ordering::Relaxed);
        Some(u64::from(frame) * FRAME as u64)
    }

    /// As [`Part::take_back`].
    #[inline]
    pub(crate) fn take_back(&self, addr: u64) -> Result<u32, Bad> {
        let frame = self.find(addr).ok_or(Bad::Outside)?;
        let lent = &self.lent[frame];
        // If the kernel gives one frame to two endpoints, both may pass here, and both only read
        // it.
        if !lent.load(Ordering::Relaxed) {
            return Err(Bad::NotLent);
        }
        lent.store(false, Ordering::Relaxed);
        Ok(number_of(frame))
    }
}

/// A frame's number in the form in which it is kept.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a region has at most MAX_FRAMES frames"
)]
const fn number_of(frame: usize) -> u32 {
    frame as u32
}

#[cfg(test)]
mod tests;
