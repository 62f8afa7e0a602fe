//! `stats reset`: what counts begins again, and what there is now stays.

use dunlin_store::Mode;

use super::ask;
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
