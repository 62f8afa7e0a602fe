//! The received frames that an endpoint has in hand, and the bytes of them that it shows to the
//! event loop.
//!
//! Owned by `receive/arrivals.rs`.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use dunlin_core::transport::RX_BURST;

use super::{Bad, FRAME, MAX_FRAMES, Part, Piece, View, number_of};
use crate::ring::{Consumer, Desc, Producer};

/// Shown for packets that do not lie in one frame.
const NOTHING: Shown = Shown {
    first: NonNull::dangling(),
    len: 0,
    frame: NONE,
};

/// The frames that an endpoint has taken back from the kernel, and the bytes of them that it shows,
/// at up to [`RX_BURST`] places.
///
/// Invariant: the frames are ours until [`Self::lend`] lends them, and then nothing is shown.
#[derive(Debug)]
pub(crate) struct Hand {
    part: Part,
    shown: [Shown; RX_BURST],
    shown_count: usize,
    /// The first of them have nothing unusual, according to the owner.
    plain: usize,
    /// Further frames.
    frames: Box<[u32]>,
    count: usize,
}

/// Shown bytes, and the frame in which they lie.
#[derive(Clone, Copy, Debug)]
struct Shown {
    first: NonNull<u8>,
    len: u32,
    frame: u32,
}

impl Shown {
    #[inline]
    fn new(bytes: &[u8], frame: u32) -> Self {
        Self {
            first: NonNull::from_ref(bytes).cast(),
            // A frame has fewer than 2^32 bytes, and so has a number.
            len: number_of(bytes.len()),
            frame,
        }
    }

    /// The bytes.
    ///
    /// # Safety
    /// Nothing writes to them.
    #[inline]
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: as the caller says; these were the bytes of `new`, or there are none.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len as usize) }
    }
}

/// The frame of bytes that lie in none.
const NONE: u32 = u32::MAX;
const _: () = assert!(MAX_FRAMES < NONE);

// SAFETY: the pointers lead to bytes of frames that belong to the value, or to constants.
unsafe impl Send for Hand {}

impl Hand {
    /// An empty hand for frames of `part`.
    pub(crate) fn new(part: Part) -> Self {
        Self {
            frames: vec![0; part.count() as usize].into_boxed_slice(),
            part,
            count: 0,
            shown: [NOTHING; RX_BURST],
            shown_count: 0,
            plain: 0,
        }
    }

    /// The part to which the frames belong.
    pub(crate) fn part(&self) -> &Part {
        &self.part
    }

    /// All of its frames, in any order.
    #[cfg(feature = "check")]
    pub(crate) fn held(&self) -> Vec<u32> {
        let shown = self.shown[..self.shown_count].iter();
        let shown = shown
            .map(|shown| shown.frame)
            .filter(|frame| *frame != NONE);
        self.frames[..self.count]
            .iter()
            .copied()
            .chain(shown)
            .collect()
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

    /// Keeps a frame of which nothing is shown.
    fn keep(&mut self, frame: u32) {
        // There is a place for every frame, unless the kernel gives it back to two endpoints.
        if let Some(place) = self.frames.get_mut(self.count) {
            *place = frame;
            self.count += 1;
        }
    }

    /// Takes entries of the ring, and their frames, while each is good, in one piece, and as long
    /// as the first, and `find` finds bytes to show in it. Returns their number.
    #[inline]
    pub(crate) fn show_while(
        &mut self,
        rx: &mut Consumer<Desc>,
        mut find: impl for<'a> FnMut(&'a [u8]) -> Option<&'a [u8]>,
    ) -> u32 {
        let view = self.part.view();
        let places = &mut self.shown[self.shown_count..];
        let len = rx.entries().next().map_or(0, |first| first.plain_len());
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let Some(last_start) = FRAME.checked_sub(len) else {
            return 0;
        };
        let mut count = 0;
        for (desc, place) in rx.entries().zip(places) {
            let found = (view.find(desc.addr), usize::try_from(desc.addr));
            let (Some(frame), Ok(addr)) = found else {
                break;
            };
            let lent = &view.lent[frame];
            let is_inside = desc.plain_len() == len as u64 && addr % FRAME <= last_start;
            if !is_inside || !lent.load(Ordering::Relaxed) {
                break;
            }
            // SAFETY: the bytes are within a frame of the region, which is initialised. The kernel
            // had the frame until it wrote the entry, so it is ours now, and shared frames are only
            // read.
            let bytes = unsafe { std::slice::from_raw_parts(view.base.add(addr), len) };
            let Some(bytes) = find(bytes) else {
                break;
            };
            lent.store(false, Ordering::Relaxed);
            *place = Shown::new(bytes, number_of(frame));
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
        self.shown[self.shown_count] = Shown::new(self.part.bytes(piece), NONE);
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

    /// The number of places that it shows, with or without bytes.
    #[inline]
    pub(crate) fn shown(&self) -> usize {
        self.shown_count
    }

    /// Notes that the first `count` shown places have nothing unusual.
    #[inline]
    pub(crate) fn set_plain(&mut self, count: usize) {
        self.plain = count.min(self.shown_count);
    }

    /// The bytes that it shows at a place, if nothing is unusual about them.
    #[inline]
    pub(crate) fn plain_bytes(&self, index: usize) -> Option<&[u8]> {
        // The remainder is always a place; a larger index gives `None` below.
        let shown = self.shown[index % RX_BURST];
        // SAFETY: as in `bytes`: no more are plain than are shown.
        (index < self.plain).then(|| unsafe { shown.bytes() })
    }

    /// The bytes that it shows at the places about which nothing is unusual, from `first` on.
    #[inline]
    pub(crate) fn plain_from(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let shown = self.shown.get(first..self.plain).unwrap_or_default();
        // SAFETY: as in `bytes`: no more are plain than are shown.
        shown.iter().map(|shown| unsafe { shown.bytes() })
    }

    /// The bytes that it shows at a place.
    #[inline]
    pub(crate) fn bytes(&self, index: usize) -> Option<&[u8]> {
        // The remainder is always a place; a larger index gives `None` below.
        let shown = self.shown[index % RX_BURST];
        // SAFETY: the bytes are in frames that are ours as long as they are shown, and which are
        // only read.
        (index < self.shown_count).then(|| unsafe { shown.bytes() })
    }

    /// Stops showing packets.
    pub(crate) fn hide(&mut self) {
        self.hide_from(0);
    }

    /// Keeps the frames of the places from `first` on, and stops showing all places.
    #[inline]
    fn hide_from(&mut self, first: usize) {
        for index in first..self.shown_count {
            match self.shown[index].frame {
                NONE => {}
                frame => self.keep(frame),
            }
        }
        (self.shown_count, self.plain) = (0, 0);
    }

    /// Stops showing packets, and lends the frames for which the ring has room.
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

/// Lends the frames of `items` for which the ring has room. Returns the number of items that no
/// longer have a frame.
#[inline]
fn lend_all<T>(
    view: View<'_>,
    fill: &mut Producer<u64>,
    items: &[T],
    frame_of: impl Fn(&T) -> u32,
) -> usize {
    let mut done = 0;
    loop {
        let mut written = 0;
        let other = fill.places().zip(&items[done..]).find(|(place, item)| {
            // There is none if the kernel gave it back to two endpoints.
            let addr = view.lend(frame_of(item));
            if let Some(addr) = addr {
                place.write(addr);
                written += 1;
            }
            addr.is_none()
        });
        let others = usize::from(other.is_some());
        fill.advance(written);
        done += written as usize + others;
        if done == items.len() || written == 0 && others == 0 {
            return done;
        }
    }
}

#[cfg(test)]
mod tests;
