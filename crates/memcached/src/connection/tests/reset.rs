//! `stats reset`: what counts begins again, and what there is now stays.

use dunlin_store::{Mode, Seconds};

use super::{NOW, ask};
use crate::check::server;
use crate::{Connection, Server};

/// memcached 1.6 sets these to 0, too.
const COUNTS: [&str; 9] = [
    "cmd_get",
    "cmd_set",
    "cmd_flush",
    "get_misses",
    "get_flushed",
    "total_items",
    "evictions",
    "reclaimed",
    "auth_cmds",
];

#[test]
fn a_reset_begins_all_counts_again_and_keeps_the_items() {
    let (mut connection, mut server) = (Connection::new(None), server(Mode::Cache, 64 << 10));
    server.on_authentication(true);
    let mut ask = |command: &str| ask(&mut connection, &mut server, command.as_bytes());
    ask("set old 0 0 1\r\nx\r\nflush_all\r\nget old\r\n");
    for number in 0..3000 {
        ask(&format!("set {number} 0 0 8 noreply\r\n12345678\r\n"));
    }
    let value = |stats: &str, name: &str| -> u64 {
        let rest = stats.split(&format!("STAT {name} ")).nth(1);
        let line = rest.and_then(|rest| rest.lines().next());
        line.unwrap_or_else(|| panic!("{name}: {stats}"))
            .parse()
            .unwrap()
    };
    let before = ask("stats\r\n");
    for name in COUNTS {
        assert!(value(&before, name) > 0, "{name}");
    }
    assert_eq!(ask("stats reset\r\n"), "RESET\r\n");
    let after = ask("stats\r\n");
    for name in COUNTS {
        assert_eq!(value(&after, name), 0, "{name}");
    }
    for name in ["curr_items", "bytes", "hash_bytes"] {
        assert!(value(&after, name) > 0, "{name}");
        assert_eq!(value(&after, name), value(&before, name), "{name}");
    }
    ask("set new 0 0 1\r\nx\r\n");
    let later = ask("stats\r\n");
    assert_eq!(
        [value(&later, "cmd_set"), value(&later, "total_items")],
        [1; 2]
    );
}

#[test]
fn items_that_leave_unread_are_counted_and_the_oldest_has_an_age() {
    let (mut connection, mut server) = (Connection::new(None), server(Mode::Cache, 64 << 10));
    let mut at = |seconds: u32, command: &str| {
        connection.receive(command.as_bytes());
        connection.run(&mut server, Seconds(NOW.0 + seconds));
        let seen = String::from_utf8_lossy(connection.output()).into_owned();
        connection.sent(connection.output().len());
        seen
    };
    let value = |stats: &str, name: &str| -> u64 {
        let rest = stats.split(&format!("STAT {name} ")).nth(1).unwrap();
        rest.lines().next().unwrap().parse().unwrap()
    };
    at(
        0,
        "set a 0 5 1\r\nx\r\nset b 0 5 1\r\nx\r\nget b\r\nset c 0 0 1\r\nx\r\n",
    );
    at(9, "get a b\r\n");
    let stats = at(9, "stats\r\n");
    assert_eq!(value(&stats, "expired_unfetched"), 1);
    assert_eq!(value(&stats, "reclaimed"), 2);
    assert_eq!(value(&at(9, "stats items\r\n"), "items:1:age"), 9);
    // The log wraps, and the items of the first lap leave. A quarter of them were read once.
    for number in 0..3000_u32 {
        at(9, &format!("set {number} 0 0 8 noreply\r\n12345678\r\n"));
        if number % 4 == 0 {
            at(9, &format!("get {number}\r\n"));
        }
    }
    let stats = at(9, "stats\r\n");
    let (all, unread) = (
        value(&stats, "evictions"),
        value(&stats, "evicted_unfetched"),
    );
    assert!(unread > all / 2 && unread < all, "{unread} of {all}");
    assert!(value(&stats, "evicted_active") <= all - unread);
    assert!(value(&at(10, "stats items\r\n"), "items:1:age") <= 10);
    at(11, "stats reset\r\n");
    let stats = at(11, "stats\r\n");
    let names = ["expired_unfetched", "evicted_unfetched", "evicted_active"];
    assert_eq!(names.map(|name| value(&stats, name)), [0; 3]);
}
