//! Long values of another thread, which are fetched in slices.

use dunlin_store::{MAX_VALUE, SLICE};

use super::*;
use crate::BurstRun;

/// A key of the other thread.
const FAR: &str = "a";

fn set(byte: u8, len: usize) -> Vec<u8> {
    let line = format!("set {FAR} 0 0 {len}\r\n");
    [line.as_bytes(), &vec![byte; len], b"\r\n"].concat()
}

fn shown(byte: u8, len: usize) -> String {
    let value = String::from_utf8(vec![byte; len]).unwrap();
    format!("VALUE {FAR} 0 {len}\r\n{value}\r\n")
}

fn two_threads(mode: Mode) -> Threads {
    let mut server = Threads::new(2, mode, 16 << 20);
    assert_eq!(server.owner(FAR.as_bytes()), 1);
    ask_threads(
        &mut Connection::new(None),
        &mut server,
        &set(b'1', MAX_VALUE),
    );
    server
}

/// Sends commands, and carries all errands in bursts until no errand is left. `between` runs before
/// each burst, with the number of earlier ones. Returns the answers, the number of bursts, and the
/// bytes of the longest answer to one.
fn carry(
    command: &[u8],
    server: &mut Threads,
    mut between: impl FnMut(usize, &mut Threads),
) -> (String, usize, usize) {
    let mut reader = Connection::new(None);
    reader.receive(command);
    let (mut seen, mut bursts, mut longest) = (Vec::new(), 0, 0);
    loop {
        let wants = turns(&mut reader, server);
        seen.extend_from_slice(reader.output());
        reader.sent(reader.output().len());
        let mut burst: Vec<Errand> = std::iter::from_fn(|| reader.next_errand(1)).collect();
        match wants {
            Wants::Output if burst.is_empty() => continue,
            _ if burst.is_empty() => return (String::from_utf8(seen).unwrap(), bursts, longest),
            _ => {}
        }
        between(bursts, server);
        bursts += 1;
        let bytes: Vec<u8> = burst.iter().flat_map(Errand::bytes).copied().collect();
        let mut run = BurstRun::new(Vec::new());
        while !server.at(1).run_errands(&bytes, &mut run, NOW).unwrap() {}
        longest = longest.max(run.answers().len());
        let all: Vec<&[u8]> = crate::answers(run.answers()).collect();
        for errand in burst.drain(all.len()..).rev() {
            reader.give_back(errand);
        }
        for (errand, answer) in burst.iter().zip(&all) {
            reader.on_answer(errand, Some(answer), server, NOW);
        }
    }
}

#[test]
fn a_long_value_of_another_thread_is_copied_in_slices() {
    for mode in [Mode::Cache, Mode::Store] {
        let mut server = two_threads(mode);
        let value = shown(b'1', MAX_VALUE);
        let meta = value.replace("VALUE a 0", "VA");
        for (command, expected) in [
            ("get a\r\n", format!("{value}END\r\n")),
            ("get b a b a\r\n", format!("{value}{value}END\r\n")),
            ("mg a v\r\n", meta.clone()),
            ("mg YQ== v b\r\nmn\r\n", format!("{meta}MN\r\n")),
        ] {
            let (seen, bursts, longest) = carry(command.as_bytes(), &mut server, |_, _| {});
            assert!(seen == expected, "{command}: {} bytes", seen.len());
            assert!(longest < SLICE + 200, "{command}: {longest} bytes at once");
            assert!(bursts > MAX_VALUE / SLICE, "{command}: {bursts} bursts");
        }
    }
}

/// Later commands of the client leave only when the value is there.
#[test]
fn a_client_does_not_get_a_value_that_it_writes_later() {
    let mut server = two_threads(Mode::Store);
    let command = b"get a\r\nset a 0 0 3\r\nnew\r\nget a\r\ndelete a\r\n";
    let (seen, _, _) = carry(command, &mut server, |_, _| {});
    let next = "STORED\r\nVALUE a 0 3\r\nnew\r\nEND\r\nDELETED\r\n";
    let expected = format!("{}END\r\n{next}", shown(b'1', MAX_VALUE));
    assert!(seen == expected, "{} bytes", seen.len());
    // Another client overwrites the value meanwhile, so the first command starts over.
    let command = b"get a\r\nset a 0 0 3\r\nnew\r\n";
    let (seen, _, _) = carry(command, &mut two_threads(Mode::Store), |bursts, server| {
        if bursts == 3 {
            ask_threads(&mut Connection::new(None), server, &set(b'2', 5));
        }
    });
    assert_eq!(seen, format!("{}END\r\nSTORED\r\n", shown(b'2', 5)));
}

#[test]
fn a_value_that_is_overwritten_or_removed_meanwhile_is_never_mixed() {
    for mode in [Mode::Cache, Mode::Store] {
        for (change, next) in [
            (set(b'2', MAX_VALUE), shown(b'2', MAX_VALUE)),
            (set(b'2', 70_000), shown(b'2', 70_000)),
            (set(b'2', 5), shown(b'2', 5)),
            (b"delete a\r\n".to_vec(), String::new()),
        ] {
            for when in [1, 9, 16] {
                let mut server = two_threads(mode);
                let (seen, _, _) = carry(b"get a b\r\n", &mut server, |bursts, server| {
                    if bursts == when {
                        ask_threads(&mut Connection::new(None), server, &change);
                    }
                });
                assert!(seen == format!("{next}END\r\n"), "{mode:?}, {when}");
            }
        }
    }
}

#[test]
fn a_value_that_is_always_overwritten_is_finally_read_in_one_piece() {
    let mut server = two_threads(Mode::Cache);
    let mut byte = b'0';
    let (seen, bursts, longest) = carry(b"get a\r\n", &mut server, |_, server| {
        byte = if byte == b'9' { b'0' } else { byte + 1 };
        ask_threads(&mut Connection::new(None), server, &set(byte, 200_000));
    });
    // It starts over three times, each after the announcement of the value.
    assert_eq!(bursts, 7);
    assert!(longest > 200_000);
    assert!(seen == format!("{}END\r\n", shown(byte, 200_000)));
}

#[test]
fn a_value_whose_thread_stops_answering_has_an_error() {
    let mut server = two_threads(Mode::Store);
    let mut reader = Connection::new(None);
    reader.receive(b"get a\r\nget a\r\nmn\r\n");
    turns(&mut reader, &mut server);
    server.carry(&mut reader, 1, NOW);
    server.carry(&mut reader, 1, NOW);
    while let Some(errand) = reader.next_errand(1) {
        reader.on_answer(&errand, None, &mut server, NOW);
    }
    reader.run(&mut server, NOW);
    let seen = String::from_utf8_lossy(reader.output()).into_owned();
    let lost = crate::connection::LOST;
    assert_eq!(seen, format!("{lost}\r\n{lost}\r\nMN\r\n"));
}
