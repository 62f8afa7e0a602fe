//! The four rings of an AF_XDP socket (`Documentation/networking/af_xdp.rst`, "Rings"): one side
//! writes entries and moves the producer's position, the other reads them and moves the consumer's.
//!
//! We produce in the fill and the transmit ring, and consume in the receive and the completion
//! ring. The tests, which play the kernel in user space, use the same two types from the other end.
//!
//! Invariants:
//! - Entries are words that are read and written one by one with atomic operations, so that a side
//!   which writes when it must not can make an entry wrong, but causes no undefined behaviour.
//! - A position of the other side is accepted only if its distance from ours is at most the ring's
//!   size. Otherwise the ring is *broken*: it shows and takes no more entries, and `is_broken`
//!   reports that.
//! - The release of a position pairs with the acquire of the other side, so entries are whole.
//!
//! Made by `socket`; used by `receive` and `transmit`.

mod entry;
#[cfg(feature = "check")]
#[cfg(not(loom))]
mod hostile;

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice::ChunksExact;
use std::sync::Arc;

use crate::mapping::Mapping;
pub use entry::{Desc, RingEntry};

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// The flag with which the kernel asks for a system call (`XDP_RING_NEED_WAKEUP`).
const NEED_WAKEUP: u32 = 1;

/// Where the parts of a ring lie in its mapping, in bytes (`XDP_MMAP_OFFSETS`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offsets {
    /// The producer's position.
    pub producer: usize,
    /// The consumer's position.
    pub consumer: usize,
    /// The flags.
    pub flags: usize,
    /// The first entry.
    pub entries: usize,
}

impl Offsets {
    /// Bytes of a mapping with `count` entries.
    pub(crate) fn mapping_len<E: RingEntry>(&self, count: u32) -> usize {
        self.entries + count as usize * E::WORDS * size_of::<u64>()
    }
}

/// The memory of one ring.
#[derive(Clone, Debug)]
pub(crate) struct Memory<E> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    words: NonNull<AtomicU64>,
    count: u32,
    /// Keeps the memory; `None` in a test that keeps the memory itself.
    _mapping: Option<Arc<Mapping>>,
    entry: PhantomData<E>,
}

// SAFETY: all that the pointers lead to is atomic, and the mapping is kept.
unsafe impl<E> Send for Memory<E> {}
// SAFETY: as above.
unsafe impl<E> Sync for Memory<E> {}

impl<E: RingEntry> Memory<E> {
    /// A ring in a mapping. `None` if a part does not lie inside, or `count` is not a power of two.
    pub(crate) fn of(mapping: Arc<Mapping>, at: &Offsets, count: u32) -> Option<Self> {
        if !count.is_power_of_two() {
            return None;
        }
        Some(Self {
            producer: mapping.place(at.producer, 1)?,
            consumer: mapping.place(at.consumer, 1)?,
            flags: mapping.place(at.flags, 1)?,
            words: mapping.place(at.entries, count as usize * E::WORDS)?,
            count,
            _mapping: Some(mapping),
            entry: PhantomData,
        })
    }

    /// A ring in memory of this process, for both of its ends.
    ///
    /// # Errors
    /// The kernel's.
    #[cfg(any(test, feature = "wire"))]
    #[cfg(not(loom))]
    pub(crate) fn anonymous(count: u32) -> std::io::Result<Self> {
        const AT: Offsets = Offsets {
            producer: 0,
            consumer: 64,
            flags: 128,
            entries: 192,
        };
        let mapping = Mapping::anonymous(AT.mapping_len::<E>(count))?;
        let memory = Self::of(Arc::new(mapping), &AT, count);
        memory.ok_or_else(|| std::io::ErrorKind::InvalidInput.into())
    }

    /// A ring of these parts.
    ///
    /// # Safety
    /// They live longer than the value and its copies, and there are `count` times `E::WORDS`
    /// words, where `count` is a power of two.
    #[cfg(all(test, loom))]
    unsafe fn over(at: [&AtomicU32; 3], words: &[AtomicU64], count: u32) -> Self {
        let [producer, consumer, flags] = at.map(NonNull::from);
        Self {
            producer,
            consumer,
            flags,
            words: NonNull::from(&words[0]),
            count,
            _mapping: None,
            entry: PhantomData,
        }
    }

    #[inline]
    fn producer(&self) -> &AtomicU32 {
        // SAFETY: within the mapping that `self` keeps, or what the caller of `over` vouches for.
        unsafe { self.producer.as_ref() }
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    #[inline]
    fn flags(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.flags.as_ref() }
    }

    /// The places of up to `count` entries from this position on, up to the end of the ring's
    /// memory.
    #[inline]
    fn run(&self, position: u32, count: u32) -> ChunksExact<'_, AtomicU64> {
        let first = position & (self.count - 1);
        let count = count.min(self.count - first);
        let [first, count] = [first, count].map(|entries| entries as usize * E::WORDS);
        // SAFETY: the words from `first` on belong to entries within the ring.
        let words = unsafe { std::slice::from_raw_parts(self.words.as_ptr().add(first), count) };
        words.chunks_exact(E::WORDS)
    }

    /// The place of one entry.
    #[inline]
    fn place(&self, position: u32) -> &[AtomicU64] {
        self.run(position, 1).next().expect("a ring has entries")
    }
}

/// Writes an entry to its place.
#[inline]
fn write<E: RingEntry>(place: &[AtomicU64], entry: E) {
    for (word, value) in place.iter().zip(entry.words()) {
        word.store(value, Ordering::Relaxed);
    }
}

/// Reads the entry at this place.
#[inline]
fn read<E: RingEntry>(place: &[AtomicU64]) -> E {
    let mut words = [0; 2];
    for (value, word) in words.iter_mut().zip(place) {
        *value = word.load(Ordering::Relaxed);
    }
    E::of(words)
}

/// The place of an entry that can be written.
pub(crate) struct Writable<'a, E>(&'a [AtomicU64], PhantomData<E>);

impl<E: RingEntry> Writable<'_, E> {
    #[inline]
    pub(crate) fn write(&self, entry: E) {
        write(self.0, entry);
    }
}

/// The writing side of a ring.
#[derive(Debug)]
pub struct Producer<E> {
    memory: Memory<E>,
    /// The position of the next entry.
    at: u32,
    /// The consumer's position when we last looked.
    freed: u32,
    broken: bool,
}

impl<E: RingEntry> Producer<E> {
    /// The writing side of an empty ring.
    pub(crate) fn new(memory: Memory<E>) -> Self {
        let at = memory.producer().load(Ordering::Relaxed);
        Self {
            memory,
            at,
            freed: at,
            broken: false,
        }
    }

    /// Entries that can be written now. It reads the consumer's position only if fewer than
    /// `wanted` are known.
    #[inline]
    pub fn room(&mut self, wanted: u32) -> u32 {
        let known = self.memory.count - self.at.wrapping_sub(self.freed);
        if known >= wanted && !self.broken {
            return known;
        }
        self.look()
    }

    fn look(&mut self) -> u32 {
        // Pairs with the release in `Consumer::release`: it has read what we overwrite.
        let freed = self.memory.consumer().load(Ordering::Acquire);
        let used = self.at.wrapping_sub(freed);
        // The consumer neither passes us nor goes back.
        let is_ahead = freed.wrapping_sub(self.freed) > self.at.wrapping_sub(self.freed);
        if used > self.memory.count || is_ahead || self.broken {
            self.broken = true;
            return 0;
        }
        self.freed = freed;
        self.memory.count - used
    }

    /// Writes an entry; false if there is no room.
    #[inline]
    pub fn push(&mut self, entry: E) -> bool {
        if self.room(1) == 0 {
            return false;
        }
        write(self.memory.place(self.at), entry);
        self.at = self.at.wrapping_add(1);
        true
    }

    /// The places of the next entries that can be written, up to the end of the ring's memory. Call
    /// [`Self::advance`] for those that were written.
    #[inline]
    pub(crate) fn places(&mut self) -> impl ExactSizeIterator<Item = Writable<'_, E>> {
        let room = self.room(1);
        let places = self.memory.run(self.at, room);
        places.map(|words| Writable(words, PhantomData))
    }

    /// Notes that the first `count` of the places have entries.
    #[inline]
    pub(crate) fn advance(&mut self, count: u32) {
        self.at = self.at.wrapping_add(count);
    }

    /// Shows the consumer all entries written so far.
    #[inline]
    pub fn publish(&mut self) {
        self.memory.producer().store(self.at, Ordering::Release);
    }

    /// Whether the consumer sleeps until a system call wakes it. Call this after [`Self::publish`].
    #[inline]
    pub fn wants_wakeup(&self) -> bool {
        let asks = || self.memory.flags().load(Ordering::Relaxed) & NEED_WAKEUP != 0;
        // In copy mode the flag is always set, and the fence would cost as much as many packets.
        asks() || {
            // The consumer sets the flag and looks for entries once more before it sleeps. So it
            // sees our entries, or we see its flag.
            fence(Ordering::SeqCst);
            asks()
        }
    }

    /// Entries that the consumer has not taken yet.
    pub fn waiting(&mut self) -> u32 {
        self.memory.count - self.look()
    }

    /// The entries that the consumer has not taken yet. While the ring is open, the consumer can
    /// still take them.
    pub(crate) fn left(&mut self) -> impl Iterator<Item = E> + '_ {
        let waiting = self.waiting();
        let waiting = if self.broken { 0 } else { waiting };
        let first = self.at.wrapping_sub(waiting);
        (0..waiting).map(move |ahead| read(self.memory.place(first.wrapping_add(ahead))))
    }

    /// The other side has moved to an impossible position.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Moves to an impossible position, as a hostile kernel may.
    #[cfg(test)]
    #[cfg(not(loom))]
    pub(crate) fn run_away(&mut self) {
        self.at = self.at.wrapping_add(3 * self.memory.count);
        self.publish();
    }
}

/// The reading side of a ring.
#[derive(Debug)]
pub struct Consumer<E> {
    memory: Memory<E>,
    /// The position of the next entry.
    at: u32,
    /// The producer's position when we last looked.
    seen: u32,
    broken: bool,
}

impl<E: RingEntry> Consumer<E> {
    /// The reading side of a ring from which nothing has been read.
    pub(crate) fn new(memory: Memory<E>) -> Self {
        let at = memory.consumer().load(Ordering::Relaxed);
        Self {
            memory,
            at,
            seen: at,
            broken: false,
        }
    }

    /// Entries that can be read, and that [`Self::available`] has shown.
    #[inline]
    pub(crate) fn known(&self) -> u32 {
        self.seen.wrapping_sub(self.at)
    }

    /// Entries that can be read now. It reads the producer's position only if fewer than `wanted`
    /// are known.
    #[inline]
    pub fn available(&mut self, wanted: u32) -> u32 {
        let known = self.known();
        if known >= wanted {
            return known;
        }
        self.look()
    }

    #[inline]
    fn look(&mut self) -> u32 {
        // Pairs with the release in `Producer::publish`: the entries are there.
        let seen = self.memory.producer().load(Ordering::Acquire);
        let filled = seen.wrapping_sub(self.at);
        let known = self.known();
        // The producer neither overtakes us by more than the ring nor goes back.
        if filled > self.memory.count || filled < known || self.broken {
            self.broken = true;
            self.seen = self.at;
            return 0;
        }
        self.seen = seen;
        filled
    }

    /// The most entries that the ring holds.
    pub(crate) fn capacity(&self) -> u32 {
        self.memory.count
    }

    /// The entry `ahead` places after the next one, if [`Self::available`] has shown it.
    #[inline]
    pub fn peek(&self, ahead: u32) -> Option<E> {
        let is_seen = ahead < self.known();
        is_seen.then(|| read(self.memory.place(self.at.wrapping_add(ahead))))
    }

    /// Takes the next entry, if [`Self::available`] has shown it.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        let entry = self.peek(0)?;
        self.at = self.at.wrapping_add(1);
        Some(entry)
    }

    /// The next entries, if [`Self::available`] has shown them, up to the end of the ring's memory.
    /// Call [`Self::advance`] to take some.
    #[inline]
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = E> + '_ {
        self.memory.run(self.at, self.known()).map(read)
    }

    /// Takes the next `count` entries, or as many as [`Self::available`] has shown.
    #[inline]
    pub(crate) fn advance(&mut self, count: u32) {
        self.at = self.at.wrapping_add(count.min(self.known()));
    }

    /// Gives the places of all taken entries back to the producer.
    #[inline]
    pub fn release(&mut self) {
        self.memory.consumer().store(self.at, Ordering::Release);
    }

    /// Asks the producer for a system call after it has written, or withdraws that request. Only
    /// the kernel does so, and tests that play the kernel.
    pub fn ask_for_wakeup(&self, asks: bool) {
        let flags = if asks { NEED_WAKEUP } else { 0 };
        self.memory.flags().store(flags, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The other side has moved to an impossible position.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Moves beyond the producer, as a hostile kernel may.
    #[cfg(test)]
    #[cfg(not(loom))]
    pub(crate) fn overtake(&mut self) {
        self.at = self.at.wrapping_add(3 * self.memory.count);
        self.release();
    }
}

#[cfg(all(test, loom))]
pub(crate) mod loom_rings;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
