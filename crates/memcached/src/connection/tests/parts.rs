//! Long values, which are written in parts: what others see meanwhile.

use dunlin_store::MAX_VALUE;

use super::*;
use crate::BurstRun;

/// Gives a connection all bytes; it runs its commands except for the last one.
fn feed(connection: &mut Connection, server: &mut impl Server, mut bytes: &[u8]) {
    loop {
        let taken = connection.receive(bytes);
        bytes = &bytes[taken..];
        if bytes.is_empty() {
            return;
        }
        assert_eq!(connection.run(server, NOW), Wants::Input);
    }
}

fn long_set() -> Vec<u8> {
    long_set_of("film")
}

fn long_set_of(key: &str) -> Vec<u8> {
    let line = format!("set {key} 0 0 {MAX_VALUE}\r\n");
    [line.as_bytes(), &vec![b'v'; MAX_VALUE], b"\r\n"].concat()
}

#[test]
fn others_see_the_old_value_while_a_long_one_is_written() {
    let mut server = alone();
    let (mut writer, mut reader) = (Connection::new(None), Connection::new(None));
    ask(&mut writer, &mut server, b"set film 0 0 3\r\nold\r\n");
    feed(&mut writer, &mut server, &long_set());
    let mut turns = 0;
    while writer.run(&mut server, NOW) == Wants::Turn {
        let seen = ask(&mut reader, &mut server, b"get film\r\n");
        assert_eq!(seen, "VALUE film 0 3\r\nold\r\nEND\r\n", "turn {turns}");
        assert!(writer.output().is_empty());
        // The next command waits until the value is written.
        assert_eq!(writer.receive(b"touch film 0\r\n"), 0);
        turns += 1;
    }
    // A turn copies 64 KiB.
    assert!(turns >= 16, "{turns} turns");
    assert_eq!(writer.output(), b"STORED\r\n");
    let seen = ask(&mut reader, &mut server, b"mg film s\r\n");
    assert_eq!(seen, format!("HD s{MAX_VALUE}\r\n"));
}

#[test]
fn a_client_that_vanishes_gives_the_room_of_its_value_back() {
    let mut server = server(Mode::Store, 2 << 20);
    for round in 0..40 {
        let mut writer = Connection::new(None);
        feed(&mut writer, &mut server, &long_set());
        for _ in 0..3 {
            assert_eq!(writer.run(&mut server, NOW), Wants::Turn);
        }
        match round % 2 {
            0 => writer.abandon(&mut server),
            _ => writer.refuse_rest(&mut server),
        }
    }
    let mut writer = Connection::new(None);
    assert_eq!(ask(&mut writer, &mut server, &long_set()), "STORED\r\n");
}

/// The client sees a part of a list whose other item is lost while a later value is written.
#[test]
fn a_connection_that_ends_gives_the_room_of_its_value_back() {
    let mut server = Threads::new(3, Mode::Store, 4 << 20);
    let mut prepare = Connection::new(None);
    let large = format!("set c 0 0 70000\r\n{}\r\n", "v".repeat(70_000));
    ask_threads(&mut prepare, &mut server, large.as_bytes());
    for round in 0..8 {
        let mut writer = Connection::new(None);
        writer.receive(b"get c f1\r\n");
        while turns(&mut writer, &mut server) == Wants::Output {
            writer.sent(writer.output().len());
        }
        writer.sent(writer.output().len());
        feed(&mut writer, &mut server, &long_set_of("c"));
        for _ in 0..3 {
            assert_eq!(writer.run(&mut server, NOW), Wants::Turn, "round {round}");
        }
        let errand = writer.next_errand(1).or_else(|| writer.next_errand(2));
        writer.on_answer(&errand.unwrap(), None, &mut server, NOW);
        assert_eq!(writer.run(&mut server, NOW), Wants::End);
    }
    let set = [&long_set_of("c")[..], b"get n\r\n"].concat();
    let seen = ask_threads(&mut Connection::new(None), &mut server, &set);
    assert_eq!(seen, "STORED\r\nEND\r\n");
}

#[test]
fn a_burst_of_errands_waits_for_its_long_value() {
    let mut server = alone();
    let long = vec![b'v'; MAX_VALUE];
    let line = format!("set film 0 0 {MAX_VALUE}");
    let errand = |line: &[u8], value: &[u8]| {
        let mut bytes = vec![0];
        bytes.extend_from_slice(&u16::try_from(line.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(value.len()).unwrap().to_le_bytes());
        [&bytes[..], line, value].concat()
    };
    let burst = [
        errand(b"set before 0 0 1", b"b"),
        errand(line.as_bytes(), &long),
        errand(b"get before", b""),
    ]
    .concat();
    let (mut run, mut calls) = (BurstRun::new(Vec::new()), 1);
    while server.partition().run_errands(&burst, &mut run, NOW) == Ok(false) {
        let mut reader = Connection::new(None);
        let seen = ask(&mut reader, &mut server, b"mg film s\r\nmg before s\r\n");
        assert_eq!(seen, "EN\r\nHD s1\r\n");
        calls += 1;
    }
    assert!(calls >= 17, "{calls} calls");
    let answers: Vec<&[u8]> = crate::answers(run.answers()).collect();
    assert_eq!(
        answers,
        [
            &b"STORED\r\n"[..],
            b"STORED\r\n",
            b"VALUE before 0 1\r\nb\r\n"
        ]
    );
}

#[test]
fn the_rest_of_a_command_can_be_refused() {
    let (mut connection, mut server) = (Connection::new(None), alone());
    ask(&mut connection, &mut server, b"set a 0 0 5\r\nab");
    assert_eq!((connection.used(), connection.pending()), (0, 15));
    connection.refuse_rest(&mut server);
    let seen = ask(&mut connection, &mut server, b"cde\r\nget a\r\n");
    assert_eq!(seen, "SERVER_ERROR out of memory reading request\r\n");
    assert!(connection.is_over() && connection.pending() == 0);
    assert_eq!(
        ask(&mut Connection::new(None), &mut server, b"get a\r\n"),
        "END\r\n"
    );
}
