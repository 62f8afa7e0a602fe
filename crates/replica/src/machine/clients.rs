//! The records of clients, by which a repeated write is recognised (Raft dissertation §6.3).
//!
//! A client opens itself with an entry, whose index and cluster make its name. Its record has the
//! answers of writes that the client may repeat. Records are bounded: when there are
//! [`MAX_CLIENTS`], the client whose last entry is the oldest leaves. A write of a client without a
//! record is never applied, because it may be a repeat. Called by `machine`.

use std::collections::{BTreeMap, VecDeque};

use super::{Name, meaning};
use crate::wire::cursor::{Cursor, put_count, put_words};
use crate::wire::{Answer, Malformed, WINDOW};

/// The most clients with a record, except in some checks.
pub(crate) const MAX_CLIENTS: usize = 8192;

/// A write that was applied.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Write {
    meaning: u64,
    answer: Answer,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Record {
    /// The client has the answers of all writes below this number.
    first: u64,
    /// By their numbers, which rise.
    writes: VecDeque<(u64, Write)>,
    /// Its last entry.
    last: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Clients {
    /// The most clients with a record.
    most: usize,
    records: BTreeMap<u64, Record>,
    /// Clients by their last entries.
    order: BTreeMap<u64, u64>,
}

impl Record {
    /// The place of a write, or the one where it belongs.
    fn place_of(&self, number: u64) -> Result<usize, usize> {
        match self.writes.back() {
            Some((last, _)) if *last >= number => self
                .writes
                .binary_search_by_key(&number, |(number, _)| *number),
            // Nearly all writes come in order.
            _ => Err(self.writes.len()),
        }
    }
}

impl Clients {
    /// Records of at most this number of clients.
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            records: BTreeMap::new(),
            order: BTreeMap::new(),
        }
    }

    /// Opens a client with the entry of this index.
    pub(super) fn open(&mut self, client: u64, index: u64) {
        let record = Record {
            first: 1,
            writes: VecDeque::new(),
            last: index,
        };
        self.records.insert(client, record);
        self.order.insert(index, client);
        if self.records.len() > self.most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.records.remove(&oldest);
        }
    }

    /// The answer to a write that must not be applied: it was applied before, or it has a name with
    /// which nothing can be applied.
    pub(super) fn earlier(&mut self, name: Name, entry: &[u8], index: u64) -> Option<Answer> {
        let Some(record) = self.records.get_mut(&name.client) else {
            return Some(Answer::Expired);
        };
        self.order.remove(&record.last);
        self.order.insert(index, name.client);
        record.last = index;
        record.first = record.first.max(name.first);
        let first = record.first;
        while record
            .writes
            .pop_front_if(|(number, _)| *number < first)
            .is_some()
        {}
        if name.number < record.first || name.number - record.first >= WINDOW {
            return Some(Answer::Misnamed);
        }
        let place = record.place_of(name.number).ok()?;
        let (_, write) = &record.writes[place];
        match write.meaning == meaning(entry) {
            true => Some(write.answer.clone()),
            false => Some(Answer::Misnamed),
        }
    }

    /// Notes a write that was applied.
    pub(super) fn note(&mut self, name: Name, entry: &[u8], answer: &Answer) {
        if let Some(record) = self.records.get_mut(&name.client) {
            let write = Write {
                meaning: meaning(entry),
                answer: answer.clone(),
            };
            match record.place_of(name.number) {
                Ok(place) => record.writes[place].1 = write,
                Err(place) => record.writes.insert(place, (name.number, write)),
            }
        }
    }

    /// Appends the bytes of all records.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_count(out, self.records.len());
        for (client, record) in &self.records {
            put_words(out, &[*client, record.first, record.last]);
            put_count(out, record.writes.len());
            for (number, write) in &record.writes {
                put_words(out, &[*number, write.meaning]);
                let start = out.len();
                out.resize(start + write.answer.size(), 0);
                write.answer.encode(&mut out[start..]);
            }
        }
    }

    /// Reads the bytes of all records, with the limit of these ones.
    pub(super) fn take(&self, cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let mut clients = Self::new(self.most);
        for _ in 0..cursor.count(28)? {
            let client = cursor.u64()?;
            let (first, last) = (cursor.u64()?, cursor.u64()?);
            let mut writes = BTreeMap::new();
            for _ in 0..cursor.count(16 + Answer::HEAD)? {
                let (number, meaning) = (cursor.u64()?, cursor.u64()?);
                let answer = Answer::decode(cursor.bytes(Answer::HEAD)?)?;
                writes.insert(number, Write { meaning, answer });
            }
            clients.order.insert(last, client);
            let record = Record {
                first,
                writes: writes.into_iter().collect(),
                last,
            };
            clients.records.insert(client, record);
        }
        Ok(clients)
    }
}
