//! The side that writes: the memory file of a nexus, with one block for each of its endpoints.
//!
//! Invariants: a block has one writer, the thread of its endpoint (the control thread for that of
//! the nexus); its sequence word is odd while it writes, so a reader finds out that it saw a part.
//! What readers write into the file is never believed but for what `tap.rs` looks at.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use dunlin_control::PlaneCounters;
use dunlin_core::{Counters, Drops, Histogram, Histograms};
use dunlin_transport::counters::Counters as TransportCounters;

use super::layout::{self, block, header, key, slot, trace};
use crate::ffi::memory::SharedWords;

/// The name under which the system shows the file (`/proc/PID/fd`).
pub(super) const NAME: &std::ffi::CStr = c"dunlin-insight";

/// Bytes of the text, more than the names need.
const TEXT_LEN: usize = 8 << 10;
/// Endpoints of a nexus that can be seen at the same time. Blocks that are not used take no memory.
const BLOCKS: usize = 1024;
/// Packets that the ring holds. It takes memory only when something is traced.
const SLOTS: usize = 1 << 15;

/// The file of one nexus.
#[derive(Debug)]
pub(crate) struct Page {
    memory: SharedWords,
    block_words: usize,
    nexus: usize,
    blocks: usize,
    trace: usize,
    /// Whose block is taken.
    taken: Mutex<Vec<bool>>,
    /// Sequence word of the nexus's block, which its control thread writes.
    nexus_sequence: AtomicU64,
}

/// The block of one endpoint, for its thread. Dropping it leaves it empty for the next one.
#[derive(Debug)]
pub(crate) struct Block {
    page: Arc<Page>,
    number: usize,
    sequence: u64,
}

/// A block that is being written.
pub(crate) struct Writing<'a> {
    words: &'a [AtomicU64],
    at: usize,
    sequence: u64,
}

impl Page {
    /// The file of the nexus at this address.
    ///
    /// # Errors
    /// The system has no memory files, or no room for one.
    pub(crate) fn new(address: SocketAddr) -> io::Result<Self> {
        let text = text(address);
        debug_assert!(text.len() <= TEXT_LEN);
        let names = PlaneCounters::default().named().len();
        let nexus = layout::HEADER + TEXT_LEN / layout::WORD;
        let blocks = (nexus + block::NEXUS_HEAD + names).next_multiple_of(8);
        let block_words = block_words();
        let trace = blocks + block_words * BLOCKS;
        let ring = trace + trace::WORDS;
        let len = ring + SLOTS * slot::WORDS;
        let page = Self {
            memory: SharedWords::new(NAME, len)?,
            block_words,
            nexus,
            blocks,
            trace,
            taken: Mutex::default(),
            nexus_sequence: AtomicU64::new(0),
        };
        let bytes = |words: usize| (words * layout::WORD) as u64;
        for (chunk, place) in text.as_bytes().chunks(layout::WORD).zip(layout::HEADER..) {
            let mut word = [0; layout::WORD];
            word[..chunk.len()].copy_from_slice(chunk);
            page.put(place, u64::from_le_bytes(word));
        }
        page.put(header::VERSION, layout::VERSION);
        page.put(header::LENGTH, bytes(len));
        page.put(header::TEXT, bytes(layout::HEADER));
        page.put(header::TEXT_LEN, text.len() as u64);
        page.put(header::NEXUS, bytes(nexus));
        page.put(header::BLOCKS, bytes(blocks));
        page.put(header::BLOCK_LEN, bytes(block_words));
        page.put(header::BLOCK_COUNT, BLOCKS as u64);
        page.put(header::TRACE, bytes(trace));
        page.put(header::RING, bytes(ring));
        page.put(header::SLOTS, SLOTS as u64);
        page.put(header::SLOT_LEN, bytes(slot::WORDS));
        page.put(header::PID, u64::from(std::process::id()));
        page.put(header::STARTED, unix_now());
        page.put(header::MAGIC, layout::MAGIC);
        Ok(page)
    }

    /// A block for an endpoint; `None` if so many have one.
    pub(crate) fn block(self: &Arc<Self>) -> Option<Block> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let number = taken.iter().position(|taken| !taken);
        let number = number.or_else(|| {
            (taken.len() < BLOCKS).then(|| {
                taken.push(false);
                taken.len() - 1
            })
        })?;
        taken[number] = true;
        self.put(header::BLOCKS_USED, taken.len() as u64);
        let place = self.place_of(number) + block::SEQUENCE;
        let sequence = u64::from_le(self.memory.words()[place].load(Ordering::Relaxed));
        Some(Block {
            page: Arc::clone(self),
            number,
            // Whoever had it may have ended in the middle.
            sequence: sequence.next_multiple_of(2),
        })
    }

    /// What the control plane has counted. Called by the control thread alone.
    pub(crate) fn write_nexus(&self, counters: &PlaneCounters) {
        let sequence = self.nexus_sequence.load(Ordering::Relaxed);
        self.nexus_sequence.store(sequence + 2, Ordering::Relaxed);
        let end = self.nexus + block::NEXUS_HEAD + counters.named().len();
        let mut out = Writing::begin(&self.memory.words()[self.nexus..end], sequence);
        out.put(unix_now());
        out.put_named(&counters.named());
        out.finish();
    }

    /// Copies what is at a place of the file, and says how many bytes there are.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> usize {
        use std::os::unix::fs::FileExt;
        self.memory.file().read_at(out, offset).unwrap_or(0)
    }

    /// The file, to be read as others read it.
    pub(crate) const fn file(&self) -> &std::fs::File {
        self.memory.file()
    }

    /// Whether a trace is wanted, of whom, and how much of each packet.
    pub(super) fn trace_words(&self) -> [u64; 3] {
        [trace::WORD, trace::ENDPOINT, trace::KEEP].map(|place| {
            u64::from_le(self.memory.words()[self.trace + place].load(Ordering::Relaxed))
        })
    }

    /// The number of the next packet of the trace, and where it belongs.
    pub(super) fn next_slot(&self) -> (u64, &[AtomicU64]) {
        let words = &self.memory.words()[self.trace..];
        let number = words[trace::WRITTEN].fetch_add(1, Ordering::Relaxed);
        let ring = &words[trace::WORDS..];
        let slot = usize::try_from(number % SLOTS as u64).unwrap_or(0);
        let at = slot * slot::WORDS;
        (number, &ring[at..at + slot::WORDS])
    }

    fn put(&self, place: usize, value: u64) {
        self.memory.words()[place].store(value.to_le(), Ordering::Release);
    }

    fn place_of(&self, number: usize) -> usize {
        self.blocks + number * self.block_words
    }
}

impl Block {
    /// Where it belongs.
    pub(super) const fn page(&self) -> &Arc<Page> {
        &self.page
    }

    /// Begins to write what is in it.
    pub(crate) fn write(&mut self) -> Writing<'_> {
        let start = self.page.place_of(self.number);
        let words = &self.page.memory.words()[start..start + self.page.block_words];
        let sequence = self.sequence;
        self.sequence += 2;
        Writing::begin(words, sequence)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut out = self.write();
        out.put(0);
        out.finish();
        let mut taken = self
            .page
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        taken[self.number] = false;
    }
}

impl<'a> Writing<'a> {
    fn begin(words: &'a [AtomicU64], sequence: u64) -> Self {
        words[block::SEQUENCE].store((sequence + 1).to_le(), Ordering::Relaxed);
        fence(Ordering::Release);
        Self {
            words,
            at: block::SEQUENCE + 1,
            sequence,
        }
    }

    /// The next word.
    #[inline]
    pub(crate) fn put(&mut self, value: u64) {
        self.words[self.at].store(value.to_le(), Ordering::Relaxed);
        self.at += 1;
    }

    /// The words from here to the values of an endpoint.
    pub(crate) fn skip_to_values(&mut self) {
        self.at = block::HEAD;
    }

    /// The next words, of values whose names are in the text.
    pub(crate) fn put_named(&mut self, values: &[(&'static str, u64)]) {
        for (_, value) in values {
            self.put(*value);
        }
    }

    /// The next words: a histogram.
    pub(crate) fn put_histogram(&mut self, histogram: &Histogram) {
        self.put(histogram.sum_ns());
        for count in histogram.buckets() {
            self.put(*count);
        }
    }

    /// From now on it can be read.
    pub(crate) fn finish(self) {
        let whole = (self.sequence + 2).to_le();
        self.words[block::SEQUENCE].store(whole, Ordering::Release);
    }
}

/// Nanoseconds since 1970.
pub(crate) fn unix_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

fn block_words() -> usize {
    let values = Counters::default().named().len()
        + Drops::default().named().len()
        + TransportCounters::default().named().len()
        + layout::GAUGES.len();
    let histograms = Histograms::default().named().len() * (1 + Histogram::BUCKETS);
    let rows = layout::ROWS * layout::SESSIONS.len();
    (block::HEAD + values + histograms + rows).next_multiple_of(8)
}

/// The lines that say what the file has.
fn text(address: SocketAddr) -> String {
    let program = std::env::current_exe().ok();
    let program = program
        .as_deref()
        .and_then(|path| path.file_name())
        .map_or("?".into(), |name| name.to_string_lossy());
    let program: String = program
        .chars()
        .filter(|c| !c.is_control())
        .take(64)
        .collect();
    let buckets: Vec<String> = (0..Histogram::BUCKETS)
        .map(|bucket| Histogram::smallest_ns(bucket).to_string())
        .collect();
    let lines = [
        (key::PROGRAM, program),
        (key::ADDRESS, address.to_string()),
        (key::RELEASE, env!("CARGO_PKG_VERSION").into()),
        (key::NEXUS, names(&PlaneCounters::default().named())),
        (key::COUNTERS, names(&Counters::default().named())),
        (key::DROPS, names(&Drops::default().named())),
        (key::TRANSPORT, names(&TransportCounters::default().named())),
        (key::GAUGES, layout::GAUGES.join(" ")),
        (key::HISTOGRAMS, names(&Histograms::default().named())),
        (key::BUCKETS, buckets.join(" ")),
        (key::SESSIONS, layout::SESSIONS.join(" ")),
        (key::ROWS, layout::ROWS.to_string()),
    ];
    lines
        .iter()
        .map(|(key, value)| format!("{key} {value}\n"))
        .collect()
}

fn names<V>(values: &[(&'static str, V)]) -> String {
    let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    names.join(" ")
}
