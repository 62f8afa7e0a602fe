//! The frames with which one endpoint sends, in the order in which it uses them.
//!
//! Invariants: `frames` has each frame of the share once. The first `lent` are the kernel's, in the
//! order in which it got them; those from there to `free` belong to the datagram that is being
//! filled; the others are free. Only frames that are not the kernel's are written.
//!
//! So neither the kernel's frames nor ours need marks, and a kernel that completes frames in order
//! costs one comparison for each. The marks of the ledger are for the next endpoint with this
//! share: as long as the value lives, they say that the kernel has all frames. Owned by
//! `transmit/frames.rs`.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::{FRAME, Ledger};

/// The frames of one endpoint for packets to send.
#[derive(Debug)]
pub(crate) struct Supply {
    ledger: Ledger,
    /// Where each frame begins in the region.
    frames: Box<[usize]>,
    lent: usize,
    free: usize,
}

/// Takes back frames that the kernel names.
#[derive(Debug)]
pub(crate) struct Returning<'a> {
    lent: &'a mut [usize],
    /// How many of the first of them are back.
    count: usize,
    /// The region's bytes that belong to the share.
    share: Range<usize>,
}

impl Supply {
    /// The frames of a share. Frames that the kernel has at this time come back in any order.
    pub(super) fn new(ledger: Ledger) -> Self {
        let all = 0..ledger.lent.len();
        let is_lent = |frame: &usize| ledger.lent[*frame].swap(true, Ordering::Relaxed);
        let (mut frames, free): (Vec<_>, Vec<_>) = all.partition(is_lent);
        let lent = frames.len();
        frames.extend(free);
        let start = |frame| (ledger.first as usize + frame) * FRAME;
        Self {
            frames: frames.into_iter().map(start).collect(),
            lent,
            free: lent,
            ledger,
        }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// If one does not hold.
    #[cfg(feature = "check")]
    pub(crate) fn check(&self) {
        assert!(self.lent <= self.free && self.free <= self.frames.len());
        let mut all = self.frames.to_vec();
        all.sort_unstable();
        let start = |frame| (self.ledger.first as usize + frame) * FRAME;
        let each: Vec<usize> = (0..self.ledger.lent.len()).map(start).collect();
        assert_eq!(all, each, "each frame of the share once");
        let mut marks = self.ledger.lent.iter();
        assert!(marks.all(|mark| mark.load(Ordering::Relaxed)));
    }

    /// Whether no frame is free.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.free == self.frames.len()
    }

    /// The number of frames that the kernel has.
    #[inline]
    pub(crate) fn lent(&self) -> usize {
        self.lent
    }

    /// The free frames, in the order in which they are lent: the address of each, and its bytes.
    #[inline]
    pub(crate) fn rooms(&mut self) -> impl ExactSizeIterator<Item = (u64, &mut [u8; FRAME])> {
        let base = self.ledger.umem.base();
        self.frames[self.free..].iter().map(move |start| {
            // SAFETY: a frame of the ledger lies within the region, which is initialised, and no
            // other value has it. It is in the list once, and the kernel does not have it.
            let bytes = unsafe { &mut *base.add(*start).cast::<[u8; FRAME]>() };
            (*start as u64, bytes)
        })
    }

    /// Lends the first `count` of [`Self::rooms`].
    ///
    /// # Panics
    /// If there are fewer, or a datagram is open.
    #[inline]
    pub(crate) fn lend(&mut self, count: usize) {
        assert_eq!(self.lent, self.free, "an open datagram leaves first");
        assert!(count <= self.frames.len() - self.free, "they are free");
        self.free += count;
        self.lent = self.free;
    }

    /// Adds a free frame to the open datagram. False if none is free.
    #[inline]
    pub(crate) fn open(&mut self) -> bool {
        let has_one = !self.is_empty();
        self.free += usize::from(has_one);
        has_one
    }

    /// The bytes of a frame of the open datagram, counted from its first.
    ///
    /// # Panics
    /// If it has no such frame.
    #[inline]
    pub(crate) fn opened(&mut self, index: usize) -> &mut [u8; FRAME] {
        let start = self.frames[self.lent..self.free][index];
        // SAFETY: as in `rooms`.
        unsafe { &mut *self.ledger.umem.base().add(start).cast::<[u8; FRAME]>() }
    }

    /// Frees the frames of the open datagram.
    #[inline]
    pub(crate) fn discard(&mut self) {
        self.free = self.lent;
    }

    /// Lends the frames of the open datagram. Returns their addresses, in order.
    #[inline]
    pub(crate) fn close(&mut self) -> impl ExactSizeIterator<Item = u64> {
        let opened = self.lent..self.free;
        self.lent = self.free;
        self.frames[opened].iter().map(|start| *start as u64)
    }

    /// The frames that come back next, if the kernel completes them in order.
    #[inline]
    pub(crate) fn expected(&self) -> &[usize] {
        &self.frames[..self.lent]
    }

    /// Notes that the first `count` of those frames are back. They are the next ones to be used.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub(crate) fn on_back(&mut self, count: usize) {
        assert!(count <= self.lent, "the kernel had them");
        if count < self.free {
            // Those that are not back stay in front, in their order.
            self.frames[..self.free].rotate_left(count);
        }
        self.lent -= count;
        self.free -= count;
    }

    /// Lets `from` take back frames in any order.
    pub(crate) fn take_back<R>(&mut self, from: impl FnOnce(&mut Returning<'_>) -> R) -> R {
        let start = self.ledger.first as usize * FRAME;
        let mut returning = Returning {
            share: start..start + self.frames.len() * FRAME,
            lent: &mut self.frames[..self.lent],
            count: 0,
        };
        let answer = from(&mut returning);
        let count = returning.count;
        self.on_back(count);
        answer
    }
}

impl Returning<'_> {
    /// Takes back the frame that holds this address. False if the kernel does not have it.
    pub(crate) fn take(&mut self, addr: u64) -> bool {
        let later = &mut self.lent[self.count..];
        // Addresses of other endpoints end here.
        let at = usize::try_from(addr).ok();
        let at = at.filter(|at| self.share.contains(at));
        let start = at.map(|at| at - at % FRAME);
        let place = start.and_then(|start| later.iter().position(|it| *it == start));
        if let Some(place) = place {
            // It becomes the last one of those that are back; the others keep their order.
            later[..=place].rotate_right(1);
            self.count += 1;
        }
        place.is_some()
    }
}

impl Drop for Supply {
    fn drop(&mut self) {
        let first = self.ledger.first as usize;
        for (place, start) in self.frames.iter().enumerate() {
            let is_lent = place < self.lent;
            self.ledger.lent[start / FRAME - first].store(is_lent, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
