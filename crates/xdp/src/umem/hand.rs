//! The received frames that an endpoint has in hand, and the bytes of them that it shows to the
//! event loop.
//!
//! Owned by `receive/arrivals.rs`.

use std::sync::atomic::Ordering;

use dunlin_core::transport::RX_BURST;

use super::{Bad, FRAME, MAX_FRAMES, Part, Piece, View, number_of};
use crate::ring::{Consumer, Desc, Producer};

/// Shown for packets that do not lie in one frame.
const NOTHING: Shown = Shown {
    bytes: &[],
    frame: NONE,
};

/// The frames that an endpoint has taken back from the kernel, and the bytes of them that it shows,
/// up to [`RX_BURST`] times.
///
/// Invariant: the frames are ours until [`Self::lend`] lends them, and then nothing is shown.
#[derive(Debug)]
pub(crate) struct Hand {
    part: Part,
    shown: [Shown; RX_BURST],
    shown_count: usize,
    /// Further frames.
    frames: Box<[u32]>,
    count: usize,
}

/// Shown bytes, and the frame in which they lie.
#[derive(Clone, Copy, Debug)]
struct Shown {
    bytes: *const [u8],
    frame: u32,
}

/// The frame of bytes that lie in none.
const NONE: u32 = u32::MAX;
const _: () = assert!(MAX_FRAMES < NONE);

// SAFETY: the pointers lead to bytes of frames that belong to the value, or to constants.
unsafe impl Send for Hand {}

impl Hand {
    /// Without frames; those that come are frames of `part`.
    pub(crate) fn new(part: Part) -> Self {
        Self {
            frames: vec![0; part.count() as usize].into_boxed_slice(),
            part,
            count: 0,
            shown: [NOTHING; RX_BURST],
            shown_count: 0,
        }
    }

    /// The part to which the frames belong.
    pub(crate) fn part(&self) -> &Part {
        &self.part
    }

    /// Takes a frame back with the bytes that the kernel has received into it.
    ///
    /// # Errors
    /// See [`Bad`]. With [`Bad::Length`], the frame is ours again.
    pub(crate) fn take(&mut self, desc: Desc) -> Result<Piece, Bad> {
        let frame = self.part.take_back(desc.addr)?;
        self.keep(frame);
        Part::piece(frame, desc)
    }

    /// Adds a frame to those of which nothing is shown.
    fn keep(&mut self, frame: u32) {
        // There is a place for every frame, unless the kernel gives it back to two endpoints.
        if let Some(place) = self.frames.get_mut(self.count) {
            *place = frame;
            self.count += 1;
        }
    }

    /// Takes entries of the ring, and their frames, as far as each is in one piece, and good, and
    /// `find` finds bytes to show in it. Returns their number.
    #[inline]
    pub(crate) fn show_while(
        &mut self,
        rx: &mut Consumer<Desc>,
        mut find: impl for<'a> FnMut(&'a [u8]) -> Option<&'a [u8]>,
    ) -> u32 {
        let view = self.part.view();
        let places = &mut self.shown[self.shown_count..];
        let mut count = 0;
        for (desc, place) in rx.entries().zip(places) {
            let found = (view.find(desc.addr), usize::try_from(desc.addr));
            let (Some(frame), Ok(addr)) = found else {
                break;
            };
            let (lent, room) = (&view.lent[frame], (FRAME - addr % FRAME) as u64);
            if desc.plain_len() > room || !lent.load(Ordering::Relaxed) {
                break;
            }
            // SAFETY: the bytes are within a frame of the region, which is initialised. The kernel
            // had the frame until it wrote the entry, so it is ours now, and shared frames are only
            // read.
            let bytes =
                unsafe { std::slice::from_raw_parts(view.base.add(addr), desc.len as usize) };
            let Some(bytes) = find(bytes) else {
                break;
            };
            lent.store(false, Ordering::Relaxed);
            *place = Shown {
                bytes,
                frame: number_of(frame),
            };
            count += 1;
        }
        rx.advance(count);
        self.shown_count += count as usize;
        count
    }

    /// Shows a piece of a frame that was taken back.
    ///
    /// # Panics
    /// If there is no room.
    pub(crate) fn show(&mut self, piece: Piece) {
        let bytes = self.part.bytes(piece);
        self.shown[self.shown_count] = Shown { bytes, ..NOTHING };
        self.shown_count += 1;
    }

    /// Takes a place without bytes.
    ///
    /// # Panics
    /// If there is no room.
    pub(crate) fn show_nothing(&mut self) {
        self.shown[self.shown_count] = NOTHING;
        self.shown_count += 1;
    }

    /// How often it shows bytes or nothing.
    #[inline]
    pub(crate) fn shown(&self) -> usize {
        self.shown_count
    }

    /// The bytes that it shows at a place.
    #[inline]
    pub(crate) fn bytes(&self, index: usize) -> Option<&[u8]> {
        // No place is beyond the last one.
        let bytes = self.shown[index % RX_BURST].bytes;
        // SAFETY: the bytes are constant, or in frames that are ours as long as they are shown.
        (index < self.shown_count).then(|| unsafe { &*bytes })
    }

    /// Shows nothing any more.
    pub(crate) fn hide(&mut self) {
        self.hide_from(0);
    }

    /// Keeps the frames of what is shown from this place on, and shows nothing any more.
    #[inline]
    fn hide_from(&mut self, first: usize) {
        for index in first..self.shown_count {
            match self.shown[index].frame {
                NONE => {}
                frame => self.keep(frame),
            }
        }
        self.shown_count = 0;
    }

    /// Shows nothing any more, and lends the frames, as far as the ring has room for them.
    #[inline]
    pub(crate) fn lend(&mut self, fill: &mut Producer<u64>) {
        let view = self.part.view();
        let shown = &self.shown[..self.shown_count];
        let lent = lend_all(view, fill, shown, |shown| shown.frame);
        self.hide_from(lent);
        if self.count > 0 {
            let view = self.part.view();
            let lent = lend_all(view, fill, &self.frames[..self.count], |frame| *frame);
            self.frames.copy_within(lent..self.count, 0);
            self.count -= lent;
        }
    }
}

/// Lends the frames of `items`, as far as the ring has room. Returns the number of items that have
/// no frame any more.
#[inline]
fn lend_all<T>(
    view: View<'_>,
    fill: &mut Producer<u64>,
    items: &[T],
    frame_of: impl Fn(&T) -> u32,
) -> usize {
    let mut done = 0;
    while done < items.len() {
        let (mut written, mut is_other) = (0, false);
        for (place, item) in fill.places().zip(&items[done..]) {
            let Some(addr) = view.lend(frame_of(item)) else {
                // There is none, or the kernel gave it back to two endpoints.
                is_other = true;
                break;
            };
            place.write(addr);
            written += 1;
        }
        fill.advance(written);
        let before = done;
        done += written as usize + usize::from(is_other);
        if done == before {
            break;
        }
    }
    done
}

#[cfg(test)]
mod tests;
