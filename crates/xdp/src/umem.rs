//! The region of frames that we share with the kernel (UMEM), and the ledger of their owners.
//!
//! A region is cut into frames of [`FRAME`] bytes. One part of them is for received packets, the
//! other for packets to send, and each half of an endpoint owns its part.
//!
//! Invariants:
//! - A frame is either ours or lent to the kernel. We read and write only frames that are ours,
//!   and lend only those.
//! - The kernel gives back only a frame that it has, and a piece of a frame lies within it. All
//!   else is a [`Bad`] entry, which changes nothing; the halves count them.
//!
//! Made by `socket`; used by `receive` and `transmit`.

use std::io;
use std::sync::Arc;

use crate::mapping::Mapping;
use crate::ring::Desc;

/// Bytes of a frame. The kernel needs up to 256 of them in front of a received packet.
pub const FRAME: usize = 4096;

/// Fewest frames of a region. With fewer, a burst would have to wait for the kernel before its end.
pub const MIN_FRAMES: u32 = 128;

/// Most frames of a region: 4 GiB.
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
        if !(MIN_FRAMES..=MAX_FRAMES).contains(&frames) {
            let least = u64::from(MIN_FRAMES) * FRAME as u64;
            let most = u64::from(MAX_FRAMES) * FRAME as u64;
            let why = format!("a region of frames has {least} to {most} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mapping = Mapping::anonymous(frames as usize * FRAME)?;
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

    /// Its two parts, of the same size: for receiving and for sending. Call this once.
    pub(crate) fn halves(self: &Arc<Self>) -> (Part, Part) {
        let count = self.frames / 2;
        let part = |first| Part {
            umem: self.clone(),
            first,
            lent: vec![false; count as usize],
        };
        (part(0), part(count))
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
    /// The number of its frame in the part.
    pub(crate) fn frame(&self) -> u32 {
        self.frame
    }

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

/// One half of the frames of a region.
#[derive(Debug)]
pub struct Part {
    umem: Arc<Umem>,
    /// The number of its first frame in the region.
    first: u32,
    /// For each frame, whether the kernel has it.
    lent: Vec<bool>,
}

impl Part {
    /// Its frames.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.lent.len()).expect("a region has at most MAX_FRAMES frames")
    }

    /// Lends a frame of ours. Returns its address; `None` if the kernel has it already.
    #[inline]
    pub(crate) fn lend(&mut self, frame: u32) -> Option<u64> {
        let lent = self.lent.get_mut(frame as usize)?;
        if *lent {
            return None;
        }
        *lent = true;
        Some(u64::from(self.first + frame) * FRAME as u64)
    }

    /// Bytes of the whole region.
    pub(crate) fn region_bytes(&self) -> usize {
        self.umem.bytes()
    }

    /// Takes back a frame, which the kernel may name by any address within it.
    ///
    /// # Errors
    /// See [`Bad`].
    #[inline]
    pub(crate) fn take_back(&mut self, addr: u64) -> Result<u32, Bad> {
        let frame = self.frame_of(addr).ok_or(Bad::Outside)?;
        let lent = &mut self.lent[frame as usize];
        if !*lent {
            return Err(Bad::NotLent);
        }
        *lent = false;
        Ok(frame)
    }

    /// Takes back a frame with the bytes that the kernel has received into it.
    ///
    /// # Errors
    /// See [`Bad`]. With [`Bad::Length`], the frame is ours again.
    #[inline]
    pub(crate) fn take_back_piece(&mut self, desc: Desc) -> Result<Piece, Bad> {
        let frame = self.take_back(desc.addr)?;
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
        let frame = u32::try_from(addr / FRAME as u64).ok()?;
        let frame = frame.checked_sub(self.first)?;
        ((frame as usize) < self.lent.len()).then_some(frame)
    }

    /// The bytes of a piece.
    #[inline]
    pub(crate) fn bytes(&self, piece: Piece) -> &[u8] {
        let range = self.range(piece.frame, piece.at as usize, piece.len as usize);
        // SAFETY: the range is within the region, which is initialised (zeroed, then written by the
        // kernel). The frame is ours, so the kernel does not write to it, and neither do we while
        // `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.umem.base().add(range), piece.len as usize) }
    }

    /// `len` bytes of a frame from byte `at` on, to be written.
    #[inline]
    pub(crate) fn bytes_mut(&mut self, frame: u32, at: usize, len: usize) -> &mut [u8] {
        let range = self.range(frame, at, len);
        // SAFETY: as in `bytes`, and `self`, which alone has this part, is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.umem.base().add(range), len) }
    }

    /// Where bytes of a frame begin in the region, after the checks.
    #[inline]
    fn range(&self, frame: u32, at: usize, len: usize) -> usize {
        assert!(!self.lent[frame as usize], "the kernel has this frame");
        let is_inside = at.checked_add(len).is_some_and(|end| end <= FRAME);
        assert!(is_inside, "a piece lies within its frame");
        (self.first + frame) as usize * FRAME + at
    }
}

#[cfg(test)]
mod tests;
