//! Long values, which are read in slices: what the client sees, and which turns others get
//! meanwhile.

use dunlin_store::{MAX_VALUE, SLICE};

use super::*;

fn set(key: &str, byte: u8, len: usize) -> Vec<u8> {
    let line = format!("set {key} 0 0 {len}\r\n");
    [line.as_bytes(), &vec![byte; len], b"\r\n"].concat()
}

fn shown(key: &str, byte: u8, len: usize) -> String {
    let value = String::from_utf8(vec![byte; len]).unwrap();
    format!("VALUE {key} 0 {len}\r\n{value}\r\n")
}

/// Runs turns until the connection wants something else, and returns the bytes for the client.
/// `between` runs after each turn.
fn turns_with(
    reader: &mut Connection,
    server: &mut impl Server,
    mut between: impl FnMut(usize, &mut dyn FnMut(&[u8])),
) -> (usize, String) {
    let (mut count, mut seen) = (0, Vec::new());
    loop {
        let wants = reader.run(server, NOW);
        seen.extend_from_slice(reader.output());
        reader.sent(reader.output().len());
        match wants {
            Wants::Turn => count += 1,
            Wants::Output => {}
            _ => return (count, String::from_utf8(seen).unwrap()),
        }
        between(count, &mut |bytes| {
            ask(&mut Connection::new(None), server, bytes);
        });
    }
}

#[test]
fn other_clients_have_turns_while_a_long_value_is_read() {
    let mut server = alone();
    ask(
        &mut Connection::new(None),
        &mut server,
        &set("film", b'f', MAX_VALUE),
    );
    for (command, expected) in [
        (
            "get film\r\n",
            format!("{}END\r\n", shown("film", b'f', MAX_VALUE)),
        ),
        (
            "mg film v\r\n",
            shown("film", b'f', MAX_VALUE).replace("VALUE film 0", "VA"),
        ),
    ] {
        let mut reader = Connection::new(None);
        reader.receive(command.as_bytes());
        let mut turns = 0;
        while reader.run(&mut server, NOW) == Wants::Turn {
            turns += 1;
            let seen = ask(&mut Connection::new(None), &mut server, b"mg film s\r\n");
            assert_eq!(seen, format!("HD s{MAX_VALUE}\r\n"));
            // Nothing of the value leaves before it is complete.
            assert!(reader.output().is_empty());
        }
        // A turn copies at most 64 KiB.
        assert_eq!(turns, MAX_VALUE / SLICE);
        let mut seen = reader.output().to_vec();
        reader.sent(seen.len());
        assert_eq!(reader.run(&mut server, NOW), Wants::Input);
        seen.extend_from_slice(reader.output());
        assert!(seen == expected.as_bytes(), "{command}");
    }
}

#[test]
fn a_value_that_is_overwritten_or_removed_meanwhile_is_never_mixed() {
    for (command, when) in [("get film b\r\n", 3), ("mg film v\r\nmn\r\n", 16)] {
        for (change, next) in [
            (set("film", b'2', MAX_VALUE), Some((b'2', MAX_VALUE))),
            (set("film", b'2', 70_000), Some((b'2', 70_000))),
            (set("film", b'2', 5), Some((b'2', 5))),
            (b"delete film\r\n".to_vec(), None),
            (b"append film 0 0 1\r\nx\r\n".to_vec(), None),
        ] {
            for mode in [Mode::Cache, Mode::Store] {
                let mut server = server(mode, 16 << 20);
                let mut writer = Connection::new(None);
                ask(&mut writer, &mut server, &set("film", b'1', MAX_VALUE - 1));
                ask(&mut writer, &mut server, b"set b 0 0 1\r\nb\r\n");
                let mut reader = Connection::new(None);
                reader.receive(command.as_bytes());
                let (_, seen) = turns_with(&mut reader, &mut server, |count, change_it| {
                    if count == when {
                        change_it(&change);
                    }
                });
                let item = match next {
                    Some((byte, len)) => shown("film", byte, len),
                    None if change[0] == b'a' => {
                        let value = shown("film", b'1', MAX_VALUE - 1);
                        let value = value.replace(&(MAX_VALUE - 1).to_string(), "1048576");
                        format!("{}x\r\n", value.trim_end())
                    }
                    None => String::new(),
                };
                let expected = match (command.as_bytes()[0], item.is_empty()) {
                    (b'g', _) => format!("{item}{}END\r\n", shown("b", b'b', 1)),
                    (_, false) => format!("{}MN\r\n", item.replace("VALUE film 0", "VA")),
                    (_, true) => "EN\r\nMN\r\n".to_owned(),
                };
                let place = change.escape_ascii().to_string();
                let (seen_len, place) = (seen.len(), &place[..12]);
                assert!(
                    seen == expected,
                    "{mode:?}, {command:?}, {place}: {seen_len} bytes"
                );
            }
        }
    }
}

/// A cache overwrites a value of the same length in place.
#[test]
fn a_value_that_is_always_overwritten_is_finally_read_in_one_piece() {
    let mut server = server(Mode::Cache, 16 << 20);
    ask(
        &mut Connection::new(None),
        &mut server,
        &set("film", b'0', 200_000),
    );
    let mut reader = Connection::new(None);
    reader.receive(b"get film\r\nget film\r\n");
    let mut byte = b'0';
    let (count, seen) = turns_with(&mut reader, &mut server, |_, change| {
        byte = if byte == b'9' { b'0' } else { byte + 1 };
        change(&set("film", byte, 200_000));
    });
    // Each of the two commands starts over three times.
    assert_eq!(count, 6);
    let answer = shown("film", b'0', 200_000).len() + "END\r\n".len();
    assert_eq!(seen.len(), 2 * answer);
    for answer in seen.as_bytes().chunks(answer) {
        let value = &answer[answer.len() - 200_007..answer.len() - 7];
        assert!(
            value.iter().all(|byte| *byte == value[0]),
            "values are mixed"
        );
    }
}

/// The client gets the value that it lets expire at once, but no client after it does.
#[test]
fn a_read_that_lets_its_item_expire_shows_the_whole_long_value() {
    let now = NOW.0;
    let value = shown("a", b'v', 200_000);
    let meta = value.replace("VALUE a 0", "VA");
    for (command, expected) in [
        ("gat -1 a\r\n".to_owned(), format!("{value}END\r\n")),
        (format!("gat {now} a b\r\n"), format!("{value}END\r\n")),
        ("mg a v T-1\r\n".to_owned(), meta.clone()),
        (
            "mg a v N-1 R30 T-1\r\nmn\r\n".to_owned(),
            format!("{meta}MN\r\n"),
        ),
    ] {
        // With two threads, the other one has the key.
        for threads in [1, 2] {
            for mode in [Mode::Cache, Mode::Store] {
                let mut server = Threads::new(threads, mode, 16 << 20);
                let mut client = Connection::new(None);
                ask_threads(&mut client, &mut server, &set("a", b'v', 200_000));
                let seen = ask_threads(&mut client, &mut server, command.as_bytes());
                let place = format!("{command:?}, {threads}, {mode:?}: {}", seen.len());
                assert!(seen == expected, "{place}");
                assert_eq!(
                    ask_threads(&mut client, &mut server, b"get a\r\n"),
                    "END\r\n"
                );
            }
        }
    }
}

#[test]
fn long_and_short_items_of_a_list_keep_their_order() {
    let mut server = alone();
    let mut writer = Connection::new(None);
    let items = [
        ("a", 70_000),
        ("b", 3),
        ("c", 65_536),
        ("d", 65_537),
        ("e", 300_000),
    ];
    for (key, len) in items {
        ask(&mut writer, &mut server, &set(key, key.as_bytes()[0], len));
    }
    let list: String = items
        .map(|(key, len)| shown(key, key.as_bytes()[0], len))
        .concat();
    let mut reader = Connection::new(None);
    let command = b"get a none b c d e\r\nmg b s\r\nmg e v\r\nget b\r\n";
    let expected = format!(
        "{list}END\r\nHD s3\r\n{}{}END\r\n",
        shown("e", b'e', 300_000).replace("VALUE e 0", "VA"),
        shown("b", b'b', 3)
    );
    let seen = ask(&mut reader, &mut server, command);
    assert!(
        seen == expected,
        "{} of {} bytes",
        seen.len(),
        expected.len()
    );
    // A client that takes one byte at a time gets the same answers.
    let mut slow = Connection::new(None);
    slow.receive(command);
    let mut seen = Vec::new();
    while slow.run(&mut server, NOW) != Wants::Input || !slow.output().is_empty() {
        let len = slow.output().len().min(10_007);
        seen.extend_from_slice(&slow.output()[..len]);
        slow.sent(len);
    }
    assert!(seen == expected.as_bytes());
}

/// An item of another thread is lost while the list's own long item is copied.
#[test]
fn a_list_whose_other_item_is_lost_has_one_error() {
    let mut server = Threads::new(2, Mode::Store, 4 << 20);
    let here = ["a", "b"]
        .into_iter()
        .find(|key| server.owner(key.as_bytes()) == 0);
    let there = ["a", "b"]
        .into_iter()
        .find(|key| server.owner(key.as_bytes()) == 1);
    let (here, there) = (here.unwrap(), there.unwrap());
    ask_threads(
        &mut Connection::new(None),
        &mut server,
        &set(here, b'v', 300_000),
    );
    let mut reader = Connection::new(None);
    let command = format!("get {there} {here}\r\nmn\r\n");
    reader.receive(command.as_bytes());
    for _ in 0..3 {
        assert_eq!(reader.run(&mut server, NOW), Wants::Turn);
    }
    let errand = reader.next_errand(1).unwrap();
    reader.on_answer(&errand, None, &mut server, NOW);
    let (_, seen) = turns_with(&mut reader, &mut server, |_, _| {});
    assert!(seen.starts_with("SERVER_ERROR"), "{seen}");
    assert!(
        seen.ends_with("\r\nMN\r\n") && seen.lines().count() == 2,
        "{seen}"
    );
}
