//! The record of a run: a digest after each fact. A run that is repeated to find a difference also
//! keeps the facts in one range as sentences.
//!
//! Invariants: a record does not change the run, and the digests do not depend on whether words are
//! kept. A fact shows only values that are the same in two equal runs in one process, so neither
//! addresses nor numbers of memory regions. Written through [`Recorder`] by the code that makes the
//! facts, read by `cluster::differential`.

use std::fmt::{self, Arguments, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dunlin_core::{Counters, Nanos};

use super::net::{PortId, StagedPackets};

/// One event of a run.
pub(crate) trait Fact {
    /// Shows its kind, and all values that must be equal in both runs.
    fn show(&self, see: &mut impl See);

    /// One line for a reader.
    fn words(&self) -> String;
}

/// Receives the values of a fact one by one, and makes a digest or text of them.
pub(crate) trait See {
    fn kind(&mut self, name: &'static str);
    fn number(&mut self, name: &'static str, value: u64);
    fn bytes(&mut self, name: &'static str, bytes: &[u8]);
    fn text(&mut self, name: &'static str, text: Arguments<'_>);
}

/// Records facts; clones write to the same record. Handlers in workers also have a clone, so a lock
/// guards the record. No thread ever waits for the lock, because a run has only one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Option<Arc<Mutex<Record>>>);

/// The digests of a run, and words about a part of it.
#[derive(Debug, Default)]
pub(crate) struct Record {
    digest: Digest,
    /// The digest after each fact.
    after: Vec<u64>,
    /// The time of the last fact.
    at: Nanos,
    /// The range of facts that are kept as text.
    kept: Range<usize>,
    lines: Vec<Line>,
    ended: Vec<Counters>,
    staged: StagedPackets,
}

/// A fact as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// When.
    pub at: Nanos,
    /// The port of the endpoint, or of any endpoint of the host; `None` for the world itself.
    pub port: Option<PortId>,
    /// A sentence about it.
    pub what: String,
    /// Everything that is compared, by name.
    pub fields: Vec<(&'static str, String)>,
}

/// The content of a record at the end of its run.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) after: Vec<u64>,
    pub(crate) lines: Vec<Line>,
    /// The counters of every endpoint at its end.
    pub(crate) ended: Vec<Counters>,
    /// The packets that all endpoints have staged.
    pub(crate) staged: StagedPackets,
}

impl Recorder {
    /// A record that keeps the facts in the range `kept` as text.
    pub(crate) fn new(kept: Range<usize>) -> Self {
        Self(Some(Arc::new(Mutex::new(Record {
            kept,
            ..Record::default()
        }))))
    }

    /// True if anything is recorded.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Notes a fact of `port` at `at`.
    #[inline]
    pub(crate) fn note(&self, at: Nanos, port: PortId, fact: &impl Fact) {
        if let Some(record) = &self.0 {
            lock(record).add(at, Some(port), fact);
        }
    }

    /// Notes a fact of code that has no clock; the fact gets the time of the previous one.
    pub(crate) fn note_next(&self, port: PortId, fact: &impl Fact) {
        if let Some(record) = &self.0 {
            let mut record = lock(record);
            let at = record.at;
            record.add(at, Some(port), fact);
        }
    }

    /// Notes a fact of the world.
    pub(crate) fn note_world(&self, at: Nanos, fact: &impl Fact) {
        if let Some(record) = &self.0 {
            lock(record).add(at, None, fact);
        }
    }

    /// Notes the counters with which an endpoint ends.
    pub(crate) fn end_endpoint(&self, counters: &Counters) {
        if let Some(record) = &self.0 {
            lock(record).ended.push(*counters);
        }
    }

    /// Counts packets that an endpoint has staged.
    pub(crate) fn count_staged(&self, packets: StagedPackets) {
        if let Some(record) = &self.0 {
            lock(record).staged += packets;
        }
    }

    /// Takes the content out; the record is empty afterwards.
    pub(crate) fn take(&self) -> Recorded {
        let record = match &self.0 {
            Some(record) => std::mem::take(&mut *lock(record)),
            None => Record::default(),
        };
        Recorded {
            after: record.after,
            lines: record.lines,
            ended: record.ended,
            staged: record.staged,
        }
    }
}

fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    // A panic of the run cannot leave half a fact, because no code panics under the lock.
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Record {
    fn add(&mut self, at: Nanos, port: Option<PortId>, fact: &impl Fact) {
        self.at = at;
        self.digest.word(at.0);
        self.digest
            .word(port.map_or(u64::MAX, |port| port.0 as u64));
        fact.show(&mut self.digest);
        if self.kept.contains(&self.after.len()) {
            let mut fields = Fields::default();
            fact.show(&mut fields);
            self.lines.push(Line {
                at,
                port,
                what: fact.words(),
                fields: fields.0,
            });
        }
        self.after.push(self.digest.0);
    }
}

/// A digest that changes with any change of a word.
#[derive(Debug, Default)]
struct Digest(u64);

impl Digest {
    #[inline]
    fn word(&mut self, word: u64) {
        self.0 = mixed(self.0, word);
    }

    /// Computes four digests in parallel, each over every fourth word, and then a digest of these
    /// four. A long message takes a quarter of the time, because the four chains do not wait for
    /// each other.
    fn words(&mut self, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks::<32>();
        let mut lanes = [1, 2, 3, 4];
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = mixed(*lane, u64::from_le_bytes(*word));
            }
        }
        if !blocks.is_empty() {
            lanes.into_iter().for_each(|lane| self.word(lane));
        }
        let (words, rest) = rest.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
    }
}

#[inline]
fn mixed(digest: u64, word: u64) -> u64 {
    (digest ^ word)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(29)
}

impl See for Digest {
    #[inline]
    fn kind(&mut self, name: &'static str) {
        self.words(name.as_bytes());
    }

    #[inline]
    fn number(&mut self, _name: &'static str, value: u64) {
        self.word(value);
    }

    #[inline]
    fn bytes(&mut self, _name: &'static str, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        self.words(bytes);
    }

    fn text(&mut self, _name: &'static str, text: Arguments<'_>) {
        // A digest accepts every word.
        let _never_fails = self.write_fmt(text);
        self.word(u64::MAX);
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.words(text.as_bytes());
        Ok(())
    }
}

#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl See for Fields {
    fn kind(&mut self, name: &'static str) {
        self.0.push(("fact", name.to_owned()));
    }

    fn number(&mut self, name: &'static str, value: u64) {
        self.0.push((name, value.to_string()));
    }

    fn bytes(&mut self, name: &'static str, bytes: &[u8]) {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.0.push((name, digits));
    }

    fn text(&mut self, name: &'static str, text: Arguments<'_>) {
        self.0.push((name, text.to_string()));
    }
}
