//! The records of clients, by which a repeated write is recognised (Raft dissertation §6.3).
//!
//! A client opens itself with an entry, whose index and cluster determine its name. Its record has
//! the answers to writes that the client may repeat. At most [`MAX_CLIENTS`] have a record; after
//! that, the client whose last entry is the oldest loses its record. A write of a client without a
//! record is never applied, because it may be a repeat. Called by `machine`.

use std::collections::{BTreeMap, VecDeque};

use super::frozen::{Budget, Frozen, Written, rest_of};
use super::meaning::meaning;
use crate::wire::cursor::{Cursor, put_count, put_words};
use crate::wire::{Answer, Malformed, Name, Request, WINDOW};

/// The most clients with a record, except in some checks.
pub(crate) const MAX_CLIENTS: usize = 8192;

/// Bytes in an image of a record's head, and of each write.
const HEAD: usize = 28;
const WRITE: usize = 16 + Answer::HEAD;

/// A record has at most this number of writes.
#[expect(clippy::cast_possible_truncation, reason = "it is small")]
const MOST_WRITES: usize = WINDOW as usize;

/// The most bytes of a record in an image.
pub(super) const MOST: usize = HEAD + MOST_WRITES * WRITE;

/// A write that was applied.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Write {
    meaning: u64,
    answer: Answer,
}

/// The record of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    /// The client has the answers of all writes below this number.
    first: u64,
    /// Writes by their numbers, in ascending order.
    writes: VecDeque<(u64, Write)>,
    /// The index of its last entry.
    last: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Clients {
    /// The most clients with a record.
    most: usize,
    records: BTreeMap<u64, Record>,
    /// Pairs of the last entry of a client and the client, the oldest entry last. The list is
    /// rebuilt when it is empty and a client must be removed. So a write does not pay for the
    /// order, and most removals need no search.
    oldest: Vec<(u64, u64)>,
    /// The records of an image that is being made.
    frozen: Frozen<u64, Record>,
}

impl PartialEq for Clients {
    /// An image under way is not part of the state.
    fn eq(&self, other: &Self) -> bool {
        (self.most, &self.records) == (other.most, &other.records)
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

    /// Reads a record, after the name of its client.
    fn take(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let (first, last) = (cursor.u64()?, cursor.u64()?);
        let count = cursor.count(WRITE)?;
        if count > MOST_WRITES {
            return Err(Malformed);
        }
        let mut writes = BTreeMap::new();
        for _ in 0..count {
            let (number, meaning) = (cursor.u64()?, cursor.u64()?);
            let answer = Answer::decode(cursor.bytes(Answer::HEAD)?)?;
            writes.insert(number, Write { meaning, answer });
        }
        Ok(Self {
            first,
            writes: writes.into_iter().collect(),
            last,
        })
    }
}

impl Record {
    /// Finds the position of a write, or the position at which it belongs.
    fn place_of(&self, number: u64) -> Result<usize, usize> {
        match self.writes.back() {
            Some((last, _)) if *last >= number => self
                .writes
                .binary_search_by_key(&number, |(number, _)| *number),
            // Nearly all writes come in order.
            _ => Err(self.writes.len()),
        }
    }

    /// The answer to a write that must not be applied, because it was applied before or no write
    /// can be applied with its name.
    pub(super) fn earlier(
        &mut self,
        name: Name,
        (entry, request): (&[u8], &Request<'_>),
        index: u64,
    ) -> Option<Answer> {
        self.last = index;
        self.first = self.first.max(name.first);
        let first = self.first;
        while self
            .writes
            .pop_front_if(|(number, _)| *number < first)
            .is_some()
        {}
        if name.number < first || name.number - first >= WINDOW {
            return Some(Answer::Misnamed);
        }
        let place = self.place_of(name.number).ok()?;
        let (_, write) = &self.writes[place];
        match write.meaning == meaning(entry, request) {
            true => Some(write.answer.clone()),
            false => Some(Answer::Misnamed),
        }
    }

    /// Notes a write that was applied.
    pub(super) fn note(
        &mut self,
        number: u64,
        (entry, request): (&[u8], &Request<'_>),
        answer: &Answer,
    ) {
        let write = Write {
            meaning: meaning(entry, request),
            answer: answer.clone(),
        };
        match self.place_of(number) {
            Ok(place) => self.writes[place].1 = write,
            // Nearly all writes come in order.
            Err(place) if place == self.writes.len() => self.writes.push_back((number, write)),
            Err(place) => self.writes.insert(place, (number, write)),
        }
    }
}

impl Clients {
    /// Makes the records for at most this number of clients.
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            records: BTreeMap::new(),
            oldest: Vec::new(),
            frozen: Frozen::none(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// The most bytes of all records in an image.
    pub(super) fn bytes(&self) -> usize {
        self.records.len() * MOST
    }

    /// Begins an image of the records as they are now.
    pub(super) fn freeze(&mut self) {
        self.frozen.begin();
    }

    /// Abandons the image.
    pub(super) fn thaw(&mut self) {
        self.frozen.give_up();
    }

    /// Appends the next records to the image. True: the image now has all of them.
    pub(super) fn read(&mut self, budget: &mut Budget, image: &mut Vec<u8>) -> bool {
        // A record is short, so it is always written as a whole.
        let put = |client: &u64, record: &Record, _, _| Written::Rest(record.put(*client, image));
        self.frozen
            .read(|after| rest_of(&self.records, after), budget, put)
    }

    /// Saves the record of a client for the image before the record changes.
    fn keep(&mut self, client: u64) {
        let records = &self.records;
        self.frozen
            .note(&client, || (client, records.get(&client).cloned()));
    }

    /// Opens a client, by the entry at this index.
    pub(super) fn open(&mut self, client: u64, index: u64) {
        let record = Record {
            first: 1,
            writes: VecDeque::new(),
            last: index,
        };
        self.keep(client);
        self.records.insert(client, record);
        if self.records.len() > self.most {
            self.leave();
        }
    }

    /// Removes the client whose last entry is the oldest.
    fn leave(&mut self) {
        let oldest = loop {
            let is_last = |(last, client): &(u64, u64)| {
                let record = self.records.get(client);
                record.is_some_and(|record| record.last == *last)
            };
            match self.oldest.pop() {
                Some(it) if is_last(&it) => break it.1,
                // The client has written since the list was made.
                Some(_) => {}
                None => {
                    let records = self.records.iter();
                    let lasts = records.map(|(client, record)| (record.last, *client));
                    self.oldest = lasts.collect();
                    self.oldest.sort_unstable_by(|one, other| other.cmp(one));
                }
            }
        };
        self.keep(oldest);
        self.records.remove(&oldest);
    }

    /// The record of a client, to be changed by an entry; `None` if the client has lost it.
    #[inline]
    pub(super) fn record(&mut self, client: u64) -> Option<&mut Record> {
        self.keep(client);
        self.records.get_mut(&client)
    }

    /// Appends the bytes of all records.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_count(out, self.records.len());
        for (client, record) in &self.records {
            record.put(*client, out);
        }
    }

    /// Makes empty records with the same limit.
    pub(super) const fn emptied(&self) -> Self {
        Self::new(self.most)
    }

    /// Reads the next record of an image.
    pub(super) fn take(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let client = cursor.u64()?;
        let record = Record::take(cursor)?;
        self.records.insert(client, record);
        Ok(())
    }

    /// Drops some of the records, and returns whether any are left.
    pub(super) fn shed(&mut self, budget: &mut Budget) -> bool {
        while !budget.is_spent()
            && let Some((_, record)) = self.records.pop_first()
        {
            budget.spend(record.writes.len() * WRITE);
        }
        let has_more = self.frozen.shed(budget);
        has_more || !self.records.is_empty()
    }
}

#[cfg(test)]
mod tests;
