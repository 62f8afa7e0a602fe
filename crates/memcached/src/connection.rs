//! A client's connection: bytes in, operations, answers in order, bytes out.
//!
//! Invariants: a command's bytes stay in the input until it has run or become an errand, and only
//! an errand has a copy; an item is shown as a whole, as it was at one moment; no command runs
//! while [`OUTPUT_MARK`] bytes wait for the client, or while the connection waits for the answers
//! to [`MAX_WAITING`] errands or to errands of [`INPUT_MARK`] bytes; the input has at most one
//! command and [`INPUT_MARK`] more bytes. The result does not depend on how the bytes were cut.

mod access;
mod copying;
mod fetch;
mod input;
mod output;
mod run;

use std::sync::Arc;

use dunlin_store::{Cursor, Seconds, Writing};

use crate::errand::Errand;
use crate::limits::{INPUT_MARK, MAX_KEYS_LINE, MAX_TURN, MAX_WAITING, OUTPUT_MARK};
use crate::operation::Expiry;
use crate::render::{NO_MEMORY, line as say, report as report_as};
use crate::report::Report;
use crate::server::Server;
use crate::users::Users;

use copying::{Asked, Copying};
use input::Input;
use output::{Form, Output};

/// The answer to a command whose errand is lost.
const LOST: &str = "SERVER_ERROR another thread has not answered; the command may have run";

/// The answer to a command for whose rest there is no memory.
const NO_ROOM: &str = "SERVER_ERROR out of memory reading request";

/// A connection.
#[derive(Debug)]
pub struct Connection {
    input: Input,
    output: Output,
    phase: Phase,
    /// The write of [`Phase::Writing`].
    writing: Writing,
    /// The value of [`Phase::Copying`].
    copying: Option<Box<Copying>>,
    /// How often the command at the front has started over.
    restarts: u8,
    /// Lines at the front whose items are already being prefetched.
    announced: usize,
    /// The users as which a client may authenticate; `None` once it has, or if it need not.
    users: Option<Arc<Users>>,
}

/// The next thing that a connection needs in order to continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wants {
    /// Bytes from the client.
    Input,
    /// The client must take bytes first.
    Output,
    /// Answers of other partitions must arrive first.
    Answers,
    /// Another turn: it could continue, but other connections get their turns first.
    Turn,
    /// Nothing: it closes once its output is sent.
    End,
}

/// The state that determines how the connection uses the next bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Determines the client's protocol.
    Opening,
    /// Reads a line.
    Line,
    /// Gets the item of each key in the line at the front.
    Keys(Reading),
    /// Waits for the value of the line at the front; line and value together have `need` bytes.
    Value { need: usize },
    /// Writes the complete value of the line at the front, in parts.
    Writing { need: usize },
    /// Copies the value that was asked for, in slices.
    Copying(Asked),
    /// Discards the rest of a value.
    Skip { left: usize },
    /// Lists the items of this partition from this place on, and then the items of later
    /// partitions.
    Dump(u16, Cursor),
    /// Waits for a part of this partition's list.
    DumpDue(u16),
    /// Takes no more commands.
    End,
}

/// How much of a line of keys was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reading {
    /// The start of the next key, or of spaces before it.
    at: usize,
    /// The end of the line, and the start of the next one.
    end: usize,
    next_line: usize,
    with_version: bool,
    touch: Option<Expiry>,
    /// Keys whose items are already being prefetched.
    announced: usize,
}

impl Connection {
    /// Opens a connection. If there are `users`, the client must first authenticate as one of them.
    #[must_use]
    pub fn new(users: Option<Arc<Users>>) -> Self {
        Self {
            input: Input::default(),
            output: Output::default(),
            phase: Phase::Opening,
            writing: Writing::default(),
            copying: None,
            restarts: 0,
            announced: 0,
            users,
        }
    }

    /// The number of bytes that the connection can take now.
    #[must_use]
    pub fn room(&self) -> usize {
        let most = match self.phase {
            Phase::End => return usize::MAX,
            Phase::Value { need } | Phase::Writing { need } => need.max(INPUT_MARK),
            Phase::Line if self.input.may_be_long() => MAX_KEYS_LINE + 2,
            _ => INPUT_MARK,
        };
        most.saturating_sub(self.input.len())
    }

    /// Takes bytes from the client, as many as there is room for, and returns their number.
    /// [`Self::run`] runs the commands in them. After the end of the connection, it discards the
    /// bytes.
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        let len = bytes.len().min(self.room());
        if self.phase != Phase::End {
            self.input.push(&bytes[..len]);
        }
        len
    }

    /// Bytes of a long command that has begun to arrive, and of commands that wait for other
    /// partitions: about 1 MiB of each at most.
    #[must_use]
    pub fn pending(&self) -> usize {
        let is_long = match self.phase {
            Phase::Value { .. } | Phase::Writing { .. } => true,
            Phase::Line => self.input.may_be_long(),
            Phase::Keys(line) | Phase::Copying(Asked::Key(_, line)) => line.next_line > INPUT_MARK,
            _ => false,
        };
        self.waiting() + if is_long { self.input.len() } else { 0 }
    }

    /// Bytes of commands that wait for other partitions.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.output.waiting().1
    }

    /// Bytes of all commands that have left the input, since the connection was opened. It changes
    /// when a long command has arrived completely and has run, or has become an errand.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.input.used()
    }

    /// Answers that there is no memory for the rest of a command, with memcached's error, and takes
    /// no more commands.
    pub fn refuse_rest(&mut self, server: &mut impl Server) {
        self.abandon(server);
        self.output.close_list();
        say(NO_ROOM, self.output.end());
        self.finish();
    }

    /// Abandons a write in progress, because the connection ends. The owner calls this before it
    /// drops the connection.
    pub fn abandon(&mut self, server: &mut impl Server) {
        server
            .partition()
            .abandon(std::mem::take(&mut self.writing));
    }

    /// Runs commands, at most [`MAX_TURN`] operations or a slice of a long value, and returns the
    /// next thing that the connection needs in order to continue.
    pub fn run(&mut self, server: &mut impl Server, now: Seconds) -> Wants {
        for _ in 0..MAX_TURN {
            self.output.settle();
            if let Some(wants) = self.obstacle() {
                return wants;
            }
            if !self.step(server, now) {
                return Wants::Input;
            }
            if matches!(self.phase, Phase::Writing { .. } | Phase::Copying(_)) {
                return Wants::Turn;
            }
        }
        self.obstacle().unwrap_or(Wants::Turn)
    }

    /// The partition of each errand that waits to be sent, once for each errand.
    pub fn destinations(&self) -> impl Iterator<Item = u16> {
        self.output.destinations()
    }

    /// The next errand to a partition, in the order of the commands.
    pub fn next_errand(&mut self, partition: u16) -> Option<Errand> {
        self.output.next_errand(partition)
    }

    /// Takes an errand back that has not run. Of several errands, the caller gives the last one
    /// back first.
    pub fn give_back(&mut self, errand: Errand) {
        self.output.give_back(errand);
    }

    /// Takes the answer to an errand. `None`: it will not arrive, so the client gets an error, and
    /// the command may have run.
    pub fn on_answer(
        &mut self,
        errand: &Errand,
        answer: Option<&[u8]>,
        server: &mut impl Server,
        now: Seconds,
    ) {
        let Some(mut whole) = self.output.on_answer(errand, answer) else {
            return;
        };
        let was_over = self.phase == Phase::End;
        let mut text = std::mem::take(&mut whole.text);
        match &mut whole.form {
            Form::Text { is_silent: true } if whole.is_lost => {}
            // The client wants no answer, or has already received an error.
            Form::Fixed(bytes) if bytes.is_empty() => {}
            Form::List => text = self.on_list(&text, server),
            Form::Item if whole.is_lost => self.on_lost_item(&whole, LOST, &mut text),
            // The item should get an expiry, for which its partition has no memory.
            Form::Item if text.starts_with(b"SERVER_ERROR") => {
                text.clear();
                self.on_lost_item(&whole, NO_MEMORY, &mut text);
            }
            _ if whole.is_lost => say(LOST, &mut text),
            Form::Text { .. } | Form::Item => {}
            Form::Fixed(bytes) => text = std::mem::take(bytes),
            Form::Stats(topic, figures) => {
                let report = Report::new(**figures, server.process(), now);
                report_as(*topic, &report, &mut text);
            }
        }
        self.output.write(&whole, text);
        // The item of an earlier command may be lost while the value of a later one is written.
        if self.phase == Phase::End && !was_over {
            self.abandon(server);
        }
    }

    /// Bytes for the client.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.output.ready()
    }

    /// Forgets bytes of the output that the client has taken.
    pub fn sent(&mut self, len: usize) {
        self.output.sent(len);
    }

    /// Whether each command that has run is answered and the client has all answers.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.output.is_empty()
    }

    /// Whether the client has everything and the connection can be closed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::End && self.is_settled()
    }

    /// Frees the memory of empty buffers. For connections that have had no command for a while.
    pub fn trim(&mut self) {
        self.input.trim();
        self.output.trim();
    }

    /// The reason why no command can run now, if there is one.
    fn obstacle(&self) -> Option<Wants> {
        if self.phase == Phase::End {
            return Some(Wants::End);
        }
        if self.output.len() >= OUTPUT_MARK {
            // Bytes that follow an outstanding answer cannot leave yet.
            let is_due = self.output.ready().is_empty();
            return Some(if is_due {
                Wants::Answers
            } else {
                Wants::Output
            });
        }
        let (waiting, bytes) = self.output.waiting();
        let is_full = waiting >= MAX_WAITING || bytes >= INPUT_MARK;
        let is_due = is_full || matches!(self.phase, Phase::DumpDue(_));
        is_due.then_some(Wants::Answers)
    }
}

#[cfg(test)]
mod tests;
