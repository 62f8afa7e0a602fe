//! A client: its socket and its connection.
//!
//! Readiness is kept from one event to the next, because the kernel reports only changes. A turn
//! reads the socket once, runs commands up to the limit of a turn, and writes until everything is
//! written, the socket is full or the turn has written enough. It costs two system calls: a read
//! that does not fill its buffer has emptied the socket, so no further read is needed.
//!
//! If the clients of all threads have sent too many bytes of incomplete commands, the socket of one
//! in the middle of a long command is read only as far as its [`Share`] allows.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use dunlin_memcached::{Connection, Errand, OUTPUT_MARK, Server, Wants};
use dunlin_store::Seconds;
use mio::event::Event;

use crate::floor::Seat;
use crate::hall::{Guest, Hall};
use crate::lanes::End;
use crate::share::{Load, Share};
use crate::stream::Stream;

/// Seconds in which a client whose connection ends can read the last answer. Bytes from the
/// client are discarded meanwhile: if a socket is closed with unread bytes, the answer is lost.
const FAREWELL: u32 = 2;

/// The most bytes that one turn writes.
const MOST_WRITTEN: usize = 2 * OUTPUT_MARK;

/// The most reads in one turn that discard bytes.
const THROWN: usize = 16;

/// A client.
#[derive(Debug)]
pub(crate) struct Client {
    stream: Stream,
    connection: Connection,
    guest: Arc<Guest>,
    may_read: bool,
    may_write: bool,
    /// Whether the client sends no more: a read after the last byte will return 0.
    has_hung_up: bool,
    /// Whether a read has returned 0.
    is_at_end: bool,
    /// When its output ended; `None` before that.
    leaves: Option<Seconds>,
    is_trimmed: bool,
    /// Its part of the memory for incomplete commands.
    share: Share,
    /// Whether the next turn refuses the rest of the command.
    is_late: bool,
    /// When the rest of a command was refused; `None` before that.
    refused: Option<Seconds>,
    /// Whether the client waits until others have completed their commands.
    pub(crate) is_held_back: bool,
    /// Whether it is in the queue for turns.
    pub(crate) is_queued: bool,
}

/// The next action after a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// The client gets another turn.
    Turn,
    /// The client waits for its socket, or for an answer of another partition.
    Rest,
    /// The client waits until others have completed their commands.
    HeldBack,
    /// The connection is closed.
    Close,
}

/// The result of a visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Visit {
    /// The client stays as it is.
    Stay,
    /// The client gets a turn, which ends its connection with an error.
    Turn,
    /// The connection is closed.
    Close,
}

impl Client {
    pub(crate) fn new(stream: Stream, guest: Arc<Guest>, seat: Seat, hall: &Hall) -> Self {
        Self {
            stream,
            connection: Connection::new(hall.users()),
            may_read: true,
            may_write: true,
            has_hung_up: false,
            is_at_end: false,
            leaves: None,
            is_trimmed: true,
            share: Share::new(seat, guest.last_command()),
            is_late: false,
            refused: None,
            is_held_back: false,
            is_queued: false,
            guest,
        }
    }

    pub(crate) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    pub(crate) fn guest(&self) -> &Guest {
        &self.guest
    }

    /// Takes what the kernel reports about the socket.
    pub(crate) fn on_event(&mut self, event: &Event) {
        self.may_read |= event.is_readable() || event.is_error();
        self.may_write |= event.is_writable() || event.is_error();
        self.has_hung_up |= event.is_read_closed() || event.is_error();
    }

    /// Frees the memory of a client that has been idle for more than a second. Ends a connection
    /// whose client has had the time to read the last answer, or is late in the middle of a command
    /// for which there is no room.
    pub(crate) fn on_second(&mut self, hall: &Hall, now: Seconds) -> Visit {
        let idle = now.0.saturating_sub(self.guest.last_command().0);
        if idle > 1 && !self.is_trimmed {
            self.connection.trim();
            self.is_trimmed = true;
        }
        if let Some(since) = self.leaves.or(self.refused) {
            return match now.0.saturating_sub(since.0) < FAREWELL {
                true => Visit::Stay,
                false => Visit::Close,
            };
        }
        let is_waiting = self.is_held_back || self.is_queued;
        self.is_late = self.share.is_late(hall.floor(), is_waiting, now);
        match self.is_late {
            true => Visit::Turn,
            false => Visit::Stay,
        }
    }

    /// Reads, runs commands and writes.
    pub(crate) fn turn(
        &mut self,
        server: &mut impl Server,
        (hall, buffer): (&Hall, &mut [u8]),
        now: Seconds,
    ) -> After {
        if self.leaves.is_some() {
            return self.throw_away(buffer);
        }
        if std::mem::take(&mut self.is_late) {
            self.connection.refuse_rest(server);
            self.refused = Some(now);
        }
        let (wanted, load) = (self.wanted(), self.load());
        let room = self.share.on_turn(hall, wanted, load, now);
        let is_held_back = room.is_none();
        let room = room.unwrap_or(0).min(buffer.len());
        if self.read(hall, &mut buffer[..room], now).is_err() {
            self.connection.abandon(server);
            return After::Close;
        }
        let wants = self.connection.run(server, now);
        if self.write(hall, now).is_err() {
            self.connection.abandon(server);
            return After::Close;
        }
        if matches!(wants, Wants::Answers | Wants::Turn) {
            self.share.on_work(now);
        }
        let after = self.after(wants, is_held_back, now);
        let is_held_back = after == After::HeldBack;
        self.share.on_turn_end(hall, self.load(), is_held_back);
        after
    }

    /// The next action after a turn that ended with this wish.
    fn after(&mut self, wants: Wants, is_held_back: bool, now: Seconds) -> After {
        if self.connection.is_over() {
            self.stream.end_output();
            self.leaves = Some(now);
            return After::Turn;
        }
        let is_sent = self.connection.output().is_empty();
        let is_settled = self.connection.is_settled();
        match wants {
            Wants::Input if self.is_at_end && is_settled => After::Close,
            Wants::Turn => After::Turn,
            Wants::Input if self.may_read && !self.is_at_end && !is_held_back => After::Turn,
            Wants::Output if is_sent => After::Turn,
            _ if self.may_write && !is_sent => After::Turn,
            Wants::Input if is_held_back => After::HeldBack,
            _ => After::Rest,
        }
    }

    /// Notes that the client leaves.
    pub(crate) fn on_close(&mut self, hall: &Hall) {
        self.share.on_close(hall);
    }

    fn load(&self) -> Load {
        Load {
            used: self.connection.used(),
            pending: self.connection.pending(),
            waiting: self.connection.waiting(),
        }
    }

    /// Bytes that the connection could take now from the socket.
    fn wanted(&self) -> usize {
        let is_full = self.connection.output().len() >= OUTPUT_MARK;
        match self.may_read && !self.is_at_end && !is_full {
            true => self.connection.room(),
            false => 0,
        }
    }

    /// The partitions for which errands wait.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = u16> {
        self.connection.destinations()
    }

    pub(crate) fn next_errand(&mut self, partition: u16) -> Option<Errand> {
        self.connection.next_errand(partition)
    }

    pub(crate) fn on_end(
        &mut self,
        errand: Errand,
        end: End<'_>,
        server: &mut impl Server,
        now: Seconds,
    ) {
        match end {
            End::Answer(answer) => self
                .connection
                .on_answer(&errand, Some(answer), server, now),
            End::Lost => self.connection.on_answer(&errand, None, server, now),
            End::NotRun => self.connection.give_back(errand),
        }
    }

    /// Reads once, if there is room in the buffer.
    fn read(&mut self, hall: &Hall, buffer: &mut [u8], now: Seconds) -> std::io::Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        match self.stream.read(buffer) {
            Ok(0) => self.is_at_end = true,
            Ok(len) => {
                self.may_read = len == buffer.len() || self.has_hung_up;
                self.connection.receive(&buffer[..len]);
                self.is_trimmed = false;
                self.guest.on_command(now);
                self.share.on_bytes(len, now);
                hall.on_read(len);
            }
            Err(error) => self.may_read = check(error)?,
        }
        Ok(())
    }

    /// Writes until everything is written, the socket is full, or this turn has written enough,
    /// because the kernel copies the bytes.
    fn write(&mut self, hall: &Hall, now: Seconds) -> std::io::Result<()> {
        let mut left = MOST_WRITTEN;
        while self.may_write && left > 0 && !self.connection.output().is_empty() {
            let output = self.connection.output();
            match self.stream.write(&output[..output.len().min(left)]) {
                Ok(len) => {
                    left -= len;
                    self.connection.sent(len);
                    self.share.on_bytes(len, now);
                    hall.on_written(len);
                }
                Err(error) => self.may_write = check(error)?,
            }
        }
        Ok(())
    }

    /// Discards bytes that no command will use, until the client has closed its side, too.
    fn throw_away(&mut self, buffer: &mut [u8]) -> After {
        for _ in 0..THROWN {
            match self.stream.read(buffer) {
                Ok(0) => return After::Close,
                Ok(_) => {}
                Err(error) => match check(error) {
                    Ok(true) => {}
                    Ok(false) => return After::Rest,
                    Err(_) => return After::Close,
                },
            }
        }
        After::Turn
    }
}

/// Whether the socket is still ready after this error. Errors that end the connection are returned.
fn check(error: std::io::Error) -> std::io::Result<bool> {
    match error.kind() {
        ErrorKind::WouldBlock => Ok(false),
        ErrorKind::Interrupted => Ok(true),
        _ => Err(error),
    }
}
