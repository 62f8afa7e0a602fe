//! Connections alone: cuts of the bytes, limits, answers that arrive later, and other protocols.

use std::sync::Arc;

use dunlin_store::{Mode, Seconds};
use proptest::prelude::*;

use crate::check::{Threads, answers, any_cut, any_errands, any_login, server};
use crate::{
    Alone, Connection, Errand, INPUT_MARK, MAX_KEYS_LINE, MAX_WAITING, OUTPUT_MARK, Server, Users,
    Wants,
};

mod copies;
mod far;
mod full;
mod later;
mod limited;
mod lost;
mod parts;
mod reset;
mod scripts;

use scripts::piece;

const NOW: Seconds = Seconds(1_800_000_000);

/// Feeds bytes and returns all answers.
fn ask(connection: &mut Connection, server: &mut impl Server, mut bytes: &[u8]) -> String {
    let mut seen = Vec::new();
    loop {
        let taken = connection.receive(bytes);
        bytes = &bytes[taken..];
        let wants = connection.run(server, NOW);
        seen.extend_from_slice(connection.output());
        connection.sent(connection.output().len());
        if connection.is_over() || (wants == Wants::Input && bytes.is_empty()) {
            return String::from_utf8_lossy(&seen).into_owned();
        }
    }
}

/// Runs until the connection needs something other than turns.
fn turns(connection: &mut Connection, server: &mut impl Server) -> Wants {
    loop {
        match connection.run(server, NOW) {
            Wants::Turn => {}
            wants => return wants,
        }
    }
}

fn alone() -> Alone {
    server(Mode::Store, 8 << 20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_cut_of_the_bytes_changes_the_answers(
        setting in 0_u8..4,
        cuts in proptest::collection::vec(any::<u8>(), 8),
        pieces in proptest::collection::vec(piece(), 0..30),
    ) {
        let bytes = [vec![setting], cuts, pieces.concat()].concat();
        any_cut(&bytes);
        any_login(&bytes);
    }
}

#[test]
fn no_cut_of_the_corpus_changes_the_answers() {
    let inputs = dunlin_testkit::corpus::inputs("memcached");
    assert!(inputs.len() >= 8);
    for input in inputs {
        any_cut(&input);
        any_login(&input);
    }
}

#[test]
fn a_flush_may_have_a_delay() {
    let (mut server, mut connection) = (alone(), Connection::new(None));
    let mut at = |seconds: u32, bytes: &[u8]| {
        connection.receive(bytes);
        connection.run(&mut server, Seconds(NOW.0 + seconds));
        let seen = String::from_utf8_lossy(connection.output()).into_owned();
        connection.sent(connection.output().len());
        seen
    };
    assert_eq!(
        at(0, b"set a 0 0 1\r\nx\r\nflush_all 10\r\n"),
        "STORED\r\nOK\r\n"
    );
    assert_eq!(at(9, b"get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    assert_eq!(at(11, b"get a\r\n"), "END\r\n");
}

#[test]
fn a_value_may_come_byte_by_byte() {
    let bytes = b"set a 0 0 5\r\nab\r\nc\r\nget a\r\n";
    let seen = answers(1, bytes, || 1, || 1);
    assert_eq!(seen, b"STORED\r\nVALUE a 0 5\r\nab\r\nc\r\nEND\r\n");
}

#[test]
fn a_line_without_an_end_closes_the_connection_and_takes_no_memory() {
    for (begin, most) in [("mg ", INPUT_MARK), ("get ", MAX_KEYS_LINE + INPUT_MARK)] {
        let mut connection = Connection::new(None);
        let mut server = alone();
        connection.receive(begin.as_bytes());
        let piece = [b'x'; 50_000];
        let mut held = 0;
        let mut taken = 0;
        while taken < 100_000_000 {
            let room = connection.room();
            taken += connection.receive(&piece);
            if connection.run(&mut server, NOW) == Wants::End {
                break;
            }
            held += piece.len().min(room);
            assert!(held <= most, "{begin} holds {held} bytes");
        }
        assert_eq!(connection.output(), b"CLIENT_ERROR line too long\r\n");
        assert_eq!(connection.receive(&piece), piece.len());
        connection.sent(connection.output().len());
        assert!(connection.is_over());
    }
}

/// A refused value is discarded byte by byte as it arrives.
#[test]
fn a_value_of_two_gigabytes_takes_no_memory() {
    let (mut connection, mut server) = (Connection::new(None), alone());
    let answer = ask(&mut connection, &mut server, b"set k 0 0 2147483645\r\n");
    assert_eq!(answer, "SERVER_ERROR object too large for cache\r\n");
    let piece = vec![b'x'; INPUT_MARK];
    for _ in 0..2_147_483_647 / INPUT_MARK {
        assert_eq!(connection.receive(&piece), piece.len());
        assert_eq!(connection.run(&mut server, NOW), Wants::Input);
    }
    let rest = 2_147_483_647 % INPUT_MARK;
    let end = [&piece[..rest], b"mn\r\n"].concat();
    assert_eq!(ask(&mut connection, &mut server, &end), "MN\r\n");
    assert!(connection.input.held() <= 2 * INPUT_MARK);
}

/// The client requests much and reads nothing.
#[test]
fn the_output_for_a_client_that_never_reads_exceeds_its_mark_by_one_value_at_most() {
    let (mut connection, mut server) = (Connection::new(None), alone());
    let value = vec![b'v'; 1 << 20];
    let begin = format!("set k 0 0 {}\r\n", value.len());
    ask(&mut connection, &mut server, begin.as_bytes());
    ask(&mut connection, &mut server, &value);
    assert_eq!(ask(&mut connection, &mut server, b"\r\n"), "STORED\r\n");
    let line = format!("get{}\r\n", " k".repeat(1000));
    let mut taken = 0;
    for _ in 0..10_000 {
        let len = connection.receive(line.as_bytes());
        taken += len;
        let wants = turns(&mut connection, &mut server);
        assert!(wants == Wants::Output, "{wants:?}");
        if len == 0 {
            break;
        }
    }
    assert!(taken <= INPUT_MARK && connection.room() == 0, "{taken}");
    assert!(connection.output().len() <= OUTPUT_MARK + value.len() + 100);
    // Whenever the client takes a part of the output, there is room for only one more answer.
    connection.sent(connection.output().len());
    assert_eq!(turns(&mut connection, &mut server), Wants::Output);
    assert!(connection.output().len() > value.len());
}

#[test]
fn bytes_of_long_commands_are_pending_until_the_rest_arrives() {
    let (mut connection, mut server) = (Connection::new(None), alone());
    let mut pending = |bytes: &[u8]| {
        ask(&mut connection, &mut server, bytes);
        connection.pending()
    };
    assert_eq!(pending(b"set a 0 0 5\r\nab"), 15);
    assert_eq!(pending(b"cde\r\nget a"), 0);
    assert_eq!(pending(&b" a".repeat(3000)), 6005);
    assert_eq!(pending(b"\r\n"), 0);
}

#[test]
fn an_idle_connection_gives_its_memory_back() {
    let (mut connection, mut server) = (Connection::new(None), alone());
    let value = vec![b'v'; 1 << 20];
    ask(
        &mut connection,
        &mut server,
        &[b"set k 0 0 1048576\r\n", &value[..], b"\r\nget k\r\n"].concat(),
    );
    connection.trim();
    let held = connection.input.held() + connection.output.held();
    assert!(held <= 2 * 4096, "{held}");
}

#[test]
fn one_turn_is_bounded() {
    let (mut connection, mut server) = (Connection::new(None), alone());
    connection.receive(&b"delete k noreply\r\n".repeat(2000));
    assert_eq!(connection.run(&mut server, NOW), Wants::Turn);
    assert_eq!(ask(&mut connection, &mut server, b"mn\r\n"), "MN\r\n");
}

#[test]
fn a_binary_request_has_one_answer() {
    let (mut connection, mut server) = (Connection::new(None), alone());
    let mut request = [0_u8; 24];
    request[0] = 0x80;
    request[1] = 0x0a;
    request[12..16].copy_from_slice(b"opaq");
    for byte in &request[..23] {
        connection.receive(&[*byte]);
        assert_eq!(connection.run(&mut server, NOW), Wants::Input);
        assert!(connection.output().is_empty());
    }
    connection.receive(&request[23..]);
    assert_eq!(connection.run(&mut server, NOW), Wants::End);
    let answer = connection.output();
    assert_eq!(answer[..2], [0x81, 0x0a]);
    assert_eq!(answer[6..8], [0x00, 0x81]);
    assert_eq!(answer[8..12], 15_u32.to_be_bytes());
    assert_eq!(&answer[12..16], b"opaq");
    assert_eq!(&answer[24..], b"Unknown command");
}

#[test]
fn a_client_may_choose_the_version_of_what_it_writes() {
    let (mut connection, mut server) = (Connection::new(None), alone());
    let mut say = |bytes: &str| ask(&mut connection, &mut server, bytes.as_bytes());
    assert_eq!(say("ms a 1 E77\r\n5\r\nmg a c\r\n"), "HD\r\nHD c77\r\n");
    assert_eq!(say("ma a E99\r\nmg a c\r\n"), "HD\r\nHD c99\r\n");
}

#[test]
fn only_a_known_user_gets_in() {
    let users = Users::read(b"ann:secret\r\nbob:x:y\n\n").unwrap();
    assert!(Users::read(b"ann:secret\nbob\n").is_err_and(|error| error.line == 2));
    let (mut connection, mut server) = (Connection::new(Some(Arc::new(users))), alone());
    let mut say = |bytes: &str| ask(&mut connection, &mut server, bytes.as_bytes());
    let refused = "CLIENT_ERROR unauthenticated\r\n";
    assert_eq!(say("get a\r\nversion\r\nquit\r\n"), refused.repeat(3));
    assert_eq!(say("add a 0 0 10\r\n"), refused);
    let failure = "CLIENT_ERROR authentication failure\r\n";
    assert_eq!(say("set a 0 0 10\r\nann wrong1\r\n"), failure);
    assert_eq!(
        say("set a 0 0 3\r\nann\r\n"),
        "CLIENT_ERROR bad authentication token format\r\n"
    );
    assert_eq!(
        say("set a 0 0 3\r\nann  "),
        "CLIENT_ERROR bad command line termination\r\n"
    );
    assert_eq!(say("set a 0 0 7\r\nbob x:y\r\n"), "STORED\r\n");
    assert_eq!(say("get a\r\n"), "END\r\n");
    let stats = say("stats\r\n");
    assert!(stats.contains("STAT auth_cmds 2\r\n") && stats.contains("STAT auth_errors 1\r\n"));
}

#[test]
fn credentials_have_a_limit() {
    let users = Users::read(b"ann:secret").unwrap();
    let (mut connection, mut server) = (Connection::new(Some(Arc::new(users))), alone());
    let answer = ask(&mut connection, &mut server, b"set a 0 0 100000\r\n");
    assert_eq!(answer, "CLIENT_ERROR unauthenticated\r\n");
    assert!(connection.is_over());
}

/// With three threads, `f1` is in partition 1, and `f2` and `n` are in partition 2.
fn threads() -> Threads {
    Threads::new(3, Mode::Store, 4 << 20)
}

/// Feeds bytes, carries errands as long as there are any, and returns all answers.
fn ask_threads(connection: &mut Connection, server: &mut Threads, mut bytes: &[u8]) -> String {
    let mut seen = String::new();
    loop {
        let taken = connection.receive(bytes);
        bytes = &bytes[taken..];
        let wants = connection.run(server, NOW);
        let carried = server.carry(connection, 16, NOW);
        seen += &String::from_utf8_lossy(connection.output());
        connection.sent(connection.output().len());
        let is_done = wants == Wants::Input && bytes.is_empty() && carried == 0;
        if connection.is_over() || is_done {
            assert!(connection.is_settled());
            return seen;
        }
    }
}

fn answers_to(pieces: &[Vec<u8>], partitions: usize) -> String {
    let mut server = Threads::new(partitions, Mode::Store, 4 << 20);
    ask_threads(&mut Connection::new(None), &mut server, &pieces.concat())
}

/// The lines without versions, which each partition counts separately, and without figures of
/// tables.
fn comparable(answers: &str) -> String {
    let is_table = |line: &str| {
        ["hash_", "bytes ", "total_malloced"]
            .iter()
            .any(|name| line.contains(name))
    };
    let lines = answers.lines().filter(|line| !is_table(line));
    let mut lines: Vec<&str> = lines
        .map(|line| line.split_once(" cas=").map_or(line, |(line, _)| line))
        .collect();
    // A list has the items in partition order.
    for part in
        lines.chunk_by_mut(|one, other| one.starts_with("key=") && other.starts_with("key="))
    {
        part.sort_unstable();
    }
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_number_of_threads_changes_no_answer(
        pieces in proptest::collection::vec(piece(), 0..40),
    ) {
        let shows_version = |piece: &Vec<u8>| {
            [&b"gets"[..], b"mg a v k O1 t c", b"ms a 2 c"].iter().any(|it| piece.starts_with(it))
        };
        let pieces: Vec<Vec<u8>> = pieces.into_iter().filter(|it| !shows_version(it)).collect();
        let one = comparable(&answers_to(&pieces, 1));
        for partitions in [2, 3, 7] {
            prop_assert_eq!(&one, &comparable(&answers_to(&pieces, partitions)));
        }
    }

    #[test]
    fn any_bytes_as_an_errand_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        any_errands(&bytes);
    }
}

#[test]
fn answers_of_other_threads_keep_their_order() {
    let (mut connection, mut server) = (Connection::new(None), threads());
    let begin =
        b"set f1 1 0 1\r\nx\r\nset f2 2 0 1\r\ny\r\nset n 3 0 1\r\nz\r\nset c 4 0 0\r\n\r\n";
    let stored = ask_threads(&mut connection, &mut server, begin);
    assert_eq!(stored, "STORED\r\n".repeat(4));
    connection.receive(b"get f1 c n f3\r\nmg f1 k v\r\ngat 0 f2\r\nmg x q\r\nmn\r\nquit\r\n");
    assert_eq!(connection.run(&mut server, NOW), Wants::End);
    assert!(connection.output().is_empty() && !connection.is_over());
    let mut errands: Vec<Errand> = Vec::new();
    for partition in [2, 1] {
        errands.extend(std::iter::from_fn(|| connection.next_errand(partition)));
    }
    // The last answer arrives first.
    for errand in errands.into_iter().rev() {
        connection.give_back(errand);
        assert_eq!(server.carry(&mut connection, 1, NOW), 1);
    }
    let parts = [
        "VALUE f1 1 1\r\nx\r\n",
        "VALUE c 4 0\r\n\r\n",
        "VALUE n 3 1\r\nz\r\n",
        "END\r\n",
        "VA 1 kf1\r\nx\r\n",
        "VALUE f2 2 1\r\ny\r\n",
        "END\r\n",
        "MN\r\n",
    ];
    assert_eq!(String::from_utf8_lossy(connection.output()), parts.concat());
}

/// A quiet command also waits for its partition, so the memory for a client that sends quickly is
/// bounded.
#[test]
fn a_connection_waits_for_a_few_answers_at_most() {
    for (command, answer) in [("get f1\r\n", "END\r\n"), ("delete f1 noreply\r\n", "")] {
        let (mut connection, mut server) = (Connection::new(None), threads());
        connection.receive(command.repeat(100).as_bytes());
        assert_eq!(connection.run(&mut server, NOW), Wants::Answers);
        assert_eq!(connection.destinations().count(), MAX_WAITING);
        assert_eq!(server.carry(&mut connection, 1, NOW), 1);
        assert_eq!(connection.output(), answer.as_bytes());
        assert_eq!(connection.run(&mut server, NOW), Wants::Answers);
        assert_eq!(connection.destinations().count(), MAX_WAITING);
    }
    let (mut connection, mut server) = (Connection::new(None), threads());
    let write = format!("set f1 0 0 30000 noreply\r\n{}\r\n", "v".repeat(30_000));
    let mut taken = 0;
    while taken < 1 << 20 && connection.run(&mut server, NOW) != Wants::Answers {
        taken += connection.receive(write.as_bytes());
    }
    assert!(taken < 4 * 30_100, "{taken} bytes wait for another thread");
}

/// The client has read all output, so only the answer can let the connection continue.
#[test]
fn bytes_after_an_outstanding_answer_make_a_connection_wait_for_it() {
    let (mut connection, mut server) = (Connection::new(None), threads());
    let write = format!("set c 0 0 70000\r\n{}\r\n", "v".repeat(70_000));
    ask_threads(&mut connection, &mut server, write.as_bytes());
    connection.receive(b"get f1\r\nget c\r\n");
    assert_eq!(turns(&mut connection, &mut server), Wants::Answers);
    assert!(connection.output().is_empty());
    server.carry(&mut connection, 1, NOW);
    assert_eq!(connection.run(&mut server, NOW), Wants::Output);
}

/// The far partition has large values. The client requests many and reads nothing.
#[test]
fn a_client_that_never_reads_holds_few_values_of_other_threads() {
    let (mut connection, mut server) = (Connection::new(None), threads());
    let value = "v".repeat(1 << 20);
    for key in ["f1", "f2"] {
        let write = format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
        ask_threads(&mut connection, &mut server, write.as_bytes());
    }
    connection.receive("get f1 f2\r\n".repeat(100).as_bytes());
    for _ in 0..200 {
        connection.run(&mut server, NOW);
        server.carry(&mut connection, 100, NOW);
    }
    let held = connection.output().len();
    assert!(held <= 3 * (OUTPUT_MARK + value.len()), "{held}");
    assert_eq!(connection.destinations().count(), 0);
    let mut seen = 0;
    for _ in 0..5000 {
        seen += connection.output().len();
        connection.sent(connection.output().len());
        connection.run(&mut server, NOW);
        server.carry(&mut connection, 100, NOW);
    }
    assert_eq!(
        seen,
        100 * (2 * ("VALUE f1 0 1048576\r\n".len() + value.len() + 2) + 5)
    );
}

/// A number may begin with any number of zeros, and a list of keys may have a long line.
#[test]
fn a_time_longer_than_a_line_is_refused() {
    let (mut connection, mut server) = (Connection::new(None), threads());
    let line = format!("gat {}1 f1\r\nmn\r\n", "0".repeat(70_000));
    let answer = ask_threads(&mut connection, &mut server, line.as_bytes());
    assert_eq!(answer, "CLIENT_ERROR invalid exptime argument\r\nMN\r\n");
}

/// For memcached, a zero byte ends the line.
#[test]
fn keys_after_a_zero_byte_are_not_read() {
    let mut bytes = b"get a\0".to_vec();
    bytes.extend([b'x'; 300]);
    bytes.extend(b" c\r\nmn\r\n");
    let answer = ask(&mut Connection::new(None), &mut alone(), &bytes);
    assert_eq!(answer, "END\r\nMN\r\n");
}
