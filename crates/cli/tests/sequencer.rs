//! `dunlin sequencer` as a user runs it: a server, numbers, a kill, and a server that takes over.

#![cfg(feature = "sequencer")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod program;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Output};

use dunlin_testkit::folder::Folder;
use serde_json::Value;

use crate::program::dunlin;

struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    address: String,
    epoch: u64,
}

impl Server {
    fn start(dir: &str, args: &[&str]) -> Self {
        let first = ["sequencer", "serve", "--listen", "127.0.0.1:0", "--json"];
        let all = [
            &first[..],
            &["--dir", dir, "--set", "sequencer.lease=200ms"],
            args,
        ]
        .concat();
        let mut child = dunlin(&all).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let greeting: Value = serde_json::from_str(&line).unwrap();
        Self {
            address: greeting["listening"].as_str().unwrap().to_owned(),
            epoch: greeting["epoch"].as_u64().unwrap(),
            child,
            out,
        }
    }

    /// Runs a command against this server.
    fn run(&self, args: &[&str]) -> Output {
        let last = ["--server", &self.address, "--timeout", "30"];
        dunlin(&[&["sequencer"], args, &last].concat())
            .output()
            .unwrap()
    }

    fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn number(&self) -> u64 {
        self.text(&["next", "orders"]).trim().parse().unwrap()
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([name, &id]).status();
        assert!(status.unwrap().success());
    }

    /// Waits for the end: the exit code, and the messages.
    fn wait(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let mut errors = self.child.stderr.take().unwrap();
        errors.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn numbers_survive_a_stop_and_a_kill() {
    let folder = Folder::new("cli-sequencer");
    let dir = folder.path("numbers");
    let mut server = Server::start(&dir, &[]);
    let absent = server.run(&["next", "orders"]);
    assert_eq!(absent.status.code(), Some(1));
    let said = String::from_utf8(absent.stderr).unwrap();
    assert!(said.contains("--create makes it"), "{said}");
    assert_eq!(server.text(&["next", "orders", "--create"]), "1\n");
    assert_eq!(server.text(&["next", "orders", "--count", "10"]), "2 11\n");
    for wrong in [["--count", "0"], ["--count", "1048577"]] {
        let refused = server.run(&[&["next", "orders"][..], &wrong].concat());
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
    }
    let second = dunlin(&[
        "sequencer",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--dir",
        &dir,
    ]);
    let output = { second }.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let owner = format!("process {} is alive", server.child.id());
    assert!(
        said.contains(&owner) && said.contains("--take-over"),
        "{said}"
    );
    server.signal("-INT");
    assert_eq!(server.wait().0, Some(0));
    let mut report = String::new();
    server.out.read_to_string(&mut report).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["numbers"], 11);

    let mut server = Server::start(&dir, &[]);
    assert_eq!(
        (server.number(), server.epoch),
        (12, 2),
        "a stop leaves no gap"
    );
    server.signal("-KILL");
    server.wait();
    let server = Server::start(&dir, &[]);
    let state: Value = serde_json::from_str(&server.text(&["status", "--json"])).unwrap();
    assert_eq!(
        (&state["phase"], &state["epoch"]),
        (&"serving".into(), &3.into())
    );
    let number = server.number();
    assert!((13..3_000_000).contains(&number), "{number}");
}

#[test]
fn a_server_that_hangs_is_replaced_and_stops() {
    let folder = Folder::new("cli-sequencer-hangs");
    let dir = folder.path("numbers");
    let mut first = Server::start(&dir, &[]);
    first.text(&["next", "orders", "--create"]);
    first.signal("-STOP");
    let second = Server::start(&dir, &["--take-over"]);
    let number = second.number();
    assert!(number > 1);
    first.signal("-CONT");
    let (code, said) = first.wait();
    assert_eq!(code, Some(1));
    assert!(said.contains("has taken over"), "{said}");
    assert!(second.number() > number);
}
