//! `dunlin sequencer` as a user runs it: a server, numbers, a kill, and a server that takes over.

use dunlin_testkit::folder::Folder;
use serde_json::Value;

use crate::program::dunlin;
use crate::program::server::Server;

fn start(dir: &str, args: &[&str]) -> Server {
    let first = ["--dir", dir, "--set", "sequencer.lease=200ms"];
    Server::start("sequencer", &[&first[..], args].concat())
}

fn number(server: &Server) -> u64 {
    server.text(&["next", "orders"]).trim().parse().unwrap()
}

#[test]
fn numbers_survive_a_stop_and_a_kill() {
    let folder = Folder::new("cli-sequencer");
    let dir = folder.path("numbers");
    let server = start(&dir, &[]);
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
    let owner = format!("process {} is alive", server.id());
    assert!(
        said.contains(&owner) && said.contains("--take-over"),
        "{said}"
    );
    let report: Value = serde_json::from_str(&server.end()).unwrap();
    assert_eq!(report["numbers"], 11);

    let mut server = start(&dir, &[]);
    assert_eq!(
        (number(&server), &server.greeting["epoch"]),
        (12, &2.into()),
        "a stop leaves no gap"
    );
    server.signal("-KILL");
    server.wait();
    let server = start(&dir, &[]);
    let state: Value = serde_json::from_str(&server.text(&["status", "--json"])).unwrap();
    assert_eq!(
        (&state["phase"], &state["epoch"]),
        (&"serving".into(), &3.into())
    );
    let next = number(&server);
    assert!((13..3_000_000).contains(&next), "{next}");
}

#[test]
fn a_server_that_hangs_is_replaced_and_stops() {
    let folder = Folder::new("cli-sequencer-hangs");
    let dir = folder.path("numbers");
    let mut first = start(&dir, &[]);
    first.text(&["next", "orders", "--create"]);
    first.signal("-STOP");
    let second = start(&dir, &["--take-over"]);
    let taken = number(&second);
    assert!(taken > 1);
    first.signal("-CONT");
    let (code, said) = first.wait();
    assert_eq!(code, Some(1));
    assert!(said.contains("has taken over"), "{said}");
    assert!(number(&second) > taken);
}
