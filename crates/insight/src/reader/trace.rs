//! The reading side of traces: it asks a process for its packets, and copies them from the ring in
//! the memory file before they are overwritten.
//!
//! Invariant: no content of the file leads to a panic or to more memory than the limits here allow.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::find::Found;
use super::snapshot::Snapshot;
use super::source::{ReadError, read_head, words};
use crate::layout::{self, WORD, header, slot, trace};

/// The most slots of a ring.
const MAX_SLOTS: u64 = 1 << 20;
/// The most packets that one call reads.
const CHUNK: u64 = 512;
/// Number of slots that writers may be overwriting while a reader reads.
const MARGIN: u64 = 64;
/// The longest time between two changes of the word by another process that traces.
const OTHERS: Duration = Duration::from_millis(250);

/// Why there is no trace.
#[derive(Debug)]
pub enum TraceError {
    /// The file is not one that this release can read.
    Read(ReadError),
    /// The request for a trace cannot be written into the file.
    Ask(io::Error),
    /// Another process is tracing already.
    Busy,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Ask(error) => write!(f, "the process cannot be asked for a trace: {error}"),
            Self::Busy => f.write_str("another command is tracing this process"),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => error.source(),
            Self::Ask(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ReadError> for TraceError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> Self {
        Self::Ask(error)
    }
}

/// A packet that an endpoint has sent or received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The index of the endpoint.
    pub endpoint: u16,
    /// Whether it was sent; otherwise it was received.
    pub sent: bool,
    /// Whether the network had marked it "congestion experienced".
    pub congestion: bool,
    /// The peer, as the endpoint's transport knows it.
    pub peer: Option<u32>,
    /// Why the packet, or a part of it, was dropped.
    pub dropped: Option<String>,
    /// Its length.
    pub len: u32,
    /// Its first bytes.
    pub bytes: Vec<u8>,
}

/// A running trace. Dropping it ends the trace.
#[derive(Debug)]
pub struct Trace {
    file: File,
    control: u64,
    ring: u64,
    slots: u64,
    /// Names of the reasons for drops.
    reasons: Vec<String>,
    /// The last value of the word which shows that the trace is still wanted.
    word: u64,
    /// Number of the next packet to read.
    next: u64,
    lost: u64,
}

impl Trace {
    /// Asks a process for the packets of one of its endpoints, or of all, and for `keep` bytes of
    /// each packet.
    ///
    /// # Errors
    /// This release cannot read the process's file, or another process is already tracing it.
    pub fn begin(found: &Found, endpoint: Option<u16>, keep: usize) -> Result<Self, TraceError> {
        let mut file = File::options().read(true).write(true).open(&found.path)?;
        let snapshot = Snapshot::read(&mut file)?;
        let reasons = snapshot.drop_reasons;
        let head = read_head(&mut file)?;
        let slots = head[header::SLOTS];
        if head[header::SLOT_LEN] != (slot::WORDS * WORD) as u64
            || !(1..=MAX_SLOTS).contains(&slots)
        {
            return Err(ReadError::Damaged("its ring of packets has another layout").into());
        }
        let mut trace = Self {
            control: head[header::TRACE],
            ring: head[header::RING],
            file,
            slots,
            reasons,
            word: 0,
            next: 0,
            lost: 0,
        };
        let before = trace.control_word(trace::WORD)?;
        if before != 0 {
            std::thread::sleep(OTHERS);
            if trace.control_word(trace::WORD)? != before {
                return Err(TraceError::Busy);
            }
        }
        trace.word = before;
        trace.next = trace.control_word(trace::WRITTEN)?;
        let endpoint = endpoint.map_or(trace::ALL, u64::from);
        trace.put(trace::ENDPOINT, endpoint)?;
        trace.put(trace::KEEP, keep as u64)?;
        trace.still_wanted()?;
        Ok(trace)
    }

    /// Shows the process that the trace is still wanted. The caller repeats this a few times a
    /// second.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn still_wanted(&mut self) -> Result<(), TraceError> {
        self.word = self.word.wrapping_add(1).max(1);
        self.put(trace::WORD, self.word)?;
        Ok(())
    }

    /// Reads the packets that were recorded since the last call, in order; at most a few hundred.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn take(&mut self, mut each: impl FnMut(Packet)) -> Result<usize, TraceError> {
        let written = self.control_word(trace::WRITTEN)?;
        self.skip_overwritten(written);
        let first = self.next % self.slots;
        let len = written
            .saturating_sub(self.next)
            .min(CHUNK)
            .min(self.slots - first);
        if len == 0 {
            return Ok(0);
        }
        let start = self
            .ring
            .saturating_add(first * (slot::WORDS * WORD) as u64);
        let count = usize::try_from(len).unwrap_or(0);
        let slots = words(&mut self.file, start, count * slot::WORDS)?;
        // By now, the writer may have reused slots for other packets.
        let written = self.control_word(trace::WRITTEN)?;
        let mut taken = 0;
        for slot in slots.chunks_exact(slot::WORDS) {
            if self.next + self.slots < written + MARGIN {
                self.lost += 1;
            } else if slot[slot::NUMBER] == self.next + 1 {
                each(self.packet(slot));
            } else {
                // The slot is being written.
                break;
            }
            self.next += 1;
            taken += 1;
        }
        Ok(taken)
    }

    /// Packets that were overwritten before they were read.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    fn skip_overwritten(&mut self, written: u64) {
        let oldest = written.saturating_sub(self.slots.saturating_sub(MARGIN));
        if oldest > self.next {
            self.lost += oldest - self.next;
            self.next = oldest;
        }
    }

    fn packet(&self, words: &[u64]) -> Packet {
        let bits = words[slot::BITS];
        let kept =
            usize::try_from(words[slot::KEPT]).map_or(slot::ROOM, |kept| kept.min(slot::ROOM));
        let bytes = words[slot::HEAD..]
            .iter()
            .flat_map(|word| word.to_le_bytes());
        let reason = usize::try_from(bits >> slot::REASON_SHIFT & 0xff).unwrap_or(0);
        let has_peer = bits & slot::HAS_PEER != 0;
        Packet {
            at_ns: words[slot::AT],
            endpoint: (bits & 0xffff).try_into().unwrap_or(0),
            sent: bits & slot::SENT != 0,
            congestion: bits & slot::CONGESTION != 0,
            peer: has_peer.then(|| words[slot::PEER].try_into().unwrap_or(u32::MAX)),
            dropped: reason.checked_sub(1).map(|reason| {
                self.reasons
                    .get(reason)
                    .map_or("?", String::as_str)
                    .to_owned()
            }),
            len: words[slot::LEN].try_into().unwrap_or(u32::MAX),
            bytes: bytes.take(kept).collect(),
        }
    }

    fn control_word(&mut self, place: usize) -> Result<u64, ReadError> {
        Ok(words(
            &mut self.file,
            self.control.saturating_add((place * WORD) as u64),
            1,
        )?[0])
    }

    fn put(&self, place: usize, value: u64) -> io::Result<()> {
        let at = self.control.saturating_add((place * WORD) as u64);
        self.file.write_all_at(&value.to_le_bytes(), at)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // If this fails, the endpoints notice by themselves that the trace is no longer wanted.
        let _ = self.put(trace::WORD, 0);
    }
}

const _: () = assert!(layout::VERSION == 1, "the ring belongs to the layout");

#[cfg(test)]
mod tests;
