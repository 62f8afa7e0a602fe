//! Answers in the order of their commands.
//!
//! Bytes are ready if every answer before them has come. After them is a list of answers that are
//! due, and of the bytes between those.

use std::collections::VecDeque;

use dunlin_store::Seconds;

use crate::command::{Ask, Command, parse};
use crate::limits::{IDLE_BYTES, OUTPUT_MARK};
use crate::operation::{Answer, DumpCursor, OperationTicket};
use crate::render::render;
use crate::words::each;

#[derive(Default, Debug)]
pub(super) struct Output {
    ready: Vec<u8>,
    sent: usize,
    later: VecDeque<Piece>,
    waiting: usize,
}

#[derive(Debug)]
enum Piece {
    /// An answer that is due. The line determines its form.
    Due {
        ticket: OperationTicket,
        line: Box<[u8]>,
    },
    Bytes(Vec<u8>),
}

impl Output {
    pub(super) fn ready(&self) -> &[u8] {
        &self.ready[self.sent..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready().is_empty() && self.later.is_empty()
    }

    /// All bytes that wait for the client.
    pub(super) fn len(&self) -> usize {
        let later = self.later.iter().map(|piece| match piece {
            Piece::Due { .. } => 0,
            Piece::Bytes(bytes) => bytes.len(),
        });
        self.ready().len() + later.sum::<usize>()
    }

    /// How many answers are due.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
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
        }
    }

    pub(super) fn trim(&mut self) {
        if self.is_empty() {
            self.ready.shrink_to(IDLE_BYTES);
            self.later.shrink_to(0);
        }
    }

    /// Memory in use, in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.ready.capacity()
    }

    /// The buffer to which the next answer is written.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        if matches!(self.later.back(), Some(Piece::Due { .. })) {
            self.later.push_back(Piece::Bytes(Vec::new()));
        }
        match self.later.back_mut() {
            Some(Piece::Bytes(bytes)) => bytes,
            _ => &mut self.ready,
        }
    }

    /// Leaves a place for an answer that comes later.
    pub(super) fn wait(&mut self, ticket: OperationTicket, line: Box<[u8]>) {
        self.waiting += 1;
        self.later.push_back(Piece::Due { ticket, line });
    }

    /// Writes an answer in its place, and returns where a dump continues. Ignores an answer that is
    /// not due.
    pub(super) fn on_answer(
        &mut self,
        ticket: OperationTicket,
        answer: &Answer<'_>,
        now: Seconds,
    ) -> Option<DumpCursor> {
        let is_it =
            |piece: &Piece| matches!(piece, Piece::Due { ticket: due, .. } if *due == ticket);
        let place = self.later.iter().position(is_it)?;
        let mut bytes = Vec::new();
        let Piece::Due { line, .. } = &self.later[place] else {
            return None;
        };
        let next = write(line, answer, now, &mut bytes);
        self.later[place] = Piece::Bytes(bytes);
        self.waiting -= 1;
        while let Some(Piece::Bytes(bytes)) = self.later.front() {
            self.ready.extend_from_slice(bytes);
            self.later.pop_front();
        }
        next
    }
}

/// Writes the answer to a line.
fn write(line: &[u8], answer: &Answer<'_>, now: Seconds, out: &mut Vec<u8>) -> Option<DumpCursor> {
    match parse(line, now) {
        Command::Ask(ask) => render(&ask, answer, now, out),
        Command::Keys(keys) => {
            let ask = Ask::Get {
                key: each(line).nth(1).unwrap_or_default(),
                with_version: keys.with_version,
                touch: None,
            };
            render(&ask, answer, now, out);
        }
        Command::Dump => return dumped(answer, out),
        // The deletion before a value that is too large has no answer.
        Command::Skip(_) | Command::Say(_) | Command::Quiet | Command::Close => {}
    }
    None
}

/// Writes a part of a list of items, and its end.
pub(super) fn dumped(answer: &Answer<'_>, out: &mut Vec<u8>) -> Option<DumpCursor> {
    let Answer::Dumped(lines, next) = answer else {
        return None;
    };
    out.extend_from_slice(lines);
    if next.is_none() {
        out.extend_from_slice(b"END\r\n");
    }
    *next
}
