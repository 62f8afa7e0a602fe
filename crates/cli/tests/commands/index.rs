//! `dunlin index` as a user runs it: a server, each command of a client, and snapshots.

use dunlin_testkit::folder::Folder;

use crate::program::server::Server;

/// A key that the command shows as hexadecimal digits can be given to another command, even if its
/// bytes are not text.
fn bytes_that_are_no_text(server: &Server) {
    server.text(&["put", "ff00", "4", "--hex"]);
    server.text(&["put", "ff01", "5", "--hex"]);
    let shown = server.text(&["scan", "--hex", "--from", "ff", "--json", "--limit", "1"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (&shown["key_hex"], &shown["value_hex"]),
        (&"ff00".into(), &"34".into())
    );
    let plain = server.text(&["scan", "--backward", "--limit", "1", "--json"]);
    let plain: serde_json::Value = serde_json::from_str(&plain).unwrap();
    assert_eq!(
        (&plain["key_hex"], &plain["value"]),
        (&"ff01".into(), &"5".into())
    );
    assert_eq!(
        server.text(&["scan", "--hex", "--after", "ff00"]),
        "ff01\t35\n"
    );
    server.failure(2, &["get", "f", "--hex"]);
    for key in ["ff00", "ff01"] {
        server.text(&["delete", key, "--hex"]);
    }
}

/// A scan that its limit ends before the last item says how to go on.
fn scans_that_end_early(server: &Server) {
    let run = |args: &[&str]| {
        let output = server.run(&[&["scan"], args].concat());
        let [out, errors] = [output.stdout, output.stderr];
        let [out, errors] = [out, errors].map(|it| String::from_utf8(it).unwrap());
        (out, errors)
    };
    let more = |option: &str| format!("dunlin: more items follow; go on with {option}\n");
    let items = |out: &str, errors: String| (out.to_owned(), errors);
    assert_eq!(
        run(&["--limit", "2"]),
        items("a\t1\nb\t2\n", more("--after=b"))
    );
    assert_eq!(run(&["--after=b"]), items("c\t3\n", String::new()));
    assert_eq!(
        run(&["--backward", "--limit", "2"]),
        items("c\t3\nb\t2\n", more("--to=b"))
    );
    assert_eq!(
        run(&["--backward", "--to=b"]),
        items("a\t1\n", String::new())
    );
    assert_eq!(
        run(&["--limit", "1", "--json"]).0,
        "{\"key\":\"a\",\"more\":true,\"value\":\"1\"}\n"
    );
    assert!(!run(&["--limit", "3", "--json"]).0.contains("more"));
}

#[test]
fn each_command_does_its_work() {
    let folder = Folder::new("cli-index");
    let [saved, dumped] = ["saved", "dumped"].map(|name| folder.path(name));
    let server = Server::start("index", &["--threads", "2", "--save", &saved]);
    for (key, value) in [("b", "2"), ("a", "1"), ("c", "3")] {
        server.text(&["put", key, value]);
    }
    assert_eq!(server.text(&["get", "a"]), "1\n");
    let missing = server.failure(1, &["get", "d"]);
    assert!(
        missing.contains("there is no item with the key `d`"),
        "{missing}"
    );
    assert_eq!(server.text(&["scan"]), "a\t1\nb\t2\nc\t3\n");
    scans_that_end_early(&server);
    assert_eq!(
        server.text(&["scan", "--after", "a", "--to", "c"]),
        "b\t2\n"
    );
    assert_eq!(server.text(&["count", "--from", "b"]), "2\n");
    // The digits 1 and 2, as bytes.
    assert_eq!(
        server.text(&["sum", "--limit", "2"]),
        format!("{}\n", 0x31 + 0x32)
    );
    bytes_that_are_no_text(&server);
    server.failure(2, &["scan", "--from", "b", "--to", "a"]);
    server.failure(2, &["scan", "--limit", "0"]);
    server.failure(2, &["scan", "--limit", "4294967296"]);
    assert_eq!(server.text(&["dump", &dumped]), "3\n");
    server.text(&["delete", "a"]);
    server.failure(1, &["delete", "a"]);
    server.end();

    let server = Server::start("index", &["--load", &saved]);
    assert_eq!(server.text(&["scan"]), "b\t2\nc\t3\n");
    assert_eq!(server.text(&["load", &dumped]), "3\n");
    assert_eq!(server.text(&["count"]), "3\n");
    // A snapshot that is cut off is refused as a whole: it brings none of its items back.
    for key in ["a", "b"] {
        server.text(&["delete", key]);
    }
    let whole = std::fs::read(&dumped).unwrap();
    std::fs::write(&dumped, &whole[..whole.len() - 1]).unwrap();
    let cut = server.failure(1, &["load", &dumped]);
    assert!(cut.contains("truncated or changed"), "{cut}");
    assert_eq!(server.text(&["scan"]), "c\t3\n");
    server.end();
}
