//! The table of MICA in its cache mode: a lossy index of buckets, and a circular log that holds
//! the entries (HERD §4.1; design §15). A look-up reads a bucket and, if a tag agrees, the log.
//!
//! Invariants: a bucket is one cache line of eight slots. A slot holds 16 bits of the key's hash,
//! and the position at which its entry was appended. The log holds an entry until the head reaches
//! its place again. It holds one entry fewer than it has places, because positions skip 0.

use std::io;

use gopt::MAX_WIDTH;
use zerocopy::FromZeros;

use crate::compare::equal_u64_from;
use crate::forms::Lookup;
use crate::huge::Huge;
use crate::random::mix;
use crate::touched::Touched;
use crate::work::Work;

/// Slots of a bucket.
const SLOTS: usize = 8;

/// Words of a value.
pub const WORDS: usize = 3;

/// The value of a key.
pub type Value = [u64; WORDS];

/// Bits of a slot that hold the position; the tag is in the bits above them.
const POSITION_BITS: i32 = 48;

const POSITION: u64 = (1 << POSITION_BITS) - 1;

#[derive(Clone, Copy, Debug, FromZeros)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    slots: [u64; SLOTS],
}

#[derive(Clone, Copy, Debug, FromZeros)]
#[repr(C, align(32))]
pub(crate) struct LogEntry {
    key: u64,
    value: Value,
}

/// A table that forgets the oldest entries when its log is full.
#[derive(Debug)]
pub struct Mica {
    pub(crate) buckets: Huge<Bucket>,
    pub(crate) entries: Huge<LogEntry>,
    /// The position of the next entry, in 48 bits. It is never 0, because a slot of 0 is free.
    pub(crate) head: u64,
}

impl Mica {
    /// Makes an empty table of `2^log2_buckets` buckets of eight keys, and a log of
    /// `2^log2_entries`.
    ///
    /// # Errors
    /// `InvalidInput` if there are more than `2^40` of either, otherwise the error of `mmap`.
    pub fn new(log2_buckets: u32, log2_entries: u32) -> io::Result<Self> {
        if log2_buckets.max(log2_entries) > 40 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self {
            buckets: Huge::zeroed(1 << log2_buckets)?,
            entries: Huge::zeroed(1 << log2_entries)?,
            head: 1,
        })
    }

    /// Sets a key's value. A bucket that is full loses its oldest key.
    pub fn set(&mut self, key: u64, value: Value) {
        let (bucket, tag) = self.place(key);
        let position = self.head;
        // When positions wrap around, they skip 0.
        self.head = ((self.head + 1) & POSITION).max(1);
        let at = self.entry_at(position);
        self.entries[at] = LogEntry { key, value };
        let slot = self.slot_for(bucket, tag, key);
        self.buckets[bucket].slots[slot] = tag | position;
    }

    /// The key's slot; without one, a free slot; without that, the slot written longest ago.
    fn slot_for(&self, bucket: usize, tag: u64, key: u64) -> usize {
        let slots = &self.buckets[bucket].slots;
        let is_own = |slot: &u64| {
            *slot & !POSITION == tag
                && self.is_held(*slot)
                && self.entries[self.entry_at(*slot)].key == key
        };
        // A slot without an entry counts as older than every other one.
        let age = |at: &usize| {
            let is_held = self.is_held(slots[*at]);
            let age = self.head.wrapping_sub(slots[*at]) & POSITION;
            if is_held { age } else { u64::MAX }
        };
        let oldest = (0..SLOTS).max_by_key(age);
        let own = slots.iter().position(is_own);
        own.or(oldest).expect("a bucket has slots")
    }

    /// True if the log still holds the entry of the slot.
    #[inline(always)]
    fn is_held(&self, slot: u64) -> bool {
        let position = slot & POSITION;
        let age = self.head.wrapping_sub(position) & POSITION;
        position != 0 && age < self.entries.len() as u64
    }

    #[inline(always)]
    fn entry_at(&self, slot: u64) -> usize {
        // The compiler sees from the length that the entry exists.
        let mask = self.entries.len() - 1;
        usize::try_from(slot & POSITION).expect("this is a 64-bit machine") & mask
    }

    /// The bucket of a key, and its tag in the bits above the position.
    #[inline(always)]
    fn place(&self, key: u64) -> (usize, u64) {
        let hash = mix(key);
        let low = usize::try_from(hash).expect("this is a 64-bit machine");
        (low & (self.buckets.len() - 1), hash & !POSITION)
    }

    /// The slots of a bucket that may hold the key, as a mask.
    #[inline(always)]
    fn candidates(&self, bucket: &Bucket, tag: u64) -> u32 {
        let agree = equal_u64_from::<POSITION_BITS>(&bucket.slots, tag);
        self.held(bucket, agree)
    }

    /// Skips candidates, from the lowest, until the log holds the entry of one. Nearly always that
    /// is the first one.
    #[inline(always)]
    fn held(&self, bucket: &Bucket, mut agree: u32) -> u32 {
        while agree != 0 && !self.is_held(lowest(bucket, agree)) {
            agree &= agree - 1;
        }
        agree
    }

    /// The entry of the lowest candidate.
    #[inline(always)]
    fn candidate(&self, bucket: &Bucket, agree: u32) -> &LogEntry {
        &self.entries[self.entry_at(lowest(bucket, agree))]
    }

    /// Compares candidates one by one; if the key is there, nearly always the first one has it.
    #[inline(always)]
    fn search(&self, bucket: &Bucket, mut agree: u32, key: u64) -> Option<&Value> {
        while agree != 0 {
            let entry = self.candidate(bucket, agree);
            if entry.key == key {
                return Some(&entry.value);
            }
            agree = self.held(bucket, agree & (agree - 1));
        }
        None
    }
}

impl Lookup for Mica {
    type Key = u64;
    type Value = Option<Value>;

    #[inline(always)]
    fn find(&self, key: u64) -> Option<Value> {
        let (bucket, tag) = self.place(key);
        let bucket = &self.buckets[bucket];
        copied(self.search(bucket, self.candidates(bucket, tag), key))
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would copy its arguments"
    )]
    fn find_marked<W: Work<u64, Option<Value>>>(
        &self,
        work: &W,
        item: &W::Item,
    ) -> impl Future<Output = W::Out> {
        async move {
            let key = work.key(item);
            let (bucket, tag) = self.place(key);
            let bucket = gopt::load(&self.buckets[bucket]).await;
            let mut agree = self.candidates(bucket, tag);
            while agree != 0 {
                let entry = gopt::load(self.candidate(bucket, agree)).await;
                if entry.key == key {
                    return work.out(item, copied(Some(&entry.value)));
                }
                agree = self.held(bucket, agree & (agree - 1));
            }
            work.out(item, None)
        }
    }

    #[inline(always)]
    fn find_group<W: Work<u64, Option<Value>>>(
        &self,
        work: &W,
        items: &[W::Item],
        out: &mut [W::Out],
    ) {
        let mut keys = [0; MAX_WIDTH];
        let mut places = [(0, 0); MAX_WIDTH];
        let mut agree = [0; MAX_WIDTH];
        for (at, item) in items.iter().enumerate() {
            keys[at] = work.key(item);
            places[at] = self.place(keys[at]);
            gopt::prefetch_now(&raw const self.buckets[places[at].0], gopt::T0);
        }
        for at in 0..items.len() {
            let (bucket, tag) = places[at];
            let bucket = &self.buckets[bucket];
            agree[at] = self.candidates(bucket, tag);
            if agree[at] != 0 {
                gopt::prefetch_now(self.candidate(bucket, agree[at]), gopt::T0);
            }
        }
        for (at, (item, out)) in items.iter().zip(out).enumerate() {
            let bucket = &self.buckets[places[at].0];
            *out = work.out(item, copied(self.search(bucket, agree[at], keys[at])));
        }
    }

    fn touch(&self, key: u64, touched: &mut Touched) {
        let (at, tag) = self.place(key);
        touched.read(&self.buckets, at);
        let bucket = &self.buckets[at];
        let mut agree = self.candidates(bucket, tag);
        while agree != 0 {
            touched.read(&self.entries, self.entry_at(lowest(bucket, agree)));
            if self.candidate(bucket, agree).key == key {
                return;
            }
            agree = self.held(bucket, agree & (agree - 1));
        }
    }
}

/// Copies word by word, through registers; copying whole values went through the stack.
#[inline(always)]
fn copied(value: Option<&Value>) -> Option<Value> {
    let &[first, second, third] = value?;
    Some([first, second, third])
}

/// The slot of the lowest candidate.
#[inline(always)]
fn lowest(bucket: &Bucket, agree: u32) -> u64 {
    bucket.slots[agree.trailing_zeros() as usize % SLOTS]
}
