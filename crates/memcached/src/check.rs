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

/// The time in all checks.
const NOW: Seconds = Seconds(1_800_000_000);

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
    answers_to(Connection::new(None), partitions, bytes, cut, take)
}

/// [`answers`], of this connection.
fn answers_to(
    mut connection: Connection,
    partitions: usize,
    bytes: &[u8],
    mut cut: impl FnMut() -> usize,
    mut take: impl FnMut() -> usize,
) -> Vec<u8> {
    let mut server = Threads::new(partitions, Mode::Cache, 256 * 1024);
    let (mut rest, mut seen) = (bytes, Vec::new());
    loop {
        let piece = cut().clamp(1, rest.len().max(1)).min(rest.len());
        let taken = connection.receive(&rest[..piece]);
        rest = &rest[taken..];
        let wants = connection.run(&mut server, NOW);
        let carried = server.carry(&mut connection, 1 + piece % 8, NOW);
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

/// Checks that the cuts do not change the answers, of one partition and of three. The first bytes
/// decide how the other bytes are cut.
///
/// # Panics
/// If a cut changes them.
pub fn any_cut(bytes: &[u8]) {
    let (cuts, bytes) = bytes.split_at(bytes.len().min(8));
    for partitions in [1, 3] {
        let whole = answers(partitions, bytes, || usize::MAX, || usize::MAX);
        let mut next = cuts.iter().cycle().map(|cut| usize::from(*cut));
        let pieces = answers(
            partitions,
            bytes,
            || next.next().unwrap_or(1),
            || usize::MAX,
        );
        assert!(whole == pieces, "a cut has changed the answers");
        let mut next = cuts.iter().cycle().map(|cut| usize::from(*cut) * 16);
        let slow = answers(
            partitions,
            bytes,
            || usize::MAX,
            || next.next().unwrap_or(1),
        );
        assert!(whole == slow, "a slow client has other answers");
    }
}

/// Checks a server with users. A client that has logged in gets the answers of a server without
/// users. Any other client changes no item, and no cut changes its answers.
///
/// # Panics
/// If that is not so.
pub fn any_login(bytes: &[u8]) {
    let (cuts, bytes) = bytes.split_at(bytes.len().min(8));
    let users = Users::read(USERS).map(Arc::new).expect("two lines");
    let guarded = || Connection::new(Some(Arc::clone(&users)));
    let ask = |bytes: &[u8], next: &mut dyn FnMut() -> usize| {
        answers_to(guarded(), 1, bytes, next, || usize::MAX)
    };
    let mut next = cuts.iter().cycle().map(|cut| usize::from(*cut));
    let mut cut = || next.next().unwrap_or(1);
    let seen = ask(bytes, &mut || usize::MAX);
    assert!(
        seen == ask(bytes, &mut cut),
        "a cut has changed the answers"
    );
    // A client of another protocol is known by its first bytes, so it cannot log in first.
    if opening(bytes) != Opening::Text {
        return;
    }
    let whole = answers(1, bytes, || usize::MAX, || usize::MAX);
    let let_in = ask(&[LOGIN, bytes].concat(), &mut cut);
    assert!(
        let_in.strip_prefix(WELCOME) == Some(&whole[..]),
        "a login has changed the answers"
    );
    let (mut server, mut stranger) = (server(Mode::Cache, 256 * 1024), guarded());
    let has = |word: &[u8]| bytes.windows(word.len()).any(|it| it == word);
    if !has(b"secret") && !has(b"hidden") {
        stranger.receive(bytes);
        stranger.run(&mut server, NOW);
        let figures = server.partition().figures();
        assert_eq!(figures, crate::Figures::default().with_table(figures.table));
        assert_eq!(figures.table.writes + figures.table.gets, 0);
    }
}

/// Runs any bytes as a burst of errands.
///
/// # Panics
/// If a partition panics or answers too much.
pub fn any_errands(bytes: &[u8]) {
    let (mut server, mut run) = (server(Mode::Cache, 256 * 1024), BurstRun::new(Vec::new()));
    // Refusing the bytes is as good as answering them.
    while server.partition().run_errands(bytes, &mut run, NOW) == Ok(false) {}
    assert!(run.answers().len() <= OUTPUT_MARK + MOST_BEYOND_MARK);
}
