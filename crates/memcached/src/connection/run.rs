//! One step of a connection: reads a line, or continues with the command that it has begun.

use std::borrow::Cow;

use dunlin_store::{BATCH, Cursor, Seconds};

use crate::binary::{self, Opening};
use crate::command::{Ask, Command, Keys, Skip, TOO_LARGE, Topic, parse};
use crate::connection::copying::{Asked, Copying};
use crate::connection::input::Line;
use crate::connection::output::{Form, Output, Refused, Whole};
use crate::connection::{Connection, Phase, Reading};
use crate::errand::{self, Errand};
use crate::operation::{self, Answer, Operation};
use crate::render::{line as say, render, render_part, report as report_as};
use crate::report::Report;
use crate::server::Server;
use crate::words::{each, visible};

/// The state of a command after its start.
enum Started {
    /// Its answer is written, or an errand will bring it.
    Done,
    /// An error replaces an item.
    Refused,
    /// A long value is still to be copied.
    Long(Copying),
}

const BAD_DATA: &str = "CLIENT_ERROR bad data chunk";
const LIST_END: &[u8] = b"END\r\n";

impl Connection {
    /// Runs one operation, or reads one line. Returns false if that needs more bytes or an answer
    /// of another partition, or if the connection takes no more commands.
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
            Phase::Writing { need } => {
                self.take_value(need, server, now);
                true
            }
            Phase::Copying(asked) => {
                self.copy_slice(asked, server, now);
                true
            }
            Phase::Skip { left } => self.skip(left),
            Phase::Dump(partition, place) => {
                self.dump(partition, place, server, now);
                true
            }
            Phase::DumpDue(_) | Phase::End => false,
        }
    }

    /// Takes no more commands.
    pub(super) fn finish(&mut self) {
        self.phase = Phase::End;
        self.copying = None;
        self.input.take(self.input.len());
    }

    /// Determines the client's protocol.
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

    /// Reads a line and carries out its command.
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
        self.announce(next, server);
        let line = &self.input.bytes()[..end];
        match parse(line, now).within(server.most_value()) {
            Command::Keys(keys) => {
                let end = visible(line).len();
                if server.standing().of > 1 {
                    self.output.open_list();
                }
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
                    if matches!(ask, Ask::Reset) {
                        server.on_reset();
                    }
                    let may_copy = self.may_copy();
                    let started = start(&mut self.output, &ask, (line, b""), may_copy, server, now);
                    if let Started::Long(copying) = started {
                        self.begin_copying(copying, Asked::Line(next));
                        return true;
                    }
                    self.restarts = 0;
                }
            }
            Command::Skip(skip) => {
                refuse_value(&mut self.output, &skip, server, now);
                let left = skip.len as usize + 2;
                self.phase = Phase::Skip { left };
            }
            Command::Say(text) => say(text, self.output.end()),
            Command::Quiet => {}
            Command::Stats(topic) => show(&mut self.output, topic, server, now),
            Command::Dump => self.phase = Phase::Dump(0, Cursor::default()),
            Command::Close => {
                self.finish();
                return true;
            }
        }
        self.input.take(next);
        true
    }

    /// Prefetches the items for the reads at the front, if other lines have arrived with this one,
    /// which ends at `next`. Does so only if this partition has all keys. With several partitions,
    /// errands overlap anyway: a connection does not wait for the answer to one before it sends the
    /// next.
    fn announce(&mut self, next: usize, server: &mut impl Server) {
        if self.announced == 0 && next < self.input.len() && server.standing().of == 1 {
            let keys = first_keys(self.input.bytes()).take(BATCH);
            let announced = &mut self.announced;
            server.partition().ahead(keys.inspect(|_| *announced += 1));
        }
        self.announced = self.announced.saturating_sub(1);
    }

    /// Gets the item of the next key of a line, or ends the list.
    fn read_key(&mut self, mut reading: Reading, server: &mut impl Server, now: Seconds) {
        let line = &self.input.bytes()[..reading.end];
        let rest = &line[reading.at..];
        let Some(key) = each(rest).next() else {
            self.output.end().extend_from_slice(LIST_END);
            return self.end_keys(reading);
        };
        if reading.announced == 0 {
            server.partition().ahead(each(rest).take(BATCH));
            reading.announced = BATCH;
        }
        reading.announced -= 1;
        let indent = rest.iter().take_while(|byte| **byte == b' ').count();
        let before = reading;
        reading.at += indent + key.len();
        let ask = Ask::Get {
            key,
            with_version: reading.with_version,
            touch: reading.touch,
        };
        let may_copy = self.may_copy();
        match start(&mut self.output, &ask, (line, b""), may_copy, server, now) {
            Started::Done => {
                self.restarts = 0;
                self.phase = Phase::Keys(reading);
            }
            Started::Refused => {
                // An error replaces an item, so the client must find no end of the list.
                self.end_keys(reading);
                self.finish();
            }
            Started::Long(copying) => self.begin_copying(copying, Asked::Key(before, reading)),
        }
    }

    /// Continues after a line of keys.
    fn end_keys(&mut self, reading: Reading) {
        self.output.close_list();
        self.phase = Phase::Line;
        self.input.take(reading.next_line);
    }

    /// Handles the loss of an item in a line of keys: one error answers the whole line, or, if some
    /// of the items have left, the connection ends.
    pub(super) fn on_lost_item(&mut self, item: &Whole, why: &str, text: &mut Vec<u8>) {
        match (self.output.refuse_list(item), self.phase) {
            (Refused::Cut, _) => self.finish(),
            (Refused::Whole { has_keys }, phase) => {
                say(why, text);
                let reading = match phase {
                    Phase::Keys(reading) | Phase::Copying(Asked::Key(_, reading)) => Some(reading),
                    _ => None,
                };
                if let (true, Some(reading)) = (has_keys, reading) {
                    self.copying = None;
                    self.end_keys(reading);
                }
            }
        }
    }

    /// Runs the command of a line whose value has arrived. A long value is written in parts, one in
    /// each call.
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
                let operation = ask.operation(value);
                let Some(store) = long_write(&operation, server) else {
                    start(&mut self.output, &ask, (line, value), false, server, now);
                    return self.input.take(need);
                };
                let mut partition = server.partition();
                let Some(written) = partition.write_part(store, &mut self.writing, now) else {
                    self.phase = Phase::Writing { need };
                    return;
                };
                let out = self.output.end();
                render(&ask, &Answer::Written(written), now, out);
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

    fn dump(&mut self, partition: u16, place: Cursor, server: &mut impl Server, now: Seconds) {
        if partition == server.standing().number {
            let next = server.partition().list(place, now, self.output.end());
            self.go_on_with_list(partition, next, server.standing().of);
            if self.phase == Phase::Line {
                self.output.end().extend_from_slice(LIST_END);
            }
        } else {
            let errand = |ticket| Errand::dump(ticket, partition, place);
            self.output
                .send(Form::List, |ticket| std::iter::once(errand(ticket)));
            self.phase = Phase::DumpDue(partition);
        }
    }

    /// Takes a part of a list from another partition, and returns its lines. Malformed bytes end
    /// the list with an error.
    pub(super) fn on_list(&mut self, answer: &[u8], server: &impl Server) -> Vec<u8> {
        let Phase::DumpDue(partition) = self.phase else {
            return Vec::new();
        };
        let mut out = Vec::new();
        let Some((lines, next)) = errand::part_of_list(answer) else {
            say(super::LOST, &mut out);
            self.phase = Phase::Line;
            return out;
        };
        out.extend_from_slice(lines);
        self.go_on_with_list(partition, next, server.standing().of);
        if self.phase == Phase::Line {
            out.extend_from_slice(LIST_END);
        }
        out
    }

    /// Continues the list at the next place of this partition, or with the next partition. After
    /// the last one, continues with the next command.
    fn go_on_with_list(&mut self, partition: u16, next: Option<Cursor>, of: u16) {
        self.phase = match next {
            Some(place) => Phase::Dump(partition, place),
            None if partition + 1 < of => Phase::Dump(partition + 1, Cursor::default()),
            None => Phase::Line,
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

/// A write whose value may be longer than a slice, if its key is in this partition.
fn long_write<'o, 'v>(
    operation: &'o Operation<'v>,
    server: &impl Server,
) -> Option<&'o operation::Store<'v>> {
    match operation {
        Operation::Write(store) if store.may_be_long() => {
            let is_here = server.owner(store.key) == server.standing().number;
            is_here.then_some(store)
        }
        _ => None,
    }
}

/// The first key of each line at the front that reads items, up to the first line that does not, or
/// is incomplete.
fn first_keys(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let words = bytes.strip_prefix(b"get ").or(bytes.strip_prefix(b"mg "))?;
        let end = words.iter().position(|byte| *byte == b'\n')?;
        let (line, rest) = words.split_at(end);
        bytes = &rest[1..];
        line.split(|byte| matches!(byte, b' ' | b'\r')).next()
    })
}

/// Runs an operation and writes its answer, or sends it to the partition that has its key. An
/// operation without a key runs in all partitions. If the caller can copy a long value, the value
/// is left to the caller.
fn start(
    output: &mut Output,
    ask: &Ask<'_>,
    (line, value): (&[u8], &[u8]),
    may_copy: bool,
    server: &mut impl Server,
    now: Seconds,
) -> Started {
    let (operation, here) = (ask.operation(value), server.standing());
    let Some(key) = operation.key() else {
        let mut text = Vec::new();
        server.partition().run(&operation, now, |answer| {
            render(ask, answer, now, &mut text);
        });
        if here.of == 1 {
            output.end().extend_from_slice(&text);
            return Started::Done;
        }
        output.send(Form::Fixed(text), |ticket| {
            let errand = move |other| Errand::text(ticket, other, (line, value));
            here.others().map(errand)
        });
        return Started::Done;
    };
    let owner = server.owner(key);
    if owner == here.number {
        let (out, may_copy) = (output.end(), may_copy && !operation.ends_item(now));
        return server.partition().run(&operation, now, |answer| {
            run_here((ask, key), answer, may_copy, now, out)
        });
    }
    let line = match ask {
        Ask::Get { touch, .. } => Cow::Owned(with_key_alone(line, key, touch.is_some())),
        _ => Cow::Borrowed(line),
    };
    let is_silent = ask.is_silent();
    let form = match ask {
        Ask::Get { .. } => Form::Item,
        _ => Form::Text { is_silent },
    };
    output.send(form, |ticket| {
        std::iter::once(match ask {
            Ask::Get { .. } | Ask::MetaGet(_) => Errand::read(ticket, owner, &line),
            _ => Errand::text(ticket, owner, (&line, value)),
        })
    });
    Started::Done
}

/// Runs an operation of this partition and writes its answer, except for a long value that may be
/// copied later.
fn run_here(
    (ask, key): (&Ask<'_>, &[u8]),
    answer: &Answer<'_>,
    may_copy: bool,
    now: Seconds,
    out: &mut Vec<u8>,
) -> Started {
    if let (Ask::Get { .. }, Answer::Written(Err(_))) = (ask, answer) {
        render(ask, answer, now, out);
        return Started::Refused;
    }
    if !may_copy {
        render(ask, answer, now, out);
        return Started::Done;
    }
    let begin = out.len();
    match render_part(ask, answer, now, out) {
        Some(value) => {
            let copying = Copying::new(key, value, &out[begin..]);
            out.truncate(begin);
            Started::Long(copying)
        }
        None => Started::Done,
    }
}

/// The line of `get` or a variant, with only this one of its keys.
fn with_key_alone(line: &[u8], key: &[u8], has_time: bool) -> Vec<u8> {
    let words = each(line).take(1 + usize::from(has_time));
    let mut alone = words.collect::<Vec<_>>().join(&b' ');
    alone.push(b' ');
    alone.extend_from_slice(key);
    alone
}

/// Shows figures of all partitions.
fn show(output: &mut Output, topic: Topic, server: &mut impl Server, now: Seconds) {
    let (figures, here) = (server.partition().figures(), server.standing());
    if here.of == 1 {
        let report = Report::new(figures, server.process(), now);
        return report_as(topic, &report, output.end());
    }
    output.send(Form::Stats(topic, Box::new(figures)), |ticket| {
        here.others()
            .map(move |other| Errand::figures(ticket, other))
    });
}

/// Answers the reason why a value is refused, and deletes the item that the value was meant to
/// replace.
fn refuse_value(output: &mut Output, skip: &Skip<'_>, server: &mut impl Server, now: Seconds) {
    if !skip.is_quiet {
        say(skip.text, output.end());
    }
    if skip.text == TOO_LARGE {
        server.partition().count_too_large();
    }
    let Some(word) = &skip.deletes else {
        return;
    };
    let owner = server.owner(word.bytes());
    if owner == server.standing().number {
        return server.partition().forget(word.bytes(), now);
    }
    let flag: &[u8] = if word.is_base64() { b" b" } else { b"" };
    let line = [b"md ", word.word(), flag].concat();
    output.send(Form::Fixed(Vec::new()), |ticket| {
        std::iter::once(Errand::text(ticket, owner, (&line, b"")))
    });
}
