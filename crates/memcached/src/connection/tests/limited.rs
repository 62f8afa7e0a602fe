//! A limit of values that is lower than the table's.

use dunlin_store::{Mode, SLICE};

use super::ask;
use crate::Connection;
use crate::check::server;

const MOST: usize = 2 * SLICE;

#[test]
fn longer_values_are_refused_and_delete_what_they_would_have_replaced() {
    let mut server = server(Mode::Cache, 4 << 20).with_most_value(MOST);
    let mut connection = Connection::new(None);
    let mut says = |command: &str, answer: &str| {
        let seen = ask(&mut connection, &mut server, command.as_bytes());
        assert_eq!(seen, answer, "{}", &command[..command.len().min(40)]);
    };
    let (fits, too_long) = ("v".repeat(MOST), "v".repeat(MOST + 1));
    let refusal = "SERVER_ERROR object too large for cache\r\n";
    says(&format!("set a 0 0 {MOST}\r\n{fits}\r\n"), "STORED\r\n");
    says(
        &format!("add b 0 0 {}\r\n{too_long}\r\n", MOST + 1),
        refusal,
    );
    says("mg a s\r\n", &format!("HD s{MOST}\r\n"));
    says(
        &format!("set a 0 0 {}\r\n{too_long}\r\nmn\r\n", MOST + 1),
        &format!("{refusal}MN\r\n"),
    );
    says("mg a s\r\n", "EN\r\n");
    says("ms a 1\r\nx\r\n", "HD\r\n");
    says(&format!("ms a {}\r\n{too_long}\r\n", MOST + 1), refusal);
    says("mg a s\r\n", "EN\r\n");
    says(
        &format!("set a 0 0 {} noreply\r\n{too_long}\r\nmn\r\n", MOST + 1),
        "MN\r\n",
    );
    // memcached does not name the reason if bytes are added to an item.
    says(
        &format!("set a 0 0 {}\r\n{}\r\n", MOST - 1, &fits[1..]),
        "STORED\r\n",
    );
    says("append a 0 0 2\r\nxy\r\n", "NOT_STORED\r\n");
    says("ms a 2 MP s\r\nxy\r\n", "NS s2\r\n");
    says("append a 0 0 1\r\nx\r\n", "STORED\r\n");
    says("set b 0 0 1\r\nx\r\n", "STORED\r\n");
    says(
        &format!("append b 0 0 {MOST}\r\n{fits}\r\n"),
        "NOT_STORED\r\n",
    );
    says("mg b s\r\n", "HD s1\r\n");
    // The limit stays after a reset.
    says("stats reset\r\n", "RESET\r\n");
    says("append a 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    let settings = ask(&mut connection, &mut server, b"stats settings\r\n");
    assert!(settings.contains(&format!("STAT item_size_max {MOST}\r\n")));
}
