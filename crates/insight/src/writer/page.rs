//! The writing side: the memory file of a nexus, with one block for each of its endpoints.
//!
//! Invariants: a block has one writer, the thread of its endpoint (for the block of the nexus, the
//! control thread); its sequence word is odd while that thread writes, so a reader notices that it
//! has read a partly written block. The writer ignores everything that readers write into the file,
//! except a request for a trace, which `recorder.rs` checks.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::ffi::SharedWords;
use crate::layout::{self, block, header, key, slot, trace};
use crate::place::COLUMNS;
use crate::values::{Gauges, Row};

/// Bytes reserved for the text, more than the names need.
const TEXT_LEN: usize = 8 << 10;
/// The most endpoints of a nexus that can be visible at the same time. Unused blocks take no
/// memory.
const BLOCKS: usize = 1024;
/// Number of packets in the ring. The ring takes memory only while an endpoint is traced.
const SLOTS: usize = 1 << 15;

/// The names of the written values, in their order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    /// Counters of the control plane.
    pub nexus: Vec<&'static str>,
    /// Counters of an endpoint.
    pub counters: Vec<&'static str>,
    /// Why an endpoint drops packets.
    pub drops: Vec<&'static str>,
    /// Counters of its transport.
    pub transport: Vec<&'static str>,
    /// Histograms of an endpoint.
    pub histograms: Vec<&'static str>,
    /// The smallest value of each bucket of a histogram, ascending.
    pub buckets: Vec<u64>,
    /// Counters of the program itself, for each of its endpoints.
    pub own_counters: Vec<&'static str>,
    /// Numbers of the program itself that may decrease, for each of its endpoints.
    pub own_gauges: Vec<&'static str>,
}

/// The file of one nexus.
#[derive(Debug)]
pub struct Page {
    memory: SharedWords,
    nexus_values: usize,
    block_words: usize,
    /// The place of the rows of sessions in a block.
    rows: usize,
    /// The number of values of the program itself, at the end of a block.
    own: usize,
    nexus: usize,
    blocks: usize,
    trace: usize,
    /// For each block, whether an endpoint has it.
    taken: Mutex<Vec<bool>>,
    /// Sequence word of the nexus's block, which its control thread writes.
    nexus_sequence: AtomicU64,
}

/// The block of one endpoint, for its thread. Dropping it frees the block for the next endpoint.
#[derive(Debug)]
pub struct Block {
    page: Arc<Page>,
    number: usize,
    sequence: u64,
}

/// The words with which an endpoint's block begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head<'a> {
    /// The endpoint's index in its nexus.
    pub index: u16,
    /// The name of its transport; eight letters of it are kept.
    pub transport: &'a str,
    /// The time now on its own clock, in nanoseconds.
    pub clock_ns: u64,
    /// Number of rows of sessions that follow.
    pub rows: usize,
}

/// A block that is being written: first its values in the order of their [`Names`], then gauges,
/// histograms and rows.
#[must_use = "a block that is not finished cannot be read"]
#[derive(Debug)]
pub struct Writing<'a> {
    words: &'a [AtomicU64],
    at: usize,
    /// The place of the values of the program itself.
    own: usize,
    sequence: u64,
}

impl Page {
    /// Makes the file of the nexus at this address.
    ///
    /// # Errors
    /// The system has no memory files, or no room for one.
    pub fn new(address: SocketAddr, names: &Names) -> io::Result<Self> {
        let text = text(address, names);
        assert!(text.len() <= TEXT_LEN, "the names do not fit");
        let nexus_values = names.nexus.len();
        let nexus = layout::HEADER + TEXT_LEN / layout::WORD;
        let blocks = (nexus + block::NEXUS_HEAD + nexus_values).next_multiple_of(8);
        let block_words = block_words(names);
        let trace = blocks + block_words * BLOCKS;
        let ring = trace + trace::WORDS;
        let len = ring + SLOTS * slot::WORDS;
        let page = Self {
            memory: SharedWords::new(layout::NAME, len)?,
            nexus_values,
            block_words,
            rows: rows_at(names),
            own: own_values(names),
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

    /// A block for an endpoint; `None` if 1024 endpoints have one already.
    pub fn block(self: &Arc<Self>) -> Option<Block> {
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
            // The previous owner may have stopped while writing.
            sequence: sequence.next_multiple_of(2),
        })
    }

    /// Writes the counters of the control plane. Only the control thread calls it.
    pub fn write_nexus(&self, values: impl IntoIterator<Item = u64>) {
        let sequence = self.nexus_sequence.load(Ordering::Relaxed);
        self.nexus_sequence.store(sequence + 2, Ordering::Relaxed);
        let end = self.nexus + block::NEXUS_HEAD + self.nexus_values;
        let mut out = Writing::begin(&self.memory.words()[self.nexus..end], sequence);
        out.put(unix_now());
        out.values(values);
        out.finish();
    }

    /// Copies the bytes from `offset` on, and returns their number.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> usize {
        use std::os::unix::fs::FileExt;
        self.memory.file().read_at(out, offset).unwrap_or(0)
    }

    /// Like [`Page::read`], but without packets and addresses: the file seems to end before the
    /// trace, and the addresses of peers are zeros.
    pub fn read_counters(&self, offset: u64, out: &mut [u8]) -> usize {
        let end = (self.trace * layout::WORD) as u64;
        let left = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let room = out.len().min(left);
        let len = self.read(offset, &mut out[..room]);
        let first = usize::try_from(offset).unwrap_or(usize::MAX);
        for (byte, at) in out[..len].iter_mut().zip(first..) {
            if self.is_address(at / layout::WORD) {
                *byte = 0;
            }
        }
        len
    }

    /// Whether a word belongs to the address of a peer.
    fn is_address(&self, word: usize) -> bool {
        let Some(in_blocks) = word.checked_sub(self.blocks).filter(|_| word < self.trace) else {
            return false;
        };
        let row = (in_blocks % self.block_words).checked_sub(self.rows);
        let row = row.filter(|at| *at < layout::ROWS * Row::NAMES.len());
        let column = row.and_then(|at| Row::NAMES.get(at % Row::NAMES.len()));
        column.is_some_and(|name| COLUMNS.contains(name))
    }

    /// The file, so that it can be read as other processes read it.
    pub const fn file(&self) -> &std::fs::File {
        self.memory.file()
    }

    /// The request of a reader: whether it wants a trace, of which endpoint, and how much of each
    /// packet.
    pub(super) fn trace_words(&self) -> [u64; 3] {
        [trace::WORD, trace::ENDPOINT, trace::KEEP].map(|place| {
            u64::from_le(self.memory.words()[self.trace + place].load(Ordering::Relaxed))
        })
    }

    /// Reserves the number of the next packet of the trace, and its slot.
    pub(super) fn next_slot(&self) -> (u64, &[AtomicU64]) {
        let words = &self.memory.words()[self.trace..];
        let number = words[trace::WRITTEN].fetch_add(1, Ordering::Relaxed);
        let ring = &words[trace::WORDS..];
        let slot = usize::try_from(number % SLOTS as u64).unwrap_or(0);
        let at = slot * slot::WORDS;
        (number, &ring[at..at + slot::WORDS])
    }

    /// The slots that were ever written. Reading the others would allocate memory for them.
    pub(super) fn used_slots(&self) -> impl Iterator<Item = &[AtomicU64]> {
        let words = &self.memory.words()[self.trace..];
        let written = words[trace::WRITTEN].load(Ordering::Relaxed);
        let used = usize::try_from(written).map_or(SLOTS, |written| written.min(SLOTS));
        words[trace::WORDS..].chunks_exact(slot::WORDS).take(used)
    }

    fn put(&self, place: usize, value: u64) {
        self.memory.words()[place].store(value.to_le(), Ordering::Release);
    }

    fn place_of(&self, number: usize) -> usize {
        self.blocks + number * self.block_words
    }
}

impl Block {
    /// The page of the block.
    pub const fn page(&self) -> &Arc<Page> {
        &self.page
    }

    /// The number of values of the program itself.
    pub fn own_values(&self) -> usize {
        self.page.own
    }

    /// Begins to write the block.
    pub fn write(&mut self, head: &Head<'_>) -> Writing<'_> {
        let mut transport = [0; layout::WORD];
        for (to, from) in transport.iter_mut().zip(head.transport.bytes()) {
            *to = from;
        }
        let own = self.page.rows + layout::ROWS * Row::NAMES.len();
        let mut out = self.begin();
        out.values([
            unix_now(),
            head.index.into(),
            u64::from_le_bytes(transport),
            head.clock_ns,
            head.rows as u64,
        ]);
        out.at = block::HEAD;
        out.own = own;
        out
    }

    fn begin(&mut self) -> Writing<'_> {
        let start = self.page.place_of(self.number);
        let words = &self.page.memory.words()[start..start + self.page.block_words];
        let sequence = self.sequence;
        self.sequence += 2;
        Writing::begin(words, sequence)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut out = self.begin();
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
            own: 0,
            sequence,
        }
    }

    /// Writes the next words.
    #[inline]
    pub fn values(&mut self, values: impl IntoIterator<Item = u64>) {
        for value in values {
            self.put(value);
        }
    }

    /// Writes the next words: the gauges.
    pub fn gauges(&mut self, gauges: &Gauges) {
        self.values(gauges.words());
    }

    /// Writes the next words: a histogram, with the sum of its times and a count for each bucket.
    pub fn histogram(&mut self, sum_ns: u64, counts: &[u64]) {
        self.put(sum_ns);
        self.values(counts.iter().copied());
    }

    /// Writes the values of the program itself, after the rows: all its counters and then its
    /// gauges, or none.
    pub fn own(&mut self, values: &[u64]) {
        self.words[block::OWN].store((values.len() as u64).to_le(), Ordering::Relaxed);
        self.at = self.own;
        self.values(values.iter().copied());
    }

    /// Writes the next words: a session.
    pub fn row(&mut self, row: &Row) {
        self.values(row.words());
    }

    #[inline]
    fn put(&mut self, value: u64) {
        self.words[self.at].store(value.to_le(), Ordering::Relaxed);
        self.at += 1;
    }

    /// Ends writing: from now on, readers accept the block.
    pub fn finish(self) {
        let whole = (self.sequence + 2).to_le();
        self.words[block::SEQUENCE].store(whole, Ordering::Release);
    }
}

/// Nanoseconds since 1970.
pub fn unix_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

fn block_words(names: &Names) -> usize {
    let rows = layout::ROWS * Row::NAMES.len();
    (rows_at(names) + rows + own_values(names)).next_multiple_of(8)
}

const fn own_values(names: &Names) -> usize {
    names.own_counters.len() + names.own_gauges.len()
}

/// Words of a block before its rows.
fn rows_at(names: &Names) -> usize {
    let values =
        names.counters.len() + names.drops.len() + names.transport.len() + Gauges::NAMES.len();
    let histograms = names.histograms.len() * (1 + names.buckets.len());
    block::HEAD + values + histograms
}

/// The lines that describe the file.
fn text(address: SocketAddr, names: &Names) -> String {
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
    let buckets: Vec<String> = names.buckets.iter().map(u64::to_string).collect();
    let lines = [
        (key::PROGRAM, program),
        (key::ADDRESS, address.to_string()),
        (key::RELEASE, env!("CARGO_PKG_VERSION").into()),
        (key::NEXUS, names.nexus.join(" ")),
        (key::COUNTERS, names.counters.join(" ")),
        (key::DROPS, names.drops.join(" ")),
        (key::TRANSPORT, names.transport.join(" ")),
        (key::GAUGES, Gauges::NAMES.join(" ")),
        (key::HISTOGRAMS, names.histograms.join(" ")),
        (key::BUCKETS, buckets.join(" ")),
        (key::SESSIONS, Row::NAMES.join(" ")),
        (key::ROWS, layout::ROWS.to_string()),
        (key::OWN_COUNTERS, names.own_counters.join(" ")),
        (key::OWN_GAUGES, names.own_gauges.join(" ")),
    ];
    lines
        .iter()
        .map(|(key, value)| format!("{key} {value}\n"))
        .collect()
}
