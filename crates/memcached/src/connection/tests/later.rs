//! Flags of meta commands that memcached has only since versions after 1.6.18.

use dunlin_store::Mode;

use super::ask;
use crate::Connection;
use crate::check::server;

#[track_caller]
fn answers(script: &[(&str, &str)]) {
    for mode in [Mode::Cache, Mode::Store] {
        let (mut connection, mut server) = (Connection::new(None), server(mode, 4 << 20));
        for (command, answer) in script {
            let seen = ask(&mut connection, &mut server, command.as_bytes());
            assert_eq!(seen, *answer, "{command}");
        }
    }
}

#[test]
fn a_meta_set_tells_the_length_of_the_value() {
    answers(&[
        ("ms a 3 s\r\nabc\r\n", "HD s3\r\n"),
        ("ms a 2 MA s\r\nde\r\n", "HD s5\r\n"),
        ("ms a 1 MP k s O1\r\nx\r\n", "HD ka s6 O1\r\n"),
        ("get a\r\n", "VALUE a 0 6\r\nxabcde\r\nEND\r\n"),
        // A command that fails tells the length of its own bytes.
        ("ms a 2 ME s\r\nhi\r\n", "NS s2\r\n"),
        ("ms none 2 MA s\r\nhi\r\n", "NS s2\r\n"),
    ]);
    let long = "v".repeat(200_000);
    answers(&[
        (&format!("ms a 200000 s\r\n{long}\r\n"), "HD s200000\r\n"),
        ("ms a 2 MA s\r\nde\r\n", "HD s200002\r\n"),
        ("ms a 20 MP s\r\n01234567890123456789\r\n", "HD s200022\r\n"),
        ("mg a s\r\n", "HD s200022\r\n"),
    ]);
}

#[test]
fn an_append_or_prepend_may_make_the_item() {
    answers(&[
        ("ms a 2 MA\r\nab\r\n", "NS\r\n"),
        ("ms a 2 MA N30 F7 T90 s\r\nab\r\n", "HD s2\r\n"),
        ("mg a v f t\r\n", "VA 2 f7 t30\r\nab\r\n"),
        // The item that is there keeps its flags and its expiry.
        ("ms a 2 MP N60 F9\r\ncd\r\n", "HD\r\n"),
        ("mg a v f t\r\n", "VA 4 f7 t30\r\ncdab\r\n"),
        ("ms b 1 MP N0\r\nx\r\n", "HD\r\n"),
        ("mg b v t\r\n", "VA 1 t-1\r\nx\r\n"),
        // Without an item, there is no version to compare.
        ("ms c 1 MA N0 C5\r\nx\r\n", "HD\r\n"),
        ("ms c 1 MA N0 C5\r\nx\r\n", "EX\r\n"),
        // In the other modes, the flag has no effect.
        ("ms d 1 MR N0\r\nx\r\n", "NS\r\n"),
    ]);
    let long = "v".repeat(200_000);
    answers(&[
        (&format!("ms a 200000 MA N30\r\n{long}\r\n"), "HD\r\n"),
        ("mg a s t\r\n", "HD s200000 t30\r\n"),
    ]);
}

#[test]
fn a_meta_delete_may_leave_an_empty_item() {
    answers(&[
        ("md a x\r\n", "NF\r\n"),
        ("ms a 3 F7 T90 E50\r\nabc\r\n", "HD\r\n"),
        ("md a x C51\r\n", "EX\r\n"),
        ("mg a v c\r\n", "VA 3 c50\r\nabc\r\n"),
        ("md a x k O1\r\n", "HD ka O1\r\n"),
        // It keeps only its version.
        ("mg a v f t c\r\n", "VA 0 f0 t-1 c50\r\n\r\n"),
        ("ms a 3\r\nabc\r\n", "HD\r\n"),
        ("md a x T30 E60\r\n", "HD\r\n"),
        ("mg a v t c\r\n", "VA 0 t30 c60\r\n\r\n"),
        ("ms a 3 E70\r\nabc\r\n", "HD\r\n"),
        ("md a x I E71 C70 q\r\nmn\r\n", "MN\r\n"),
        ("mg a v c\r\n", "VA 0 c71 X W\r\n\r\n"),
        ("mg a x\r\n", "CLIENT_ERROR invalid flag\r\n"),
    ]);
}
