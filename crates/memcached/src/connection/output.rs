//! Answers in the order of their commands, and the errands to the partitions that produce some of
//! them.
//!
//! Bytes are ready if every answer before them has arrived. They are followed by a list of
//! outstanding answers and the bytes between those. An errand leaves with the next burst to its
//! partition. If many bytes follow the first outstanding answer, only that answer's errands leave,
//! and if many bytes are ready, no errand leaves.
//!
//! The items of a text `get` whose keys belong to several threads are one answer: their bytes are
//! held back until all are there, so that an error can still replace them. If an answer is too long
//! to be held back, an error after its beginning can only end the connection. While a long value of
//! another thread is fetched, no errand of a later command leaves.

use std::collections::VecDeque;

use dunlin_store::SLICE;

use crate::command::Topic;
use crate::connection::fetch::{Fetch, Step};
use crate::errand::Errand;
use crate::figures::Figures;
use crate::limits::{IDLE_BYTES, OUTPUT_MARK};
use crate::operation::OperationTicket;

#[derive(Default, Debug)]
pub(super) struct Output {
    ready: Vec<u8>,
    sent: usize,
    later: VecDeque<Piece>,
    tickets: u64,
    /// Errands that have not left.
    errands: VecDeque<Errand>,
    /// Errands whose answers are outstanding, and their bytes.
    waiting: usize,
    waiting_bytes: usize,
    /// Outstanding answers whose values are fetched in slices.
    fetching: usize,
    /// The last list has begun but not ended.
    is_list_open: bool,
}

#[derive(Debug)]
enum Piece {
    Due(Due),
    Bytes(Vec<u8>),
    /// The beginning of a list, whose bytes are held back.
    Open,
    /// The end of a list.
    Close,
}

/// The fate of a list when an item of it is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// An error replaces the whole list. Some of its keys may not have been read yet.
    Whole { has_keys: bool },
    /// Some of the list has left, so nothing may follow.
    Cut,
}

/// A place for an answer.
#[derive(Debug)]
struct Due {
    ticket: OperationTicket,
    /// The number of partitions that have not answered.
    left: usize,
    is_lost: bool,
    form: Form,
    /// The long value of the answer, if it has one and another thread has it.
    fetch: Option<Box<Fetch>>,
}

/// The use of the answers.
#[derive(Debug)]
pub(super) enum Form {
    /// They are for the client. A silent command does not even show errors.
    Text { is_silent: bool },
    /// They are an item of a list.
    Item,
    /// They are discarded, and the client gets these bytes.
    Fixed(Vec<u8>),
    /// They are figures, which are added to these.
    Stats(Topic, Box<Figures>),
    /// They are a part of a list.
    List,
}

/// The answers of all partitions to a command, before they are written to the output.
#[derive(Debug)]
pub(super) struct Whole {
    place: usize,
    /// Whether a partition has not answered.
    pub(super) is_lost: bool,
    pub(super) form: Form,
    /// The received bytes that are for the client.
    pub(super) text: Vec<u8>,
}

impl Output {
    pub(super) fn ready(&self) -> &[u8] {
        &self.ready[self.sent..]
    }

    /// Whether no answer is outstanding and the client has everything.
    pub(super) fn is_empty(&self) -> bool {
        self.ready().is_empty() && self.later.is_empty()
    }

    /// All bytes that wait for the client.
    pub(super) fn len(&self) -> usize {
        let later = self.later.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Due(_) | Piece::Open | Piece::Close => 0,
        });
        self.ready().len() + later.sum::<usize>()
    }

    /// The number of outstanding answers of other partitions, and the bytes of their errands.
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.waiting, self.waiting_bytes)
    }

    pub(super) fn sent(&mut self, len: usize) {
        assert!(
            len <= self.ready().len(),
            "the client has bytes that were not there"
        );
        self.sent += len;
        if self.sent == self.ready.len() {
            self.ready.clear();
            self.sent = 0;
            if self.ready.capacity() > 4 * OUTPUT_MARK {
                self.ready.shrink_to(OUTPUT_MARK);
            }
            self.settle();
        }
    }

    /// Appends bytes. Does not copy them if they are many.
    pub(super) fn push(&mut self, bytes: Vec<u8>) {
        self.later.push_back(Piece::Bytes(bytes));
        self.settle();
    }

    pub(super) fn trim(&mut self) {
        if self.is_empty() {
            self.ready.shrink_to(IDLE_BYTES);
            self.later.shrink_to(0);
            self.errands.shrink_to(0);
        }
    }

    /// Memory in use, in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.ready.capacity()
    }

    /// The buffer to which the next answer is written.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        let may_append = match self.later.back() {
            None => true,
            // This is a long value. Appending to it would make its memory grow, and so copy it.
            Some(Piece::Bytes(bytes)) => bytes.len() <= SLICE,
            Some(_) => false,
        };
        if !may_append {
            self.later.push_back(Piece::Bytes(Vec::new()));
        }
        match self.later.back_mut() {
            Some(Piece::Bytes(bytes)) => bytes,
            _ => &mut self.ready,
        }
    }

    /// Begins a list.
    pub(super) fn open_list(&mut self) {
        self.is_list_open = true;
        self.later.push_back(Piece::Open);
    }

    /// Ends the list, if one has begun. The list becomes ready only with the next [`Self::settle`],
    /// because a caller may know the place of an answer in it.
    pub(super) fn close_list(&mut self) {
        if std::mem::take(&mut self.is_list_open) {
            self.later.push_back(Piece::Close);
        }
    }

    /// Discards the list of a lost item, and the answers that are outstanding for it.
    pub(super) fn refuse_list(&mut self, item: &Whole) -> Refused {
        let is_mark = |piece: &Piece| matches!(piece, Piece::Open | Piece::Close);
        let begin = self.later.range(..item.place).rposition(is_mark);
        let begin = begin.filter(|begin| matches!(self.later[*begin], Piece::Open));
        let Some(begin) = begin else {
            self.forget(item.place, self.later.len());
            return Refused::Cut;
        };
        let rest = self.later.range(item.place..);
        let end = rest.take_while(|piece| !is_mark(piece)).count() + item.place;
        self.forget(begin + 1, end);
        Refused::Whole {
            has_keys: end == self.later.len(),
        }
    }

    /// Discards the bytes between two places, and the answers that are outstanding there.
    fn forget(&mut self, begin: usize, end: usize) {
        for piece in self.later.range_mut(begin..end) {
            match piece {
                Piece::Bytes(bytes) => bytes.clear(),
                Piece::Due(due) => due.form = Form::Fixed(Vec::new()),
                Piece::Open | Piece::Close => {}
            }
        }
    }

    /// Leaves a place for the answers to the errands that `errands` makes with a ticket.
    pub(super) fn send<I: Iterator<Item = Errand>>(
        &mut self,
        form: Form,
        errands: impl FnOnce(OperationTicket) -> I,
    ) {
        self.tickets += 1;
        let ticket = OperationTicket(self.tickets);
        let before = self.errands.len();
        self.errands.extend(errands(ticket));
        let new = self.errands.range(before..);
        let left = new.len();
        self.waiting_bytes += new.map(|errand| errand.bytes().len()).sum::<usize>();
        self.waiting += left;
        self.later.push_back(Piece::Due(Due {
            ticket,
            left,
            is_lost: false,
            form,
            fetch: None,
        }));
    }

    /// The partitions of the errands that may leave now.
    pub(super) fn destinations(&self) -> impl Iterator<Item = u16> {
        let last = self.last_to_leave();
        let may_leave = move |errand: &&Errand| errand.ticket() <= last;
        self.errands.iter().filter(may_leave).map(Errand::partition)
    }

    /// The next errand that may go to a partition.
    pub(super) fn next_errand(&mut self, partition: u16) -> Option<Errand> {
        let last = self.last_to_leave();
        let is_it = |it: &Errand| it.partition() == partition && it.ticket() <= last;
        let place = self.errands.iter().position(is_it)?;
        self.errands.remove(place)
    }

    /// The last ticket whose errands may leave.
    fn last_to_leave(&self) -> OperationTicket {
        let due = |piece: &Piece| match piece {
            Piece::Due(due) => Some(due.ticket),
            Piece::Bytes(_) | Piece::Open | Piece::Close => None,
        };
        let last = match self.later.iter().find_map(due) {
            _ if self.len() < OUTPUT_MARK => OperationTicket(u64::MAX),
            Some(first) if self.ready().len() < OUTPUT_MARK => first,
            _ => OperationTicket(0),
        };
        let fetched = |piece: &Piece| match piece {
            Piece::Due(due) => due.fetch.as_ref().map(|_| due.ticket),
            Piece::Bytes(_) | Piece::Open | Piece::Close => None,
        };
        match self.fetching {
            0 => last,
            _ => self
                .later
                .iter()
                .find_map(fetched)
                .unwrap_or(last)
                .min(last),
        }
    }

    /// Takes an errand back that has not run. Of several errands, the caller gives the last one
    /// back first.
    pub(super) fn give_back(&mut self, errand: Errand) {
        self.errands.push_front(errand);
    }

    /// Takes the answer to an errand; `None` if it will not arrive. With the last answer of a
    /// ticket, the whole answer to the client is complete, and [`Self::write`] takes it.
    pub(super) fn on_answer(&mut self, errand: &Errand, answer: Option<&[u8]>) -> Option<Whole> {
        let is_it =
            |piece: &Piece| matches!(piece, Piece::Due(due) if due.ticket == errand.ticket());
        let place = self.later.iter().position(is_it)?;
        let piece = &mut self.later[place];
        let Piece::Due(due) = piece else {
            return None;
        };
        self.waiting -= 1;
        self.waiting_bytes -= errand.bytes().len();
        due.left -= 1;
        let (mut text, was_fetched) = (Vec::new(), due.fetch.is_some());
        if let Some(next) = due.on_answer(errand, answer, &mut text) {
            due.left += 1;
            self.fetching += usize::from(!was_fetched);
            self.waiting += 1;
            self.waiting_bytes += next.bytes().len();
            self.errands.push_front(next);
        }
        if due.left > 0 {
            return None;
        }
        self.fetching -= usize::from(was_fetched);
        match std::mem::replace(piece, Piece::Bytes(Vec::new())) {
            Piece::Due(Due { is_lost, form, .. }) => Some(Whole {
                place,
                is_lost,
                form,
                text,
            }),
            Piece::Bytes(_) | Piece::Open | Piece::Close => None,
        }
    }

    /// Writes bytes for the client at the place of a whole answer.
    pub(super) fn write(&mut self, place: &Whole, bytes: Vec<u8>) {
        self.later[place.place] = Piece::Bytes(bytes);
        self.settle();
    }

    /// Makes bytes ready that follow no outstanding answer. A long value waits until the client has
    /// all bytes before it, because it would otherwise have to be copied.
    pub(super) fn settle(&mut self) {
        loop {
            let is_free = self.ready().is_empty();
            match self.later.front() {
                Some(Piece::Bytes(bytes)) if bytes.len() > SLICE && !is_free => return,
                Some(Piece::Open) if !self.may_leave() => return,
                Some(Piece::Due(_)) | None => return,
                Some(Piece::Bytes(_) | Piece::Open | Piece::Close) => {}
            }
            match self.later.pop_front() {
                Some(Piece::Bytes(bytes)) if bytes.len() > SLICE => {
                    self.ready = bytes;
                    self.sent = 0;
                }
                Some(Piece::Bytes(bytes)) => self.ready.extend_from_slice(&bytes),
                _ => {}
            }
        }
    }

    /// Whether the first list is complete, or too long to be held back any longer.
    fn may_leave(&self) -> bool {
        let mut held = 0;
        for piece in self.later.iter().skip(1) {
            match piece {
                Piece::Bytes(bytes) => held += bytes.len(),
                Piece::Close => return true,
                Piece::Due(_) | Piece::Open => break,
            }
        }
        held >= OUTPUT_MARK
    }
}

impl Due {
    /// Takes the answer to an errand, and appends bytes for the client. Returns the errand that
    /// must follow before the answer is complete.
    fn on_answer(
        &mut self,
        errand: &Errand,
        answer: Option<&[u8]>,
        text: &mut Vec<u8>,
    ) -> Option<Errand> {
        let is_taken = match self.form {
            Form::Text { .. } | Form::Item => match Fetch::step(&mut self.fetch, errand, answer) {
                Step::Ask(next) => return Some(next),
                Step::End(bytes) => {
                    *text = bytes;
                    true
                }
                Step::Lost => false,
            },
            _ => answer.is_some_and(|answer| self.form.take(answer, text)),
        };
        self.is_lost |= !is_taken;
        None
    }
}

impl Form {
    /// Takes an answer, and appends bytes for the client. False: it is not an answer of this form.
    fn take(&mut self, answer: &[u8], text: &mut Vec<u8>) -> bool {
        match self {
            Self::Text { .. } | Self::Item | Self::List => text.extend_from_slice(answer),
            Self::Fixed(_) => {}
            Self::Stats(_, sum) => match Figures::read(answer) {
                Some(figures) => sum.add(&figures),
                None => return false,
            },
        }
        true
    }
}
