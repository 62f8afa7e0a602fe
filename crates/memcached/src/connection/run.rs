//! One step of a connection: reads a line, or continues with the command that it has begun.

use dunlin_store::{BATCH, Seconds};

use crate::binary::{self, Opening};
use crate::command::{Ask, Change, Command, Keys, Skip, parse};
use crate::connection::input::Line;
use crate::connection::output::{Output, dumped};
use crate::connection::{Connection, Phase, Reading};
use crate::operation::{DumpCursor, Operation, OperationTicket};
use crate::render::{line as say, render};
use crate::server::{Server, Started};
use crate::words::each;

const BAD_DATA: &str = "CLIENT_ERROR bad data chunk";

impl Connection {
    /// Runs one operation, or reads one line; returns false if it needs more bytes for that.
    pub(super) fn step(&mut self, server: &mut impl Server, now: Seconds) -> bool {
        match self.phase {
            Phase::Opening => self.open(),
            Phase::Line => self.read_line(server, now),
            Phase::Keys(reading) => {
                self.read_key(reading, server, now);
                true
            }
            Phase::Value { need } => {
                let is_whole = self.input.len() >= need;
                if is_whole {
                    self.take_value(need, server, now);
                }
                is_whole
            }
            Phase::Skip { left } => self.skip(left),
            Phase::Dump(cursor) => {
                self.dump(cursor, server, now);
                true
            }
            Phase::DumpDue | Phase::End => false,
        }
    }

    /// Takes no more commands.
    pub(super) fn finish(&mut self) {
        self.phase = Phase::End;
        self.input.take(self.input.len());
    }

    /// Finds out which protocol the client speaks.
    fn open(&mut self) -> bool {
        match binary::opening(self.input.bytes()) {
            Opening::Short => return false,
            Opening::Text => self.phase = Phase::Line,
            Opening::Binary => {
                binary::refuse(self.input.bytes(), self.output.end());
                self.finish();
            }
            Opening::Tls => {
                say("CLIENT_ERROR TLS is not enabled", self.output.end());
                self.finish();
            }
        }
        true
    }

    /// Reads a line and does what it asks for.
    fn read_line(&mut self, server: &mut impl Server, now: Seconds) -> bool {
        let (end, next) = match self.input.line() {
            Line::Short => return false,
            Line::TooLong => {
                say("CLIENT_ERROR line too long", self.output.end());
                self.finish();
                return true;
            }
            Line::Whole { end, next } => (end, next),
        };
        if self.users.is_some() {
            self.read_credentials(end, next);
            return true;
        }
        let line = &self.input.bytes()[..end];
        match parse(line, now) {
            Command::Keys(keys) => {
                self.phase = Phase::Keys(Reading::new(keys, end, next));
                return true;
            }
            Command::Ask(ask) => {
                if let Some(len) = ask.value_len() {
                    let need = next + len + 2;
                    self.phase = Phase::Value { need };
                    return true;
                }
                if let Ask::Flush { is_quiet, .. } = ask
                    && server.refuses_flush()
                {
                    if !is_quiet {
                        say("CLIENT_ERROR flush_all not allowed", self.output.end());
                    }
                } else {
                    let ticket = take_ticket(&mut self.tickets);
                    start(&mut self.output, ticket, &ask, (line, b""), server, now);
                }
            }
            Command::Skip(skip) => {
                let ticket = take_ticket(&mut self.tickets);
                refuse_value(&mut self.output, ticket, &skip, line, server, now);
                let left = skip.len as usize + 2;
                self.phase = Phase::Skip { left };
            }
            Command::Say(text) => say(text, self.output.end()),
            Command::Quiet => {}
            Command::Dump => self.phase = Phase::Dump(DumpCursor::default()),
            Command::Close => {
                self.finish();
                return true;
            }
        }
        self.input.take(next);
        true
    }

    /// Asks for the next key of a line, or ends the list.
    fn read_key(&mut self, mut reading: Reading, server: &mut impl Server, now: Seconds) {
        let line = &self.input.bytes()[..reading.end];
        let rest = &line[reading.at..];
        let Some(key) = each(rest).next() else {
            self.output.end().extend_from_slice(b"END\r\n");
            self.phase = Phase::Line;
            self.input.take(reading.next_line);
            return;
        };
        if reading.announced == 0 {
            server.ahead(each(rest).take(BATCH));
            reading.announced = BATCH;
        }
        reading.announced -= 1;
        let indent = rest.iter().take_while(|byte| **byte == b' ').count();
        reading.at += indent + key.len();
        let ask = Ask::Get {
            key,
            with_version: reading.with_version,
            touch: reading.touch,
        };
        let ticket = take_ticket(&mut self.tickets);
        start(&mut self.output, ticket, &ask, (b"", b""), server, now);
        self.phase = Phase::Keys(reading);
    }

    /// Runs the command of a line whose value is there.
    fn take_value(&mut self, need: usize, server: &mut impl Server, now: Seconds) {
        self.phase = Phase::Line;
        let Line::Whole { end, next } = self.input.line() else {
            unreachable!("the line was there before its value");
        };
        if self.users.is_some() {
            self.check_credentials(next, need, server);
            return;
        }
        let line = &self.input.bytes()[..end];
        let (value, value_end) = self.input.bytes()[next..need].split_at(need - next - 2);
        if let Command::Ask(ask) = parse(line, now) {
            if value_end == b"\r\n" {
                let ticket = take_ticket(&mut self.tickets);
                start(&mut self.output, ticket, &ask, (line, value), server, now);
            } else if !matches!(ask, Ask::Update(update) if update.is_quiet) {
                say(BAD_DATA, self.output.end());
            }
        }
        self.input.take(need);
    }

    fn skip(&mut self, left: usize) -> bool {
        let len = left.min(self.input.len());
        self.input.take(len);
        let left = left - len;
        self.phase = match left {
            0 => Phase::Line,
            _ => Phase::Skip { left },
        };
        left == 0
    }

    fn dump(&mut self, cursor: DumpCursor, server: &mut impl Server, now: Seconds) {
        let ticket = take_ticket(&mut self.tickets);
        let out = self.output.end();
        let mut next = None;
        let operation = Operation::Dump { cursor };
        let started = server.start(ticket, &operation, now, |answer| next = dumped(answer, out));
        self.phase = match started {
            Started::Answered => next.map_or(Phase::Line, Phase::Dump),
            Started::Later => {
                self.output
                    .wait(ticket, (*b"lru_crawler metadump all").into());
                Phase::DumpDue
            }
        };
    }
}

impl Reading {
    fn new(keys: Keys, end: usize, next_line: usize) -> Self {
        Self {
            at: keys.at,
            end,
            next_line,
            with_version: keys.with_version,
            touch: keys.touch,
            announced: 0,
        }
    }
}

fn take_ticket(tickets: &mut u64) -> OperationTicket {
    *tickets += 1;
    OperationTicket(*tickets)
}

/// Starts an operation and writes its answer, or leaves a place for it. A line of `get` may have
/// more keys, so the place keeps a line with this key alone.
fn start(
    output: &mut Output,
    ticket: OperationTicket,
    ask: &Ask<'_>,
    (line, value): (&[u8], &[u8]),
    server: &mut impl Server,
    now: Seconds,
) {
    let operation = ask.operation(value);
    let out = output.end();
    let started = server.start(ticket, &operation, now, |answer| {
        render(ask, answer, now, out);
    });
    if started == Started::Answered {
        return;
    }
    let line = match ask {
        Ask::Get {
            key, with_version, ..
        } => {
            let name: &[u8] = if *with_version { b"gets " } else { b"get " };
            [name, key].concat()
        }
        _ => line.to_vec(),
    };
    output.wait(ticket, line.into());
}

/// Answers why a value is refused, and deletes the item that the value was meant to replace.
fn refuse_value(
    output: &mut Output,
    ticket: OperationTicket,
    skip: &Skip<'_>,
    line: &[u8],
    server: &mut impl Server,
    now: Seconds,
) {
    if !skip.is_quiet {
        say(skip.text, output.end());
    }
    if let Some(key) = &skip.deletes {
        let key = key.bytes();
        let is_quiet = true;
        let ask = Ask::Change(Change::Delete { key, is_quiet });
        start(output, ticket, &ask, (line, b""), server, now);
    }
}
