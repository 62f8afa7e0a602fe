//! The reading side: the state of a process at one moment, from untrusted bytes.
//!
//! Invariants: no content of the file leads to a panic, to a read outside it, or to more memory
//! than the limits here allow; a block is accepted only if it did not change during the read.
//! Called by the command line tool; its tests supply broken files.

use std::sync::atomic::{Ordering, fence};

use super::histogram::Histogram;
use super::source::{ReadError, Source, read_head, words};
use super::text::Text;
use crate::layout::{WORD, block, header};
use crate::place::{self, Whereabouts};

/// Maximum size of a block in bytes.
const MAX_BLOCK: u64 = 1 << 20;
/// Maximum number of blocks.
const MAX_BLOCKS: u64 = 1 << 16;
/// Number of attempts to read a block: the reader gives up if the block changed during each of
/// them.
const TRIES: usize = 64;

/// Named numbers, in the order in which the process has them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Values(Vec<(String, u64)>);

/// One row of the table of sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionRow {
    /// The numbers of the session.
    pub numbers: Values,
    /// The place of the session's peer.
    pub place: Whereabouts,
}

/// A process at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The process number in its own namespace.
    pub pid: u64,
    /// When its nexus began, in nanoseconds since 1970.
    pub started_ns: u64,
    /// Name of the program.
    pub program: String,
    /// The address at which its nexus listens.
    pub address: String,
    /// Release of the library in the program.
    pub release: String,
    /// Counters of its control plane; empty before the control plane has run.
    pub nexus: Values,
    /// Its endpoints, in order of their indices.
    pub endpoints: Vec<Endpoint>,
    /// The reasons for drops, in the order that packets of a trace refer to.
    pub drop_reasons: Vec<String>,
}

/// The groups of an endpoint's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Counters of core.
    Counters,
    /// Packets that were dropped, by reason.
    Drops,
    /// Counters of the transport.
    Transport,
    /// Numbers that may decrease.
    Gauges,
    /// Counters of the program itself.
    OwnCounters,
    /// Numbers of the program itself that may decrease.
    OwnGauges,
}

/// An endpoint at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Its index in the nexus.
    pub index: u64,
    /// The name of its transport.
    pub transport: String,
    /// When the endpoint wrote these values, in nanoseconds since 1970.
    pub written_ns: u64,
    /// The same moment on the endpoint's own clock.
    pub clock_ns: u64,
    /// Counters of core since the start.
    pub counters: Values,
    /// Packets that were dropped, by reason.
    pub drops: Values,
    /// Counters of the transport.
    pub transport_counters: Values,
    /// Numbers that may decrease.
    pub gauges: Values,
    /// Counters of the program itself; empty if it has none for this endpoint.
    pub own_counters: Values,
    /// Numbers of the program itself that may decrease.
    pub own_gauges: Values,
    /// Times in nanoseconds, by name.
    pub histograms: Vec<(String, Histogram)>,
    /// The busiest sessions, the busiest first.
    pub sessions: Vec<SessionRow>,
}

impl Values {
    /// Each value with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// The value of this name; 0 if there is none.
    pub fn get(&self, name: &str) -> u64 {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or(0, |(_, value)| *value)
    }

    /// The sum of all values.
    pub fn total(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, (_, value)| sum.saturating_add(*value))
    }

    fn new(names: &[String], values: &mut impl Iterator<Item = u64>) -> Self {
        Self(names.iter().cloned().zip(values).collect())
    }
}

impl SessionRow {
    /// Older releases, which did not record a peer's place, wrote files without columns for it; the
    /// place is then unknown.
    fn new(names: &[String], values: &mut impl Iterator<Item = u64>) -> Self {
        let mut numbers = Values::new(names, values);
        let place = Whereabouts::of_words(place::COLUMNS.map(|column| numbers.get(column)));
        numbers
            .0
            .retain(|(name, _)| !place::COLUMNS.contains(&name.as_str()));
        Self { numbers, place }
    }

    /// The number of this name; 0 if there is none.
    pub fn get(&self, name: &str) -> u64 {
        self.numbers.get(name)
    }
}

impl Endpoint {
    /// The values of one group.
    pub const fn group(&self, group: Group) -> &Values {
        match group {
            Group::Counters => &self.counters,
            Group::Drops => &self.drops,
            Group::Transport => &self.transport_counters,
            Group::Gauges => &self.gauges,
            Group::OwnCounters => &self.own_counters,
            Group::OwnGauges => &self.own_gauges,
        }
    }

    /// The histogram of this name.
    pub fn histogram(&self, name: &str) -> Option<&Histogram> {
        let found = self.histograms.iter().find(|(known, _)| known == name);
        found.map(|(_, histogram)| histogram)
    }
}

impl Snapshot {
    /// Reads the state of a process.
    ///
    /// # Errors
    /// The file is not one that this release can read.
    pub fn read(source: &mut dyn Source) -> Result<Self, ReadError> {
        let head = read_head(source)?;
        let text = Text::read(source, head[header::TEXT], head[header::TEXT_LEN])?;
        let nexus = whole_block(
            source,
            head[header::NEXUS],
            block::NEXUS_HEAD + text.nexus.len(),
        )?;
        let written = nexus[block::WRITTEN] != 0;
        let values = nexus.into_iter().skip(block::NEXUS_HEAD);
        let names: &[String] = if written { &text.nexus } else { &[] };
        let mut snapshot = Self {
            pid: head[header::PID],
            started_ns: head[header::STARTED],
            nexus: Values::new(names, &mut values.into_iter()),
            endpoints: Vec::new(),
            drop_reasons: text.drops.clone(),
            program: text.program.clone(),
            address: text.address.clone(),
            release: text.release.clone(),
        };
        snapshot.read_endpoints(source, &head, &text)?;
        Ok(snapshot)
    }

    fn read_endpoints(
        &mut self,
        source: &mut dyn Source,
        head: &[u64],
        text: &Text,
    ) -> Result<(), ReadError> {
        let len = head[header::BLOCK_LEN];
        let (used, count) = (head[header::BLOCKS_USED], head[header::BLOCK_COUNT]);
        if used > count || count > MAX_BLOCKS || len > MAX_BLOCK {
            return Err(ReadError::Damaged("too many or too long blocks"));
        }
        let words = text.block_words();
        if (words * WORD) as u64 > len {
            return Err(ReadError::Damaged(
                "its blocks are shorter than their content",
            ));
        }
        for number in 0..used {
            let start = head[header::BLOCKS]
                .checked_add(number * len)
                .ok_or(ReadError::Damaged("its blocks lie outside it"))?;
            let block = whole_block(source, start, words)?;
            if block[block::WRITTEN] != 0 {
                self.endpoints.push(Endpoint::new(&block, text));
            }
        }
        self.endpoints.sort_by_key(|endpoint| endpoint.index);
        Ok(())
    }
}

impl Endpoint {
    /// The values in `words`, which has as many as the text announces.
    fn new(words: &[u64], text: &Text) -> Self {
        let transport = words[block::TRANSPORT].to_le_bytes();
        let rows = usize::try_from(words[block::ROWS]).unwrap_or(usize::MAX);
        let mut values = words.iter().copied().skip(block::HEAD);
        let values = &mut values;
        let written = usize::try_from(words[block::OWN]).unwrap_or(usize::MAX);
        let mut own = words.iter().copied().skip(text.own_at()).take(written);
        Self {
            index: words[block::INDEX],
            transport: transport
                .iter()
                .filter(|byte| byte.is_ascii_alphanumeric() || **byte == b'+')
                .map(|byte| char::from(*byte))
                .collect(),
            written_ns: words[block::WRITTEN],
            clock_ns: words[block::CLOCK],
            counters: Values::new(&text.counters, values),
            drops: Values::new(&text.drops, values),
            transport_counters: Values::new(&text.transport, values),
            gauges: Values::new(&text.gauges, values),
            own_counters: Values::new(&text.own_counters, &mut own),
            own_gauges: Values::new(&text.own_gauges, &mut own),
            histograms: text
                .histograms
                .iter()
                .map(|name| (name.clone(), Histogram::take(&text.buckets, values)))
                .collect(),
            sessions: (0..rows.min(text.rows))
                .map(|_| SessionRow::new(&text.sessions, values))
                .collect(),
        }
    }
}

/// Reads a block, and repeats the read if the block changed during it.
fn whole_block(source: &mut dyn Source, start: u64, len: usize) -> Result<Vec<u64>, ReadError> {
    for tries in 0..TRIES {
        let before = words(source, start, 1)?[block::SEQUENCE];
        if before.is_multiple_of(2) {
            fence(Ordering::Acquire);
            let block = words(source, start, len)?;
            fence(Ordering::Acquire);
            if words(source, start, 1)?[block::SEQUENCE] == before {
                return Ok(block);
            }
        }
        // Writing takes a few microseconds, unless the writer is waiting for a processor.
        if tries > TRIES / 2 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    Err(ReadError::Unfinished)
}

#[cfg(test)]
mod tests;
