//! Properties that hold for any bytes of a client, in pieces of any size. The tests of this crate
//! and the fuzz target share them.
//!
//! Each function panics if its property does not hold.

use dunlin_store::{Config, MAX_VALUE, Mode, Region, Seconds, Seed, Table};

use std::sync::Arc;

use crate::binary::{Opening, opening};
use crate::{
    Alone, BurstRun, Connection, Errand, MAX_KEYS_LINE, OUTPUT_MARK, Partition, Process, Server,
    Standing, Users, Wants, answers as answers_of,
};

/// The most bytes that an answer adds past the mark: a value, its line, and the lines of a dump or
/// of statistics.
const MOST_BEYOND_MARK: usize = MAX_VALUE + 64 * 1024;

/// A file of users, and the command by which one of them logs in.
const USERS: &[u8] = b"ann:secret\nbob:hidden\n";
const LOGIN: &[u8] = b"set a 0 0 10\r\nann secret\r\n";

/// The answer to it.
const WELCOME: &[u8] = b"STORED\r\n";

/// The time at the start of all checks.
const NOW: Seconds = Seconds(1_800_000_000);

/// The most bytes that a script may contain.
const LONGEST_SCRIPT: usize = 1 << 20;

/// The length of the shortest filler of a script.
const FILLER: usize = 1024;

/// Makes a server with a small table.
///
/// # Panics
/// If there is no memory for it.
#[must_use]
pub fn server(mode: Mode, memory: usize) -> Alone {
    let config = Config {
        mode,
        seed: Seed::new([7, 9]),
        first_version: 1,
    };
    let region = Region::new(memory).expect("the memory is small");
    let table = Table::new(region, config).expect("it is large enough for a table");
    Alone::new(table, Process::default())
}

/// The partitions of several threads. The connection is on the first partition's thread.
#[derive(Debug)]
pub struct Threads(Vec<Alone>);

impl Threads {
    /// Makes partitions with small tables.
    #[must_use]
    pub fn new(partitions: usize, mode: Mode, memory: usize) -> Self {
        Self((0..partitions).map(|_| server(mode, memory)).collect())
    }

    /// The partition with this number.
    pub fn at(&mut self, number: usize) -> Partition<'_> {
        self.0[number].partition()
    }

    /// Carries errands to the partitions in bursts of at most `most`, and their answers back.
    /// Returns how many errands were answered.
    ///
    /// # Panics
    /// If a partition does not run the connection's errands.
    pub fn carry(&mut self, connection: &mut Connection, most: usize, now: Seconds) -> usize {
        let mut answered = 0;
        for number in 1..self.0.len() {
            let partition = u16::try_from(number).expect("a few");
            let next = || connection.next_errand(partition);
            let mut burst: Vec<Errand> = std::iter::from_fn(next).take(most).collect();
            let bytes: Vec<u8> = burst.iter().flat_map(Errand::bytes).copied().collect();
            let mut run = BurstRun::new(Vec::new());
            loop {
                let ran = self.0[number]
                    .partition()
                    .run_errands(&bytes, &mut run, now);
                if ran.expect("the errands of a connection are well formed") {
                    break;
                }
            }
            let out = run.answers();
            assert!(out.len() <= OUTPUT_MARK + MOST_BEYOND_MARK);
            let all: Vec<&[u8]> = answers_of(out).collect();
            for errand in burst.drain(all.len()..).rev() {
                connection.give_back(errand);
            }
            for (errand, answer) in burst.iter().zip(&all) {
                connection.on_answer(errand, Some(answer), self, now);
            }
            answered += all.len();
        }
        answered
    }
}

impl Server for Threads {
    fn partition(&mut self) -> Partition<'_> {
        self.0[0].partition()
    }

    fn standing(&self) -> Standing {
        let of = u16::try_from(self.0.len()).expect("a few");
        Standing { number: 0, of }
    }

    fn owner(&self, key: &[u8]) -> u16 {
        let sum: usize = key.iter().map(|byte| usize::from(*byte)).sum();
        u16::try_from(sum % self.0.len()).expect("a few")
    }

    fn process(&self) -> Process {
        self.0[0].process()
    }
}

/// A client's bytes, the clock, and the server's table, all read from the input of a fuzzer.
///
/// The first byte chooses the mode and the memory of the table, and the next eight bytes the cuts.
/// Of the rest, a byte 0 stands for as many KiB of filler as the next byte says, and one more. A
/// byte 1 lets the clock go on by as many seconds as the next byte says. A byte 2 stands for the
/// next byte.
#[derive(Clone, Debug)]
struct Script {
    mode: Mode,
    memory: usize,
    cuts: Vec<u8>,
    /// Pieces of the client's bytes, and the time of each.
    pieces: Vec<(Seconds, Vec<u8>)>,
}

impl Script {
    fn read(input: &[u8]) -> Self {
        let (setting, rest) = input.split_first().unwrap_or((&0, &[]));
        let (cuts, mut rest) = rest.split_at(rest.len().min(8));
        let mut script = Self {
            mode: match setting & 1 {
                0 => Mode::Cache,
                _ => Mode::Store,
            },
            memory: match setting & 2 {
                0 => 256 << 10,
                _ => 2 << 20,
            },
            cuts: cuts.to_vec(),
            pieces: vec![(NOW, Vec::new())],
        };
        while let Some((code, after)) = rest.split_first() {
            let argument = after.first().copied().unwrap_or(0);
            let (now, piece) = script.pieces.last_mut().expect("there is always one");
            rest = if *code <= 2 {
                after.get(1..).unwrap_or(&[])
            } else {
                after
            };
            match code {
                0 => piece.resize(piece.len() + FILLER * (1 + usize::from(argument)), b'v'),
                1 => {
                    let later = Seconds(now.0 + u32::from(argument));
                    script.pieces.push((later, Vec::new()));
                }
                2 => piece.push(argument),
                other => piece.push(*other),
            }
            if script.len() > LONGEST_SCRIPT {
                break;
            }
        }
        script
    }

    /// A script of these bytes, on a small cache.
    fn plain(bytes: &[u8]) -> Self {
        Self {
            pieces: vec![(NOW, bytes.to_vec())],
            ..Self::read(&[])
        }
    }

    fn len(&self) -> usize {
        self.pieces.iter().map(|(_, piece)| piece.len()).sum()
    }

    fn bytes(&self) -> Vec<u8> {
        let pieces = self.pieces.iter().flat_map(|(_, piece)| piece);
        pieces.copied().collect()
    }

    /// The same script after other bytes.
    fn after(&self, bytes: &[u8]) -> Self {
        let mut script = self.clone();
        script.pieces[0].1.splice(..0, bytes.iter().copied());
        script
    }

    fn server(&self) -> Alone {
        server(self.mode, self.memory)
    }

    /// Lengths of pieces, again and again. Long scripts have longer pieces.
    fn lengths(&self) -> impl FnMut() -> usize {
        let scale = 1 + self.len() / 8192;
        let cuts = self.cuts.clone();
        let mut next = cuts.into_iter().cycle();
        move || next.next().map_or(1, |cut| usize::from(cut).max(1)) * scale
    }

    /// Feeds the bytes to a connection, and returns all answers. `cut` returns the length of each
    /// piece, and `take` the number of bytes that the client takes at a time. The clock goes on
    /// when the server can do nothing more, so no cut changes the time at which a command runs.
    fn answers(
        &self,
        mut connection: Connection,
        partitions: usize,
        mut cut: impl FnMut() -> usize,
        mut take: impl FnMut() -> usize,
    ) -> Vec<u8> {
        let mut server = Threads::new(partitions, self.mode, self.memory);
        let mut seen = Vec::new();
        for (now, piece) in &self.pieces {
            let (connection, server) = (&mut connection, &mut server);
            let answers = feed(connection, server, piece, *now, (&mut cut, &mut take));
            seen.extend_from_slice(&answers);
        }
        seen
    }
}

/// Feeds bytes to a connection until the server can do nothing more, and returns the answers.
///
/// # Panics
/// If the connection holds more memory than it may, or gets stuck.
fn feed(
    connection: &mut Connection,
    server: &mut Threads,
    mut rest: &[u8],
    now: Seconds,
    (cut, take): (&mut impl FnMut() -> usize, &mut impl FnMut() -> usize),
) -> Vec<u8> {
    let (partitions, mut seen) = (server.0.len(), Vec::new());
    loop {
        let piece = cut().clamp(1, rest.len().max(1)).min(rest.len());
        let taken = connection.receive(&rest[..piece]);
        rest = &rest[taken..];
        let wants = connection.run(server, now);
        let carried = server.carry(connection, 1 + piece % 8, now);
        let most = OUTPUT_MARK + MOST_BEYOND_MARK;
        assert!(connection.output().len() <= partitions * most);
        let room = connection.room();
        assert!(room <= MAX_KEYS_LINE + MAX_VALUE || wants == Wants::End);
        let sent = take().clamp(1, OUTPUT_MARK).min(connection.output().len());
        seen.extend_from_slice(&connection.output()[..sent]);
        connection.sent(sent);
        let is_stuck = wants == Wants::Input && rest.is_empty() && sent + carried == 0;
        if connection.is_over() || is_stuck {
            return seen;
        }
        assert!(
            wants != Wants::Input || rest.is_empty() || room > 0,
            "a connection that needs input has room for it"
        );
        assert!(
            wants != Wants::Answers || partitions > 1,
            "one partition answers at once"
        );
    }
}

/// Feeds bytes to a connection in pieces, and returns all answers. The keys are spread over
/// `partitions` partitions.
///
/// `cut` returns the length of each piece, and `take` the number of bytes that the client takes at
/// a time.
///
/// # Panics
/// If the connection holds more memory than it may, or gets stuck.
#[must_use]
pub fn answers(
    partitions: usize,
    bytes: &[u8],
    cut: impl FnMut() -> usize,
    take: impl FnMut() -> usize,
) -> Vec<u8> {
    Script::plain(bytes).answers(Connection::new(None), partitions, cut, take)
}

/// Checks that the cuts do not change the answers to a script, of one partition and of three. The
/// input contains also the mode and the memory of the table, and steps of the clock.
///
/// # Panics
/// If a cut changes them.
pub fn any_cut(input: &[u8]) {
    let script = Script::read(input);
    let fresh = || Connection::new(None);
    for partitions in [1, 3] {
        let whole = script.answers(fresh(), partitions, || usize::MAX, || usize::MAX);
        let pieces = script.answers(fresh(), partitions, script.lengths(), || usize::MAX);
        assert!(whole == pieces, "a cut has changed the answers");
        let mut next = script.lengths();
        let slow = script.answers(fresh(), partitions, || usize::MAX, || next() * 16);
        assert!(whole == slow, "a slow client has other answers");
    }
}

/// Checks a server with users. A client that has logged in gets the answers of a server without
/// users. Any other client changes no item, and no cut changes its answers.
///
/// # Panics
/// If that is not so.
pub fn any_login(input: &[u8]) {
    let script = Script::read(input);
    let bytes = script.bytes();
    let users = Users::read(USERS).map(Arc::new).expect("two lines");
    let guarded = || Connection::new(Some(Arc::clone(&users)));
    let whole = || usize::MAX;
    let seen = script.answers(guarded(), 1, whole, whole);
    let cut = script.answers(guarded(), 1, script.lengths(), whole);
    assert!(seen == cut, "a cut has changed the answers");
    // A client of another protocol is known by its first bytes, so it cannot log in first.
    if opening(&bytes) != Opening::Text {
        return;
    }
    let free = script.answers(Connection::new(None), 1, whole, whole);
    let logged_in = script.after(LOGIN);
    let let_in = logged_in.answers(guarded(), 1, script.lengths(), whole);
    assert!(
        let_in.strip_prefix(WELCOME) == Some(&free[..]),
        "a login has changed the answers"
    );
    let (mut server, mut stranger) = (script.server(), guarded());
    let has = |word: &[u8]| bytes.windows(word.len()).any(|it| it == word);
    if !has(b"secret") && !has(b"hidden") {
        stranger.receive(&bytes);
        stranger.run(&mut server, NOW);
        let figures = server.partition().figures();
        assert_eq!(figures, crate::Figures::default().with_table(figures.table));
        assert_eq!(figures.table.writes + figures.table.gets, 0);
    }
}

/// Runs the pieces of a script as bursts of errands.
///
/// # Panics
/// If a partition panics or answers too much.
pub fn any_errands(input: &[u8]) {
    let script = Script::read(input);
    let mut server = script.server();
    for (now, piece) in &script.pieces {
        let mut run = BurstRun::new(Vec::new());
        // Refusing the bytes is as good as answering them.
        while server.partition().run_errands(piece, &mut run, *now) == Ok(false) {}
        assert!(run.answers().len() <= OUTPUT_MARK + MOST_BEYOND_MARK);
    }
}
