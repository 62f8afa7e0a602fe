//! `dunlin index` as a user runs it: a server, each command of a client, and snapshots.

#![cfg(feature = "index")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod program;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output};

use dunlin_testkit::folder::Folder;
use serde_json::Value;

use crate::program::dunlin;

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        let first = ["index", "serve", "--listen", "127.0.0.1:0", "--json"];
        let mut child = dunlin(&[&first[..], args].concat()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let greeting: Value = serde_json::from_str(&line).unwrap();
        // The server may write more before it ends.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        Self {
            address: greeting["listening"].as_str().unwrap().to_owned(),
            child,
        }
    }

    fn run(&self, args: &[&str]) -> Output {
        let last = ["--server", &self.address, "--timeout", "30"];
        dunlin(&[&["index"], args, &last].concat())
            .output()
            .unwrap()
    }

    fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The message of a command that must fail with this exit code.
    fn failure(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Presses Ctrl-C.
    fn end(mut self) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-INT", &id]).status();
        assert!(status.unwrap().success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keys and values that are shown can be used as they are, whatever their bytes.
fn bytes_that_are_no_text(server: &Server) {
    server.text(&["put", "ff00", "4", "--hex"]);
    server.text(&["put", "ff01", "5", "--hex"]);
    let shown = server.text(&["scan", "--hex", "--from", "ff", "--json", "--limit", "1"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (&shown["key_hex"], &shown["value_hex"]),
        (&"ff00".into(), &"34".into())
    );
    let plain = server.text(&["scan", "--backward", "--limit", "1", "--json"]);
    let plain: Value = serde_json::from_str(&plain).unwrap();
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

#[test]
fn each_command_does_its_work() {
    let folder = Folder::new("cli-index");
    let [saved, dumped] = ["saved", "dumped"].map(|name| folder.path(name));
    let server = Server::start(&["--threads", "2", "--save", &saved]);
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
    assert_eq!(
        server.text(&["scan", "--backward", "--limit", "2"]),
        "c\t3\nb\t2\n"
    );
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

    let server = Server::start(&["--load", &saved]);
    assert_eq!(server.text(&["scan"]), "b\t2\nc\t3\n");
    assert_eq!(server.text(&["load", &dumped]), "3\n");
    assert_eq!(server.text(&["count"]), "3\n");
    let whole = std::fs::read(&dumped).unwrap();
    std::fs::write(&dumped, &whole[..whole.len() - 1]).unwrap();
    let cut = server.failure(1, &["load", &dumped]);
    assert!(cut.contains("cut off or changed"), "{cut}");
    server.end();
}
