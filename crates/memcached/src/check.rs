//! Properties that hold for any bytes of a client, however they are cut. The tests of this crate
//! and the fuzz target share them.
//!
//! Each function panics if its property does not hold.

use dunlin_store::{Config, MAX_VALUE, Mode, Region, Seconds, Seed, Table};

use crate::{Alone, Connection, MAX_KEYS_LINE, OUTPUT_MARK, Process, Wants};

/// The most bytes that an answer adds past the mark: a value, its line, and the lines of a dump or
/// of statistics.
const MOST_BEYOND_MARK: usize = MAX_VALUE + 64 * 1024;

/// The time of all checks.
const NOW: Seconds = Seconds(1_800_000_000);

/// A server with a small table.
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

/// Feeds bytes to a connection in pieces, and returns all answers.
///
/// `cut` gives the length of each piece, `take` the number of bytes that the client takes at a
/// time.
///
/// # Panics
/// If the connection holds more memory than it may, or gets stuck.
#[must_use]
pub fn answers(
    bytes: &[u8],
    mut cut: impl FnMut() -> usize,
    mut take: impl FnMut() -> usize,
) -> Vec<u8> {
    let mut server = server(Mode::Cache, 256 * 1024);
    let mut connection = Connection::new(None);
    let (mut rest, mut seen) = (bytes, Vec::new());
    loop {
        let piece = cut().clamp(1, rest.len().max(1)).min(rest.len());
        let taken = connection.receive(&rest[..piece]);
        rest = &rest[taken..];
        let wants = connection.run(&mut server, NOW);
        assert!(connection.output().len() <= OUTPUT_MARK + MOST_BEYOND_MARK);
        let room = connection.room();
        assert!(room <= MAX_KEYS_LINE + MAX_VALUE || wants == Wants::End);
        let sent = take().clamp(1, OUTPUT_MARK).min(connection.output().len());
        seen.extend_from_slice(&connection.output()[..sent]);
        connection.sent(sent);
        let is_stuck = wants == Wants::Input && rest.is_empty() && sent == 0;
        if connection.is_over() || is_stuck {
            return seen;
        }
        assert!(
            wants != Wants::Input || rest.is_empty() || room > 0,
            "a connection that needs input has room for it"
        );
        assert_ne!(wants, Wants::Answers, "this server answers at once");
    }
}

/// Checks that no cut changes the answers. The first bytes decide how the other bytes are cut.
///
/// # Panics
/// If a cut changes them.
pub fn any_cut(bytes: &[u8]) {
    let (cuts, bytes) = bytes.split_at(bytes.len().min(8));
    let whole = answers(bytes, || usize::MAX, || usize::MAX);
    let mut next = cuts.iter().cycle().map(|cut| usize::from(*cut));
    let pieces = answers(bytes, || next.next().unwrap_or(1), || usize::MAX);
    assert!(whole == pieces, "a cut has changed the answers");
    let mut next = cuts.iter().cycle().map(|cut| usize::from(*cut) * 16);
    let slow = answers(bytes, || usize::MAX, || next.next().unwrap_or(1));
    assert!(whole == slow, "a slow client has other answers");
}
