//! Operations of clients that a leader has not answered yet.
//!
//! A write waits for the next proposal, and then until its entry is applied. A get waits until the
//! leader asks for all gets of its run; then for a majority; then until the entry at its index is
//! applied. Invariant: every operation is answered once, at the latest when the node stops leading.
//! Called by `node`.

use std::collections::{BTreeMap, VecDeque};

use raft::eraftpb::Entry;

use super::output::Output;
use crate::options::Options;
use crate::wire::Answer;
use crate::wire::copies::Copies;

#[derive(Debug)]
struct Get<A> {
    key: Vec<u8>,
    asker: A,
}

/// A write that is not answered, and its length.
#[derive(Debug)]
struct Write<A> {
    asker: A,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Waiting<A> {
    most: usize,
    under_way: usize,
    /// Bytes of all writes under way.
    bytes_under_way: usize,
    /// The bytes of the writes that the next run proposes, one after the other, and where each
    /// ends.
    copies: Copies,
    ends: Vec<usize>,
    askers: Vec<Write<A>>,
    /// Writes in the log, by the indices of their entries.
    appended: VecDeque<(u64, Write<A>)>,
    gets: Vec<Get<A>>,
    /// Gets that wait for a majority, by the number of the question.
    asked: BTreeMap<u64, Vec<Get<A>>>,
    /// Gets that may be answered once the entry at their index is applied.
    confirmed: VecDeque<(u64, Vec<Get<A>>)>,
    questions: u64,
    busy: Vec<A>,
    /// Writes that are refused because the disk is full.
    full: Vec<A>,
}

impl<A> Waiting<A> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            under_way: 0,
            bytes_under_way: 0,
            copies: Copies::new(),
            ends: Vec::new(),
            askers: Vec::new(),
            appended: VecDeque::new(),
            gets: Vec::new(),
            asked: BTreeMap::new(),
            confirmed: VecDeque::new(),
            questions: 0,
            busy: Vec::new(),
            full: Vec::new(),
        }
    }

    /// Notes that the disk has no room for a write.
    pub(super) fn on_full(&mut self, asker: A) {
        self.full.push(asker);
    }

    pub(super) fn on_write(&mut self, request: &[u8], asker: A) {
        let bytes = request.len();
        if self.under_way == self.most || self.bytes_under_way + bytes > Options::UNCOMMITTED {
            return self.busy.push(asker);
        }
        self.under_way += 1;
        self.bytes_under_way += bytes;
        self.ends.push(self.copies.add(request));
        self.askers.push(Write { asker, bytes });
    }

    pub(super) fn on_get(&mut self, key: Vec<u8>, asker: A) {
        if self.under_way == self.most {
            return self.busy.push(asker);
        }
        self.under_way += 1;
        self.gets.push(Get { key, asker });
    }

    /// Whether no operation is waiting.
    pub(super) const fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    /// The number of writes that the next run proposes.
    #[inline]
    pub(super) const fn requests(&self) -> usize {
        self.ends.len()
    }

    /// Moves out the writes to propose. Their entries share one copy of their bytes, because the
    /// log drops them at about the same time.
    pub(super) fn take_requests(&mut self, entries: &mut Vec<Entry>) {
        if self.ends.is_empty() {
            return;
        }
        let shared = self.copies.take();
        if self.ends.len() == 1 {
            self.ends.clear();
            return entries.push(shared.into_write());
        }
        let mut begin = 0;
        entries.extend(self.ends.drain(..).map(|end| {
            let place = std::mem::replace(&mut begin, end)..end;
            shared.write(place)
        }));
    }

    /// Whether some gets wait for a question.
    pub(super) const fn has_gets(&self) -> bool {
        !self.gets.is_empty()
    }

    /// Notes that the next `count` writes are in the log, after index `last`.
    pub(super) fn on_appended(&mut self, last: u64, count: usize) {
        let indices = last + 1..;
        for it in indices.zip(self.askers.drain(..count)) {
            self.appended.push_back(it);
        }
    }

    /// Notes that Raft did not take the next writes.
    pub(super) fn on_dropped(&mut self, count: usize) {
        self.under_way -= count;
        for write in self.askers.drain(..count) {
            self.bytes_under_way -= write.bytes;
            self.busy.push(write.asker);
        }
    }

    /// Answers the write whose entry was applied, if this leader took it.
    pub(super) fn on_applied(&mut self, index: u64, answer: Answer, out: &mut Output<A>) {
        if self
            .appended
            .front()
            .is_some_and(|(first, _)| *first == index)
            && let Some((_, write)) = self.appended.pop_front()
        {
            self.under_way -= 1;
            self.bytes_under_way -= write.bytes;
            out.answers.push((write.asker, answer));
        }
    }

    /// Asks one question for all gets that wait for one, and returns its number.
    pub(super) fn ask(&mut self) -> Option<u64> {
        if self.gets.is_empty() {
            return None;
        }
        self.questions += 1;
        let gets = std::mem::take(&mut self.gets);
        self.asked.insert(self.questions, gets);
        Some(self.questions)
    }

    /// Notes that a majority has confirmed the leader, and that the question got this index.
    pub(super) fn on_confirmed(&mut self, question: &[u8], index: u64) {
        let number = question.try_into().map(u64::from_le_bytes);
        let gets = number.ok().and_then(|number| self.asked.remove(&number));
        if let Some(gets) = gets {
            self.confirmed.push_back((index, gets));
        }
    }

    /// Confirms all gets without a question.
    pub(super) fn confirm_all(&mut self, index: u64) {
        let gets = std::mem::take(&mut self.gets);
        if !gets.is_empty() {
            self.confirmed.push_back((index, gets));
        }
    }

    /// Ends the gets whose index is applied.
    pub(super) fn answer_gets(&mut self, applied: u64, out: &mut Output<A>) {
        while let Some((index, _)) = self.confirmed.front()
            && *index <= applied
            && let Some((_, gets)) = self.confirmed.pop_front()
        {
            self.under_way -= gets.len();
            out.gets
                .extend(gets.into_iter().map(|it| (it.asker, it.key)));
        }
    }

    /// Answers operations that are left from an earlier term. Operations that have arrived since,
    /// and are not in the log yet, continue in the term in which this node leads now.
    pub(super) fn on_won(&mut self, out: &mut Output<A>) {
        let writes = self.appended.drain(..).map(|(_, write)| {
            self.bytes_under_way -= write.bytes;
            write.asker
        });
        let asked = std::mem::take(&mut self.asked).into_values();
        let confirmed = self.confirmed.drain(..).map(|(_, gets)| gets);
        let gets = asked.chain(confirmed).flatten().map(|get| get.asker);
        let before = out.answers.len();
        out.answers.extend(writes.chain(gets).map(moved));
        self.under_way -= out.answers.len() - before;
    }

    /// Answers all operations, because this node no longer leads.
    pub(super) fn on_lost(&mut self, out: &mut Output<A>) {
        if self.under_way == 0 {
            return;
        }
        self.on_won(out);
        (self.under_way, self.bytes_under_way) = (0, 0);
        self.copies.clear();
        self.ends.clear();
        let writes = self.askers.drain(..).map(|write| write.asker);
        let gets = self.gets.drain(..).map(|get| get.asker);
        out.answers.extend(writes.chain(gets).map(moved));
    }

    /// Answers the operations for which the leader or its disk had no room.
    pub(super) fn refuse(&mut self, out: &mut Output<A>) {
        if self.busy.is_empty() && self.full.is_empty() {
            return;
        }
        let busy = self.busy.drain(..).map(|asker| (asker, Answer::Busy));
        let full = self.full.drain(..).map(|asker| (asker, Answer::Full));
        out.answers.extend(busy.chain(full));
    }
}

const fn moved<A>(asker: A) -> (A, Answer) {
    (asker, Answer::Moved(Vec::new()))
}
