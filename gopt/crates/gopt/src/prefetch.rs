//! The marks that a look-up puts before an expensive access (G-Opt §3.2, "Prefetch, Save, and
//! Switch"): each prefetches cache lines and lets the other lanes run once.
//!
//! Invariant: a mark is pending once, and then ready. In a [`Batch`](crate::Batch), each turn of a
//! look-up lets it pass one mark (`turn.rs`), and the mark itself changes nothing. In another
//! executor a mark remembers that it has switched, and immediately wakes the task, because only
//! tasks that were woken are polled again.
//!
//! Two consequences in a batch cost time, and change no value. If a look-up awaits several marks at
//! the same time, joined to one future, only one of them passes in each turn. After a pending
//! future that is not a mark, the next mark passes immediately.

use core::future::Future;
use core::marker::PhantomData;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::turn;

/// Bytes that one prefetch brings into the cache. On every supported processor, a line has 64
/// bytes, or a prefetch brings more.
const LINE_BYTES: usize = 64;

/// The most lines that [`load`] prefetches. A core has 10 to 16 buffers for lines in flight, and
/// hardware prefetchers find longer runs by themselves.
const LINES: usize = 8;

/// The cache level into which a line is prefetched, and for which use.
///
/// Implemented by [`T0`], [`T1`], [`T2`], [`Nta`] and [`Write`].
pub trait Hint: Copy + Unpin + sealed::Sealed {
    /// Prefetches the line that holds `address`, which need not be mapped.
    fn prefetch_line(address: *const u8);
}

/// Into all levels of the cache: the default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct T0;

/// Into the second level and beyond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct T1;

/// Into the last level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct T2;

/// Close to the processor, and evicted first: for lines that are used once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nta;

/// Into all levels, for a write: other cores lose their copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Write;

mod sealed {
    pub trait Sealed {}
}

/// A marked access, made by [`load`].
#[derive(Debug)]
#[must_use = "a mark does nothing unless it is awaited"]
pub struct Load<'a, T, H: Hint = T0> {
    place: &'a T,
    switch: Switch,
    hint: PhantomData<H>,
}

/// A marked access that will write, made by [`load_mut`].
#[derive(Debug)]
#[must_use = "a mark does nothing unless it is awaited"]
pub struct LoadMut<'a, T> {
    place: Option<&'a mut T>,
    switch: Switch,
}

/// A marked access through an address, made by [`prefetch`].
#[derive(Debug)]
#[must_use = "a mark does nothing unless it is awaited"]
pub struct Prefetch<H: Hint = T0> {
    address: *const u8,
    switch: Switch,
    hint: PhantomData<H>,
}

/// A turn for the other lanes, made by [`switch`].
#[derive(Debug)]
#[must_use = "a mark does nothing unless it is awaited"]
pub struct Switch {
    /// Used only outside a batch.
    has_switched: bool,
}

/// Marks an expensive read of `place`: prefetches it, runs the other lanes, then gives it back.
///
/// All cache lines of a `T` are prefetched, up to eight; if `T` is larger, mark the part that is
/// read. A shared reference also allows independent updates, through cells and atomics; use
/// [`Load::with`]`(Write)` for those.
///
/// ```
/// async fn find(table: &[u64], at: usize) -> Option<u64> {
///     let entry = *gopt::load(table.get(at)?).with(gopt::Nta).await;
///     (entry != 0).then_some(entry)
/// }
/// let mut found = [None; 3];
/// gopt::Batch::<2>::new().map([0, 1, 2], &mut found, |at| find(&[7, 0], at));
/// assert_eq!(found, [Some(7), None, None]);
/// ```
#[inline]
pub fn load<T>(place: &T) -> Load<'_, T> {
    Load {
        place,
        switch: switch(),
        hint: PhantomData,
    }
}

/// Marks an expensive access that writes `place`, to which this look-up has the only reference.
///
/// ```
/// let mut counters = [1_u64, 2, 3];
/// gopt::Batch::<2>::new().for_each(
///     &mut counters,
///     |counter| async move { *gopt::load_mut(counter).await += 1 },
///     |_, ()| (),
/// );
/// assert_eq!(counters, [2, 3, 4]);
/// ```
#[inline]
pub fn load_mut<T>(place: &mut T) -> LoadMut<'_, T> {
    LoadMut {
        place: Some(place),
        switch: switch(),
    }
}

/// Marks an expensive access to the cache line at `address`. Nothing is read, so any address is
/// allowed. For accesses that have no reference yet, such as the middle of a slice of bytes.
#[inline]
pub fn prefetch<T>(address: *const T) -> Prefetch {
    Prefetch {
        address: address.cast(),
        switch: switch(),
        hint: PhantomData,
    }
}

/// Prefetches the cache line at `address` and does not switch: for look-ups that need several lines
/// at once, before the mark of the last one.
#[inline]
pub fn prefetch_now<T, H: Hint>(address: *const T, _hint: H) {
    H::prefetch_line(address.cast());
}

/// Lets the other lanes run once and prefetches nothing.
#[inline]
pub const fn switch() -> Switch {
    Switch {
        has_switched: false,
    }
}

impl<'a, T, H: Hint> Load<'a, T, H> {
    /// The same mark with another hint.
    #[inline]
    pub fn with<G: Hint>(self, _hint: G) -> Load<'a, T, G> {
        Load {
            place: self.place,
            switch: self.switch,
            hint: PhantomData,
        }
    }
}

impl<H: Hint> Prefetch<H> {
    /// The same mark with another hint.
    #[inline]
    pub fn with<G: Hint>(self, _hint: G) -> Prefetch<G> {
        Prefetch {
            address: self.address,
            switch: self.switch,
            hint: PhantomData,
        }
    }
}

impl<'a, T, H: Hint> Future for Load<'a, T, H> {
    type Output = &'a T;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<&'a T> {
        if self.switch.passes(cx) {
            return Poll::Ready(self.place);
        }
        prefetch_value::<T, H>(self.place);
        Poll::Pending
    }
}

impl<'a, T> Future for LoadMut<'a, T> {
    type Output = &'a mut T;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<&'a mut T> {
        if self.switch.passes(cx) {
            let place = self.place.take();
            return Poll::Ready(place.expect("a future is not polled after it was ready"));
        }
        if let Some(place) = &self.place {
            prefetch_value::<T, Write>(place);
        }
        Poll::Pending
    }
}

impl<H: Hint> Future for Prefetch<H> {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.switch.passes(cx) {
            return Poll::Ready(());
        }
        H::prefetch_line(self.address);
        Poll::Pending
    }
}

impl Future for Switch {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.passes(cx) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Switch {
    /// Whether the look-up goes on. If not, the other lanes run.
    #[inline(always)]
    fn passes(&mut self, cx: &Context<'_>) -> bool {
        if let Some(granted) = turn::take(cx) {
            return granted;
        }
        if !self.has_switched {
            cx.waker().wake_by_ref();
        }
        mem::replace(&mut self.has_switched, true)
    }
}

/// Prefetches the lines that `place` covers, at most [`LINES`].
#[inline(always)]
fn prefetch_value<T, H: Hint>(place: &T) {
    let first: *const u8 = core::ptr::from_ref(place).cast();
    let lines = size_of::<T>().div_ceil(LINE_BYTES).clamp(1, LINES);
    for line in 0..lines {
        H::prefetch_line(first.wrapping_add(line * LINE_BYTES));
    }
    if may_cross::<T>() && lines < LINES {
        H::prefetch_line(first.wrapping_add(size_of::<T>() - 1));
    }
}

/// Whether a `T` covers one more line than its size fills, at some address that its alignment
/// allows. The compiler knows the answer. If so, a line is sometimes prefetched twice, which costs
/// less than computing the place.
const fn may_cross<T>() -> bool {
    let most_offset = LINE_BYTES.saturating_sub(align_of::<T>());
    let most_lines = (most_offset + size_of::<T>()).div_ceil(LINE_BYTES);
    most_lines > size_of::<T>().div_ceil(LINE_BYTES) && size_of::<T>() > 0
}

macro_rules! hint {
    ($name:ident, $x86:literal, $arm:literal) => {
        impl sealed::Sealed for $name {}

        impl Hint for $name {
            #[inline(always)]
            fn prefetch_line(address: *const u8) {
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                // SAFETY: a prefetch reads nothing, writes nothing and faults on no address.
                unsafe {
                    core::arch::asm!(
                        concat!($x86, " [{}]"),
                        in(reg) address.addr(),
                        options(nomem, nostack, preserves_flags)
                    );
                }
                #[cfg(all(target_arch = "aarch64", not(miri)))]
                // SAFETY: a prefetch reads nothing, writes nothing and faults on no address.
                unsafe {
                    core::arch::asm!(
                        concat!("prfm ", $arm, ", [{}]"),
                        in(reg) address.addr(),
                        options(nomem, nostack, preserves_flags)
                    );
                }
                #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
                let _ = address;
            }
        }
    };
}

hint!(T0, "prefetcht0", "pldl1keep");
hint!(T1, "prefetcht1", "pldl2keep");
hint!(T2, "prefetcht2", "pldl3keep");
hint!(Nta, "prefetchnta", "pldl1strm");
hint!(Write, "prefetchw", "pstl1keep");

#[cfg(test)]
mod tests;
