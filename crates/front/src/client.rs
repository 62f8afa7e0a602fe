//! A client: its socket and its connection.
//!
//! Readiness is kept from one event to the next, because the kernel reports only changes. A turn
//! reads the socket once, runs commands up to the limit of a turn, and writes until everything is
//! written, the socket is full or the turn has written enough. It costs two system calls, because a
//! read that returns less than it could have has emptied the socket.
//!
//! If the clients of all threads have sent too many bytes of incomplete commands, the sockets of
//! those in the middle of a long command are not read until others have completed theirs, except
//! for one client at a time ([`Hall::goes_first`]).

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use dunlin_memcached::{Connection, Errand, OUTPUT_MARK, Server, Wants};
use dunlin_store::Seconds;
use mio::event::Event;

use crate::hall::{Guest, Hall};
use crate::lanes::End;
use crate::stream::Stream;

/// Seconds in which a client whose connection is over can read the last answer. Bytes from the
/// client are discarded meanwhile: if a socket is closed with unread bytes, the answer is lost.
const FAREWELL: u32 = 2;

/// The most bytes that one turn writes.
const MOST_WRITTEN: usize = 2 * OUTPUT_MARK;

/// Bytes of incomplete commands that each client may send at any time.
const FREE: usize = 4096;

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
    /// Bytes of incomplete commands, beyond those that are free, that the hall has counted.
    incomplete: usize,
    /// Whether the hall lets it send more although there is no room.
    goes_first: bool,
    /// When it last sent or took bytes.
    active: Seconds,
    /// Whether it waits until others have completed their commands.
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

impl Client {
    pub(crate) fn new(stream: Stream, guest: Arc<Guest>, hall: &Hall) -> Self {
        Self {
            stream,
            connection: Connection::new(hall.users()),
            may_read: true,
            may_write: true,
            has_hung_up: false,
            is_at_end: false,
            leaves: None,
            is_trimmed: true,
            incomplete: 0,
            goes_first: false,
            active: guest.last_command(),
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

    /// Frees the memory of a client that has been idle for more than a second. False: the owner
    /// closes the connection. The time is over in which the client could read the last answer, or
    /// the client has stopped in the middle of a long command and no other client has room for one.
    pub(crate) fn on_second(&mut self, hall: &Hall, now: Seconds) -> bool {
        let idle = now.0.saturating_sub(self.guest.last_command().0);
        if idle > 1 && !self.is_trimmed {
            self.connection.trim();
            self.is_trimmed = true;
        }
        let is_waiting = self.is_held_back || self.is_queued;
        let silent = now.0.saturating_sub(self.active.0);
        if self.incomplete > 0 && !is_waiting && silent >= hall.patience() && !hall.has_room() {
            return false;
        }
        let leaving = self.leaves.map(|since| now.0.saturating_sub(since.0));
        leaving.is_none_or(|seconds| seconds < FAREWELL)
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
        let room = self.room(hall);
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
        self.count_incomplete(hall, self.connection.pending().saturating_sub(FREE));
        let is_sent = self.connection.output().is_empty();
        let is_settled = self.connection.is_settled();
        if self.connection.is_over() {
            self.stream.end_output();
            self.leaves = Some(now);
            return After::Turn;
        }
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
        self.count_incomplete(hall, 0);
    }

    fn count_incomplete(&mut self, hall: &Hall, bytes: usize) {
        if self.incomplete != bytes {
            hall.on_incomplete(self.incomplete, bytes);
            self.incomplete = bytes;
        }
        if bytes == 0 && std::mem::take(&mut self.goes_first) {
            hall.on_first_done();
        }
    }

    /// Bytes that the next read may take. `None`: the client is held back.
    fn room(&mut self, hall: &Hall) -> Option<usize> {
        let is_full = self.connection.output().len() >= OUTPUT_MARK;
        let room = self.connection.room();
        if !self.may_read || self.is_at_end || is_full || room == 0 {
            return Some(0);
        }
        if hall.has_room() {
            return Some(room);
        }
        match FREE.saturating_sub(self.connection.pending()) {
            0 => {
                self.goes_first = hall.goes_first(&self.guest);
                self.goes_first.then_some(room)
            }
            free => Some(room.min(free)),
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
                self.active = now;
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
                    self.active = now;
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
