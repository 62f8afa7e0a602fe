//! The records of clients, by which a repeated write is recognised (Raft dissertation §6.3).
//!
//! A client opens itself with an entry, whose index and cluster make its name. Its record has the
//! answers of writes that the client may repeat. Records are bounded: when there are
//! [`MAX_CLIENTS`], the client whose last entry is the oldest leaves. A write of a client without a
//! record is never applied, because it may be a repeat. Called by `machine`.

use std::collections::{BTreeMap, VecDeque};

use super::frozen::{Budget, Frozen};
use super::{Name, meaning};
use crate::wire::cursor::{Cursor, put_count, put_words};
use crate::wire::{Answer, Malformed, WINDOW};

/// The most clients with a record, except in some checks.
pub(crate) const MAX_CLIENTS: usize = 8192;

/// Bytes of a record without writes in an image, and of a write.
const HEAD: usize = 28;
const WRITE: usize = 16 + Answer::HEAD;

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

#[derive(Clone, Debug)]
pub(super) struct Clients {
    /// The most clients with a record.
    most: usize,
    records: BTreeMap<u64, Record>,
    /// Clients by their last entries.
    order: BTreeMap<u64, u64>,
    /// The records of an image that is being made.
    frozen: Frozen<u64, Record>,
}

impl PartialEq for Clients {
    /// An image under way is no part of the state.
    fn eq(&self, other: &Self) -> bool {
        (self.most, &self.records, &self.order) == (other.most, &other.records, &other.order)
    }
}

impl Eq for Clients {}

impl Record {
    /// Appends the record to an image, and returns its size.
    fn put(&self, client: u64, image: &mut Vec<u8>) -> usize {
        let begin = image.len();
        put_words(image, &[client, self.first, self.last]);
        put_count(image, self.writes.len());
        for (number, write) in &self.writes {
            put_words(image, &[*number, write.meaning]);
            let start = image.len();
            image.resize(start + write.answer.size(), 0);
            write.answer.encode(&mut image[start..]);
        }
        image.len() - begin
    }
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
            frozen: Frozen::none(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Bytes of all records in an image at most.
    pub(super) fn bytes(&self) -> usize {
        const WRITES: usize = 32;
        self.records.len() * (HEAD + WRITES * WRITE)
    }

    /// Begins an image of the records as they are now.
    pub(super) fn freeze(&mut self) {
        self.frozen.begin();
    }

    /// Gives the image up.
    pub(super) fn thaw(&mut self) {
        self.frozen.give_up();
    }

    /// Appends the next records to the image. True: it has all of them.
    pub(super) fn read(&mut self, budget: &mut Budget, image: &mut Vec<u8>) -> bool {
        let put = |client: &u64, record: &Record| record.put(*client, image);
        self.frozen.read(&self.records, budget, put)
    }

    /// Notes the record of a client before it changes.
    fn keep(&mut self, client: u64) {
        let records = &self.records;
        self.frozen
            .note(&client, || (client, records.get(&client).cloned()));
    }

    /// Opens a client with the entry of this index.
    pub(super) fn open(&mut self, client: u64, index: u64) {
        let record = Record {
            first: 1,
            writes: VecDeque::new(),
            last: index,
        };
        self.keep(client);
        self.records.insert(client, record);
        self.order.insert(index, client);
        if self.records.len() > self.most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.keep(oldest);
            self.records.remove(&oldest);
        }
    }

    /// The answer to a write that must not be applied: it was applied before, or it has a name with
    /// which nothing can be applied.
    pub(super) fn earlier(&mut self, name: Name, entry: &[u8], index: u64) -> Option<Answer> {
        self.keep(name.client);
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
        self.keep(name.client);
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
            record.put(*client, out);
        }
    }

    /// Reads the bytes of all records, with the limit of these ones.
    pub(super) fn take(&self, cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let mut clients = Self::new(self.most);
        for _ in 0..cursor.count(HEAD)? {
            let client = cursor.u64()?;
            let (first, last) = (cursor.u64()?, cursor.u64()?);
            let mut writes = BTreeMap::new();
            for _ in 0..cursor.count(WRITE)? {
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
