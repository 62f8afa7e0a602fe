//! `dunlin stats` and `dunlin top`, run on a live process: this one, or one that ends.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cost;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use dunlin::{ConnectOptions, InsightTcp, Nexus, ReqType, Rpc, Shm, Tag};

/// Set in a process that the tests watch.
const SHOWN: &str = "DUNLIN_TEST_SHOWN";
/// No wait takes this long unless a test fails, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

fn dunlin(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dunlin"));
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(args: &[&str]) -> Output {
    dunlin(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A process with two endpoints that call each other from time to time, until it is killed.
struct Shown(Child, String);

const ECHO: ReqType = ReqType(1);

impl Shown {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_process_to_look_at", "--nocapture"])
            .env(SHOWN, "yes")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut lines = out.lines().map(|line| line.unwrap());
        let ready = lines.find(|line| line.contains("ready")).unwrap();
        let address = ready.split_whitespace().last().unwrap().to_owned();
        Self(child, address)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // The process may have been killed before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test of its own: the process that the other tests watch.
#[test]
fn a_process_to_look_at() {
    if std::env::var_os(SHOWN).is_none() {
        return;
    }
    let builder = Nexus::builder().insight_tcp(InsightTcp::Counters);
    let nexus = builder.bind("127.0.0.1:0").unwrap();
    let mut server: Rpc<Shm, ()> = nexus.endpoint_builder().index(4).build(()).unwrap();
    server.on(ECHO, |(), request, cx| {
        let byte = request.data()[0];
        request.reply(cx, 1, |out| out.fill(byte));
    });
    let mut client: Rpc<Shm, ()> = nexus.endpoint_builder().index(5).build(()).unwrap();
    let options = ConnectOptions {
        endpoint: Some(4),
        ..ConnectOptions::default()
    };
    let session = client.connect_with(nexus.address(), &options).unwrap();
    println!("ready {}", nexus.address());
    for _ in 0..20_000 {
        let (mut request, response) = (client.buf(1).unwrap(), client.buf(1).unwrap());
        request.data_mut().fill(7);
        // Until the session is connected, this fills its backlog.
        let _ = client.call(session, ECHO, request, response, Tag(0));
        client.run_for(Duration::from_millis(1));
        server.run_for(Duration::from_millis(1));
    }
}

#[test]
fn a_process_is_shown_and_listed() {
    let shown = Shown::start();
    let output = run(&["stats", &shown.pid()]);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).contains("endpoint 4 (shm)"));
    let output = run(&["stats", &shown.pid(), "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["endpoints"][0]["index"], 4);
    let output = run(&["stats", &shown.1, "--json"]);
    let there: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(there["pid"], shown.0.id());
    let output = run(&["stats", "--json"]);
    let listed = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|line| line["address"] == shown.1)
        .collect::<Vec<_>>();
    // The listing process has the file open as well.
    assert_eq!(listed.len(), 1, "{output:?}");
    assert_eq!(listed[0]["pid"], shown.0.id());
    assert_eq!(listed[0]["endpoints"], 2);
}

/// Each side of a session between processes is shown with the place of the other: the side that
/// connected knows the endpoint, the other side knows the nexus.
#[test]
fn sessions_are_shown_with_their_peers() {
    let shown = Shown::start();
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut client: Rpc<Shm, ()> = nexus.endpoint(()).unwrap();
    let options = ConnectOptions {
        endpoint: Some(4),
        ..ConnectOptions::default()
    };
    let session = client.connect_with(&*shown.1, &options).unwrap();
    client.wait_connected(session).unwrap();
    client.run_for(Duration::from_millis(150));
    let here = nexus.snapshot().unwrap();
    let place = here.endpoints[0].sessions[0].place;
    assert_eq!(place.nexus, Some(shown.1.parse().unwrap()));
    assert_eq!(place.endpoint, Some(4));
    let output = run(&["stats", &shown.pid(), "--json"]);
    let there: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let sessions = there["endpoints"][0]["sessions"].as_array().unwrap();
    let us = nexus.address().to_string();
    let ours = sessions.iter().find(|session| session["peer_nexus"] == us);
    let ours = ours.unwrap_or_else(|| panic!("{sessions:?}"));
    assert_eq!(ours["peer_endpoint"], serde_json::Value::Null);
    let output = run(&["stats", &shown.pid()]);
    assert!(text(&output.stdout).contains(&us), "{output:?}");
}

/// The output of a watch of `target` after the process has died, and the watch's exit code.
fn watched_until_death(shown: &mut Shown, target: &str) -> (Option<i32>, String) {
    let mut watch = dunlin(&["stats", target, "--watch", "0.05"])
        .spawn()
        .unwrap();
    let mut out = BufReader::new(watch.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("4 (shm)") {
        line.clear();
        let len = out.read_line(&mut line).unwrap();
        assert_ne!(len, 0, "no line of the endpoint of {target}");
    }
    shown.kill();
    let deadline = Instant::now() + LIMIT;
    while watch.try_wait().unwrap().is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    // A watch that hangs has no code.
    let _ = watch.kill();
    let mut error = String::new();
    watch
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut error)
        .unwrap();
    (watch.wait().unwrap().code(), error)
}

#[test]
fn a_process_that_dies_ends_the_watch() {
    let mut shown = Shown::start();
    let pid = shown.pid();
    let (code, error) = watched_until_death(&mut shown, &pid);
    assert_eq!(code, Some(1), "{error}");
    assert!(
        error.contains(&format!("process {pid} has ended")),
        "{error}"
    );
}

#[test]
fn a_process_elsewhere_that_dies_ends_the_watch() {
    let mut shown = Shown::start();
    let address = shown.1.clone();
    let (code, error) = watched_until_death(&mut shown, &address);
    assert_eq!(code, Some(1), "{error}");
    let who = format!("process {} at {address} has ended", shown.pid());
    assert!(error.contains(&who), "{error}");
    assert!(error.contains("refused"), "why: {error}");
}

/// The file that a path leads to stays readable as long as it is open.
#[test]
fn a_file_that_vanishes_with_its_process_ends_the_watch() {
    let mut shown = Shown::start();
    let found = dunlin_insight::of_process(shown.0.id()).unwrap();
    let path = found[0].path.to_str().unwrap().to_owned();
    drop(found);
    let (code, error) = watched_until_death(&mut shown, &path);
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains(&format!("{path} is gone")), "{error}");
}

#[test]
fn a_trace_has_both_sides_of_a_call() {
    let shown = Shown::start();
    let output = run(&["trace", &shown.pid(), "--count", "40", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let packets: Vec<serde_json::Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(packets.len(), 40);
    for (endpoint, sent, kind) in [(5, true, "REQ"), (4, false, "REQ"), (4, true, "RESP")] {
        let is_it = |p: &&serde_json::Value| {
            p["endpoint"] == endpoint && p["sent"] == sent && p["header"]["type"] == kind
        };
        assert!(
            packets.iter().any(|p| is_it(&p)),
            "{kind} {sent}: {packets:?}"
        );
    }
    let file = std::env::temp_dir().join(format!("dunlin-trace-{}.pcapng", shown.pid()));
    let path = file.to_str().unwrap();
    let output = run(&[
        "trace",
        &shown.pid(),
        "--endpoint",
        "4",
        "--count",
        "4",
        "-o",
        path,
    ]);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("4 packets traced, 0 lost"));
    assert!(
        std::fs::read(&file)
            .unwrap()
            .starts_with(&0x0a0d_0d0a_u32.to_le_bytes())
    );
    std::fs::remove_file(file).unwrap();
}

#[test]
fn top_without_a_terminal_says_what_to_use_instead() {
    let output = run(&["top", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("stats PID --watch"),
        "{output:?}"
    );
}

#[test]
fn a_target_that_cannot_be_shown_is_an_error_with_the_reason() {
    let cases: [(&[&str], i32, &str); 8] = [
        (
            &["stats", "127.0.0.1:1"],
            1,
            "no nexus answers at 127.0.0.1:1",
        ),
        (&["trace", "4000000000"], 1, "there is no process"),
        (&["trace", "1", "--bytes", "9"], 2, "24..=280"),
        (&["stats", "4000000000"], 1, "there is no process"),
        (&["stats", "1"], 1, "process 1"),
        (&["stats", "/dev/null"], 1, "truncated"),
        (&["stats", "nonsense"], 2, "not a process number"),
        (&["stats", "1", "--watch", "0"], 2, "seconds"),
    ];
    for (args, code, why) in cases {
        let output = run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(why), "{args:?}: {output:?}");
    }
}

#[test]
fn the_error_of_a_process_that_shows_nothing_over_tcp_names_the_option() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let output = run(&["stats", &nexus.address().to_string()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("insight.tcp"), "{output:?}");
}

#[test]
fn a_saved_file_is_shown_unless_it_is_broken() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let _rpc: Rpc<Shm, ()> = nexus.endpoint(()).unwrap();
    let found = dunlin_insight::of_process(std::process::id()).unwrap();
    let folder = std::env::temp_dir().join(format!("dunlin-insight-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let saved = folder.join("saved");
    let mut bytes = vec![0; 64 << 10];
    std::os::unix::fs::FileExt::read_exact_at(&found[0].file, &mut bytes, 0).unwrap();
    let shown = |bytes: &[u8]| {
        std::fs::write(&saved, bytes).unwrap();
        run(&["stats", saved.to_str().unwrap()])
    };
    assert!(shown(&bytes).status.success());
    let truncated = shown(&bytes[..512]);
    assert_eq!(truncated.status.code(), Some(1));
    assert!(text(&truncated.stderr).contains("truncated"));
    bytes[8] = 99;
    let other = shown(&bytes);
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other.stderr).contains("version 99"));
    std::fs::remove_dir_all(folder).unwrap();
}
