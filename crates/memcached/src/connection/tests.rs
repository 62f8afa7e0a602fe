//! Connections on their own: cuts of the bytes, limits, answers that come later, other protocols.

use std::sync::Arc;

use dunlin_store::{Mode, Seconds};
use proptest::prelude::*;

use crate::check::{answers, any_cut, server};
use crate::operation::{Answer, Operation};
use crate::{
    Alone, Connection, INPUT_MARK, MAX_KEYS_LINE, MAX_WAITING, OUTPUT_MARK, OperationTicket,
    Server, Started, Users, Wants,
};

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

fn alone() -> Alone {
    server(Mode::Store, 8 << 20)
}

/// A piece of a client's bytes.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let whole = [
        "get a b\r\n",
        "gets a\r\n",
        "gat 10 a b\r\n",
        "set a 1 0 3\r\nabc\r\n",
        "add b 0 0 0\r\n\r\n",
        "append a 0 0 2\r\nxy\r\n",
        "incr a 1\r\n",
        "delete a noreply\r\n",
        "touch a 5\r\n",
        "mg a v k O1 t c\r\n",
        "mg c N10 v\r\n",
        "ms a 2 c T9\r\nhi\r\n",
        "md a I\r\n",
        "ma n N0 v\r\n",
        "me a\r\n",
        "mn\r\n",
        "stats\r\n",
        "flush_all\r\n",
        "lru_crawler metadump all\r\n",
        "set big 0 0 70000\r\n",
        "set huge 0 0 2000000\r\n",
        "ms b 5 ! \r\n12345\r\n",
        "quit\r\n",
    ];
    prop_oneof![
        12 => proptest::sample::select(whole.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => Just(vec![b'v'; 3000]),
        1 => Just(b"\r\n".to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_cut_of_the_bytes_changes_the_answers(
        cuts in proptest::collection::vec(any::<u8>(), 8),
        pieces in proptest::collection::vec(piece(), 0..30),
    ) {
        any_cut(&[cuts, pieces.concat()].concat());
    }
}

#[test]
fn no_cut_of_the_corpus_changes_the_answers() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/memcached");
    let files = std::fs::read_dir(corpus).unwrap();
    let inputs: Vec<Vec<u8>> = files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect();
    assert!(inputs.len() >= 8);
    for input in inputs {
        any_cut(&input);
    }
}

#[test]
fn a_value_may_come_byte_by_byte() {
    let bytes = b"set a 0 0 5\r\nab\r\nc\r\nget a\r\n";
    let seen = answers(bytes, || 1, || 1);
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

/// A value that is refused is thrown away byte by byte as it comes.
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

/// The client asks for much and takes nothing.
#[test]
fn a_client_that_never_reads_holds_one_value_and_the_mark() {
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
        let wants = connection.run(&mut server, NOW);
        assert!(wants == Wants::Output, "{wants:?}");
        if len == 0 {
            break;
        }
    }
    assert!(taken <= INPUT_MARK && connection.room() == 0, "{taken}");
    assert!(connection.output().len() <= OUTPUT_MARK + value.len() + 100);
    // Whenever the client takes a part of the output, there is room for one more answer only.
    connection.sent(connection.output().len());
    assert_eq!(connection.run(&mut server, NOW), Wants::Output);
    assert!(connection.output().len() > value.len());
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
fn one_turn_has_an_end() {
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

/// A server in which another thread's partition has all keys that begin with `f`.
struct Far {
    near: Alone,
    sent: Vec<(OperationTicket, String)>,
}

impl Server for Far {
    fn start(
        &mut self,
        ticket: OperationTicket,
        operation: &Operation<'_>,
        now: Seconds,
        see: impl FnOnce(&Answer<'_>),
    ) -> Started {
        if operation.key().is_none_or(|key| !key.starts_with(b"f")) {
            return self.near.start(ticket, operation, now, see);
        }
        self.sent.push((ticket, format!("{operation:?}")));
        // The other partition has run it; the test chooses when to give the answer.
        self.near.start(ticket, operation, now, |_| ());
        Started::Later
    }
}

/// Gives the answer to an operation on `key`, which was `get`.
fn answer_get(connection: &mut Connection, far: &mut Far, ticket: OperationTicket, key: &[u8]) {
    let operation = Operation::Get { key, touch: None };
    far.near.start(ticket, &operation, NOW, |answer| {
        connection.on_answer(ticket, answer, NOW);
    });
}

#[test]
fn answers_that_come_later_keep_their_order() {
    let mut far = Far {
        near: alone(),
        sent: Vec::new(),
    };
    let mut connection = Connection::new(None);
    ask(
        &mut connection,
        &mut far.near,
        b"set f1 1 0 1\r\nx\r\nset f2 2 0 1\r\ny\r\nset n 3 0 1\r\nz\r\n",
    );
    connection.receive(b"gets f1 n f2 f3\r\nmg f1 k v\r\nget n\r\n");
    assert_eq!(connection.run(&mut far, NOW), Wants::Input);
    assert!(connection.output().is_empty() && far.sent.len() == 4);
    let tickets: Vec<OperationTicket> = far.sent.iter().map(|(ticket, _)| *ticket).collect();
    answer_get(&mut connection, &mut far, tickets[1], b"f2");
    assert!(connection.output().is_empty());
    answer_get(&mut connection, &mut far, tickets[0], b"f1");
    assert!(connection.output().ends_with(b"VALUE f2 2 1 2\r\ny\r\n"));
    connection.on_answer(tickets[2], &Answer::Missing, NOW);
    answer_get(&mut connection, &mut far, tickets[3], b"f1");
    // An answer that is not due changes nothing.
    connection.on_answer(tickets[3], &Answer::Missing, NOW);
    let seen = String::from_utf8_lossy(connection.output());
    let parts = [
        "VALUE f1 1 1 1\r\nx\r\n",
        "VALUE n 3 1 3\r\nz\r\n",
        "VALUE f2 2 1 2\r\ny\r\n",
        "END\r\n",
        "VA 1 kf1\r\nx\r\n",
        "VALUE n 3 1\r\nz\r\n",
        "END\r\n",
    ];
    assert_eq!(seen, parts.concat());
}

#[test]
fn a_connection_waits_for_a_few_answers_at_most() {
    let mut far = Far {
        near: alone(),
        sent: Vec::new(),
    };
    let mut connection = Connection::new(None);
    connection.receive(b"get f\r\n".repeat(100).as_slice());
    assert_eq!(connection.run(&mut far, NOW), Wants::Answers);
    assert_eq!(far.sent.len(), MAX_WAITING);
    connection.on_answer(far.sent[0].0, &Answer::Missing, NOW);
    assert_eq!(connection.output(), b"END\r\n");
    assert_eq!(connection.run(&mut far, NOW), Wants::Answers);
    assert_eq!(far.sent.len(), MAX_WAITING + 1);
}
