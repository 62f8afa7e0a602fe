//! Answers of other threads that never arrive.

use super::{NOW, ask_threads, threads, turns};
use crate::connection::LOST;
use crate::{Connection, Errand, Wants};

#[test]
fn commands_to_a_thread_that_does_not_answer_end_with_an_error() {
    let (mut connection, mut server) = (Connection::new(None), threads());
    let lost = format!("{LOST}\r\n");
    for (command, answer) in [
        ("get f1 c\r\n", lost.clone()),
        ("get c f1 f2 n\r\n", lost.clone()),
        ("gat 10 c n f2\r\n", lost.clone()),
        ("mg f1 q\r\n", lost.clone()),
        ("delete f1 noreply\r\n", String::new()),
        ("set f1 0 0 1\r\nx\r\n", lost.clone()),
        ("flush_all\r\n", lost.clone()),
        ("flush_all noreply\r\n", String::new()),
        ("stats\r\n", lost.clone()),
        ("lru_crawler metadump all\r\n", lost.clone()),
    ] {
        connection.receive(command.as_bytes());
        connection.receive(b"mn\r\n");
        connection.run(&mut server, NOW);
        for partition in [1, 2] {
            while let Some(errand) = connection.next_errand(partition) {
                connection.on_answer(&errand, None, &mut server, NOW);
            }
        }
        connection.run(&mut server, NOW);
        let seen = String::from_utf8_lossy(connection.output()).into_owned();
        assert_eq!(seen, format!("{answer}MN\r\n"), "{command}");
        connection.sent(connection.output().len());
    }
}

/// Bytes that have left cannot be taken back.
#[test]
fn an_error_after_the_beginning_of_a_long_answer_ends_the_connection() {
    let (mut connection, mut server) = (Connection::new(None), threads());
    let write = format!("set c 0 0 70000\r\n{}\r\n", "v".repeat(70_000));
    ask_threads(&mut connection, &mut server, write.as_bytes());
    connection.receive(b"get c f1 c\r\nmn\r\n");
    assert_eq!(turns(&mut connection, &mut server), Wants::Output);
    assert!(connection.output().starts_with(b"VALUE c 0 70000\r\n"));
    connection.sent(connection.output().len());
    connection.run(&mut server, NOW);
    let errand = connection
        .next_errand(1)
        .or_else(|| connection.next_errand(2));
    connection.on_answer(&errand.unwrap(), None, &mut server, NOW);
    assert_eq!(connection.run(&mut server, NOW), Wants::End);
    assert!(connection.output().is_empty() && connection.is_over());
}

/// The connection has not read all keys of the list yet, and waits for nothing else.
#[test]
fn the_only_answer_of_another_thread_is_lost_while_keys_are_read() {
    let (mut connection, mut server) = (Connection::new(None), threads());
    connection.receive(format!("get f1 {}\r\nmn\r\n", "c ".repeat(400)).as_bytes());
    assert_eq!(connection.run(&mut server, NOW), Wants::Turn);
    let errand = connection
        .next_errand(1)
        .or_else(|| connection.next_errand(2));
    connection.on_answer(&errand.unwrap(), None, &mut server, NOW);
    assert_eq!(connection.run(&mut server, NOW), Wants::Input);
    let seen = String::from_utf8_lossy(connection.output());
    assert_eq!(seen, format!("{LOST}\r\nMN\r\n"));
}

/// After one answer of a list is lost, the connection discards later answers of the list, and does
/// not ask for its unread keys.
#[test]
fn a_list_with_lost_items_has_one_error_in_any_order_of_answers() {
    let lost = format!("{LOST}\r\n");
    let keys = "f1 c f2 n ".repeat(200);
    for lost_first in [0, 1, 2, 30] {
        let (mut connection, mut server) = (Connection::new(None), threads());
        connection.receive(format!("get {keys}\r\nmn\r\n").as_bytes());
        connection.run(&mut server, NOW);
        let next = |connection: &mut Connection| {
            let mut partitions = [1, 2].into_iter();
            partitions.find_map(|partition| connection.next_errand(partition))
        };
        let out: Vec<Errand> = std::iter::from_fn(|| next(&mut connection)).collect();
        assert!(out.len() > 30, "{} errands", out.len());
        for (number, errand) in out.iter().enumerate() {
            let answer = (number != lost_first).then_some(&b"VALUE f 0 1\r\nx\r\n"[..]);
            connection.on_answer(errand, answer, &mut server, NOW);
        }
        connection.run(&mut server, NOW);
        assert!(
            next(&mut connection).is_none(),
            "a key of it is still asked for"
        );
        let seen = String::from_utf8_lossy(connection.output()).into_owned();
        assert_eq!(
            seen,
            format!("{lost}MN\r\n"),
            "the errand {lost_first} is lost"
        );
    }
}
