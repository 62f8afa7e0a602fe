//! A full store: commands that need memory are refused, and change nothing.

use dunlin_store::Mode;

use super::ask;
use crate::check::server;
use crate::{Alone, Connection};

const REFUSED: &str = "SERVER_ERROR out of memory storing object\r\n";

/// A store without room for another item of eight bytes, whatever its four-digit key.
fn full() -> (Connection, Alone) {
    let (mut connection, mut server) = (Connection::new(None), server(Mode::Store, 64 << 10));
    let mut set = |number: u32| {
        let text = format!("set {number:04} 0 0 8\r\n12345678\r\n");
        ask(&mut connection, &mut server, text.as_bytes())
    };
    let items = (0..).take_while(|number| set(*number) == "STORED\r\n");
    assert!(items.count() > 500);
    (connection, server)
}

/// An item without flags and expiry has no room for an expiry, so in a full store it keeps none.
#[test]
fn a_full_store_refuses_an_expiry_and_keeps_the_item() {
    let (mut connection, mut server) = full();
    for command in ["touch 0005 9\r\n", "mg 0005 T9 v\r\n", "md 0005 I T9\r\n"] {
        let answer = ask(&mut connection, &mut server, command.as_bytes());
        assert_eq!(answer, REFUSED, "{command}");
    }
    let found = "VALUE 0005 0 8\r\n12345678\r\n";
    let answer = ask(&mut connection, &mut server, b"get 0005\r\n");
    assert_eq!(answer, format!("{found}END\r\n"));
    // An error cannot replace an item, so the connection ends.
    let answer = ask(&mut connection, &mut server, b"gat 9 0005\r\nget 0005\r\n");
    assert_eq!(answer, REFUSED);
    assert!(connection.is_over());
}

/// The time of `N` applies only to a new item.
#[test]
fn options_for_new_items_take_no_memory_in_a_full_store_if_the_item_exists() {
    let (mut connection, mut server) = full();
    let mut ask = |command: &str| ask(&mut connection, &mut server, command.as_bytes());
    assert_eq!(ask("mg 0005 N9 v t\r\n"), "VA 8 t-1\r\n12345678\r\n");
    assert_eq!(ask("ma 0005 N9 v t\r\n"), "VA 8 t-1\r\n12345679\r\n");
    assert_eq!(ask("mg 0005 N9 T9 v\r\n"), REFUSED);
    assert_eq!(ask("mg new1 N9 v k\r\n"), "EN knew1\r\n");
    let no_memory = "SERVER_ERROR Out of memory allocating new item\r\n";
    assert_eq!(ask("ma new1 N9 J87654321 v\r\n"), no_memory);
    assert_eq!(ask("mg new1 v\r\n"), "EN\r\n");
}

/// The freed memory has room for an item without a time, but not for one with a time.
#[test]
fn an_item_that_cannot_get_its_time_is_not_created() {
    let (mut connection, mut server) = full();
    let mut ask = |command: &str| ask(&mut connection, &mut server, command.as_bytes());
    assert_eq!(ask("delete 0005\r\n"), "DELETED\r\n");
    // The index has room for some keys but not for others.
    let mut fitting = |len: usize, value: &str| {
        let mut keys = (0..1000).map(|number| format!("{number:0len$}"));
        let set = |key: &String| format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
        let key = keys.find(|key| ask(&set(key)) == "STORED\r\n");
        let key = key.expect("a key of that length");
        assert_eq!(ask(&format!("delete {key}\r\n")), "DELETED\r\n");
        key
    };
    let (empty, counter) = (fitting(12, ""), fitting(11, "0"));
    assert_eq!(ask(&format!("mg {empty} N9 v\r\n")), "EN\r\n");
    assert_eq!(ask(&format!("mg {empty} v\r\n")), "EN\r\n");
    let no_memory = "SERVER_ERROR Out of memory allocating new item\r\n";
    assert_eq!(ask(&format!("ma {counter} N9 v\r\n")), no_memory);
    assert_eq!(ask(&format!("mg {counter} v\r\n")), "EN\r\n");
    assert_eq!(ask(&format!("mg {empty} N0 v\r\n")), "VA 0 W\r\n\r\n");
}

/// As in memcached: a client that could not replace a value must not find the old one.
#[test]
fn a_value_that_is_too_large_removes_the_old_one_without_counting_a_delete() {
    let (mut connection, mut server) = (Connection::new(None), server(Mode::Store, 8 << 20));
    let value = "v".repeat(2_000_000);
    let commands = format!("set a 0 0 1\r\n5\r\nset a 0 0 2000000\r\n{value}\r\nget a\r\n");
    let answers = ask(&mut connection, &mut server, commands.as_bytes());
    let refused = "SERVER_ERROR object too large for cache\r\n";
    assert_eq!(answers, format!("STORED\r\n{refused}END\r\n"));
    let stats = ask(&mut connection, &mut server, b"stats\r\n");
    for figure in [
        "delete_hits 0",
        "delete_misses 0",
        "curr_items 0",
        "store_too_large 1",
    ] {
        assert!(stats.contains(&format!("STAT {figure}\r\n")), "{stats}");
    }
}
