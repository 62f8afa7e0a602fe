//! `dunlin kv` as a user runs it: a server, and each command of a client.

mod copies;
mod dumps;
mod servers;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dunlin_testkit::folder::Folder;
use dunlin_testkit::wait;
use serde_json::Value;

use crate::program::dunlin;

/// Presses Ctrl-C.
fn interrupt(child: &Child) {
    let id = child.id().to_string();
    let status = Command::new("kill").args(["-INT", &id]).status();
    assert!(status.unwrap().success());
}

struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    address: String,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        let all = [&["kv", "serve", "--listen", "127.0.0.1:0", "--json"], args].concat();
        let mut child = dunlin(&all).stderr(Stdio::inherit()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let greeting: Value = serde_json::from_str(&line).unwrap();
        let address = greeting["listening"].as_str().unwrap().to_owned();
        Self {
            child,
            out,
            address,
        }
    }

    /// Runs a command against this server.
    fn run(&self, args: &[&str]) -> Output {
        let all = [&["kv"], args, &["--server", &self.address]].concat();
        dunlin(&all).output().unwrap()
    }

    /// The output of a command that must succeed.
    fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The message of a command that must fail.
    fn failure(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn object(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[args, &["--json"]].concat())).unwrap()
    }

    /// Ends the server with Ctrl-C, and returns its report.
    fn end(mut self) -> Value {
        interrupt(&self.child);
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        serde_json::from_str(&rest).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_shell_runs_each_line_and_names_those_that_fail() {
    let server = Server::start(&["--memory", "8MiB"]);
    let mut shell = dunlin(&["kv", "shell", "--server", &server.address])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = b"set \"a key\" 'a value'\nget \"a key\"\nget none\n\nfetch x\n\
                  set n 41\nincr n --json\nshell\nquit\nget n\n";
    shell.stdin.take().unwrap().write_all(lines).unwrap();
    let output = shell.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let out = String::from_utf8(output.stdout).unwrap();
    let (first, second) = out.split_once('\n').unwrap();
    assert_eq!(first, "a value");
    let counted: Value = serde_json::from_str(second).unwrap();
    assert_eq!(counted["number"], 42, "nothing after `quit` is run");
    let said = String::from_utf8(output.stderr).unwrap();
    for part in [
        "line 3: there is no item with the key `none`",
        "line 5: error: unrecognized subcommand 'fetch'",
        "line 8: this is a shell already",
        "3 of 8 lines have failed",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn each_command_does_its_work() {
    let server = Server::start(&["--memory", "8MiB", "--threads", "2", "--mode", "store"]);
    assert_eq!(
        server.text(&["set", "name", "dunlin", "--flags", "7", "--ttl", "100"]),
        ""
    );
    assert_eq!(server.text(&["get", "name"]), "dunlin\n");
    let item = server.object(&["get", "name"]);
    assert_eq!(
        (&item["value"], &item["flags"]),
        (&"dunlin".into(), &7.into())
    );
    let version = item["version"].to_string();
    assert!(
        server
            .failure(&["add", "name", "x"])
            .contains("there is an item with this key")
    );
    server.text(&["cas", "name", &version, "other"]);
    assert!(
        server
            .failure(&["cas", "name", &version, "x"])
            .contains("another version")
    );
    server.text(&["set", "n", "41"]);
    assert_eq!(server.text(&["incr", "n"]), "42\n");
    assert_eq!(server.text(&["incr", "n", "50", "--down"]), "0\n");
    assert!(server.failure(&["incr", "name"]).contains("not a number"));
    server.text(&["touch", "n", "1000"]);
    // A second may pass.
    let ttl = server.object(&["get", "n"])["ttl"].as_u64().unwrap();
    assert!((990..=1000).contains(&ttl), "{ttl}");
    let both = server.run(&["get", "name", "none", "n"]);
    assert_eq!(both.status.code(), Some(1));
    assert_eq!(both.stdout, b"name\tother\nn\t0 \n");
    assert!(String::from_utf8(both.stderr).unwrap().contains("`none`"));
    assert!(
        server
            .text(&["stats"])
            .starts_with("items                       2")
    );
    server.text(&["delete", "n"]);
    assert!(
        server
            .failure(&["delete", "n"])
            .contains("there is no item with this key")
    );
    server.text(&["flush"]);
    assert!(server.failure(&["get", "name"]).contains("`name`"));
    let report = server.end();
    assert!(
        report["figures"]["requests"].as_u64().unwrap() > 10,
        "{report}"
    );
}

#[test]
fn a_value_comes_from_the_standard_input_and_may_be_any_bytes() {
    let server = Server::start(&["--memory", "8MiB", "--transport", "udp"]);
    let value: Vec<u8> = (0..100_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    let args = [
        "kv",
        "set",
        "page",
        "-",
        "--server",
        &server.address,
        "--transport",
        "udp",
    ];
    let mut child = dunlin(&args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&value).unwrap();
    assert!(child.wait().unwrap().success());
    let got = server.run(&["get", "page", "--transport", "udp"]);
    assert!(got.stdout.strip_suffix(b"\n") == Some(&value));
}

#[test]
fn wrong_usage_and_absent_servers_have_clear_errors() {
    let code = |args: &[&str]| {
        let output = dunlin(args).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), errors)
    };
    for memory in ["0", "1000000GiB"] {
        let (status, errors) = code(&["kv", "serve", "--memory", memory]);
        assert!(status == Some(2) && errors.contains("--memory"), "{errors}");
    }
    let taken = Server::start(&["--memory", "1MiB"]);
    let (status, errors) = code(&[
        "kv",
        "serve",
        "--memory",
        "1MiB",
        "--listen",
        &taken.address,
    ]);
    assert!(
        status == Some(1) && errors.contains("cannot serve at"),
        "{errors}"
    );
    let address = taken.address.clone();
    taken.end();
    let (status, errors) = code(&["kv", "get", "k", "--server", &address, "--timeout", "0.2"]);
    let advice = format!("dunlin kv serve --listen {address}");
    assert!(
        status == Some(1) && errors.contains("no server was ready") && errors.contains(&advice),
        "{errors}"
    );
}

#[test]
fn each_command_has_help_with_examples_of_its_own() {
    let commands = [
        "serve", "get", "set", "add", "cas", "delete", "incr", "touch", "stats", "flush", "dump",
        "load", "shell",
    ];
    for name in commands {
        let output = dunlin(&["kv", name, "--help"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (usage, examples) = text.split_once("Examples:").unwrap();
        assert!(
            output.status.success() && usage.contains("--json"),
            "{name}"
        );
        assert!(examples.contains(&format!("dunlin kv {name}")), "{name}");
        assert!(examples.contains("Exit codes: 0"), "{name}");
    }
}

#[test]
fn a_signal_ends_a_client_that_waits_and_a_server_that_starts() {
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = mute.local_addr().unwrap().to_string();
    let args = ["kv", "get", "k", "--timeout", "100", "--server", &address];
    let mut waiting = dunlin(&args).spawn().unwrap();
    let _greeted = mute.accept().unwrap();
    assert!(waiting.try_wait().unwrap().is_none(), "it waits");
    interrupt(&waiting);
    assert_eq!(waiting.wait().unwrap().signal(), Some(2));

    let args = [
        "kv",
        "serve",
        "--memory",
        "512MiB",
        "--listen",
        "127.0.0.1:0",
    ];
    let mut starting = dunlin(&args).spawn().unwrap();
    let mut errors = BufReader::new(starting.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("MiB touched"), "{line}");
    interrupt(&starting);
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    let mut out = String::new();
    let mut stdout = starting.stdout.take().unwrap();
    stdout.read_to_string(&mut out).unwrap();
    // The server may have begun to serve before the signal came.
    let expected = if out.is_empty() { 130 } else { 0 };
    assert_eq!(starting.wait().unwrap().code(), Some(expected), "{rest}");
}

/// Loads parts of the dump `whole` and changed copies of it, each in the file `damaged`.
fn nothing_of_a_damaged_dump_is_loaded(other: &Server, whole: &[u8], damaged: &str) {
    other.text(&["flush"]);
    std::fs::write(damaged, &whole[..whole.len() / 2]).unwrap();
    let refusal = other.failure(&["load", damaged]);
    assert!(refusal.contains("nothing was loaded"), "{refusal}");
    let end = whole.windows(5).rposition(|it| it == b"\tend\t").unwrap();
    std::fs::write(damaged, &whole[..end]).unwrap();
    let refusal = other.failure(&["load", damaged]);
    assert!(refusal.contains("cut off after 2002 items"), "{refusal}");
    let mut changed = whole.to_vec();
    let at = changed.windows(8).position(|it| it == b"value 17").unwrap();
    changed[at] = b'V';
    std::fs::write(damaged, changed).unwrap();
    let refusal = other.failure(&["load", damaged]);
    assert!(refusal.contains("the dump is damaged"), "{refusal}");
    assert_eq!(other.run(&["get", "key 17"]).status.code(), Some(1));
    std::fs::write(damaged, [&b"x"[..], &whole[1..]].concat()).unwrap();
    let refusal = other.failure(&["load", damaged]);
    assert!(refusal.contains("the dump is damaged"), "{refusal}");
}

#[test]
fn a_dump_has_all_items_and_damaged_ones_are_refused() {
    let (folder, memory) = (Folder::new("dump"), ["--memory", "8MiB", "--threads", "2"]);
    let server = Server::start(&memory);
    let list: String = (0..2000)
        .map(|n| format!("key {n}\tvalue {n}\t{n}\n"))
        .collect();
    let long = format!("long\t{}\nsoon\tgone\t7\t4000000000\n", "v".repeat(300_000));
    std::fs::write(folder.path("list"), format!("{list}{long}")).unwrap();
    let list = folder.path("list");
    assert_eq!(server.text(&["load", &list]), "2002 items are loaded\n");
    let dump = folder.path("dump");
    let shown = server.text(&["dump", &dump]);
    assert_eq!(shown, format!("2002 items are in {dump}\n"));
    assert!(server.failure(&["dump", &dump]).contains("it exists"));
    let shown = server.text(&["dump", "--resume", &dump]);
    assert!(shown.ends_with("is complete already\n"), "{shown}");

    let other = Server::start(&memory);
    assert_eq!(other.object(&["load", &dump])["loaded"], 2002);
    let item = other.object(&["get", "key 17"]);
    assert_eq!(
        (&item["value"], &item["flags"]),
        (&"value 17".into(), &17.into())
    );
    let item = other.object(&["get", "soon"]);
    assert!(item["ttl"].as_u64().unwrap() > 1_000_000_000, "{item}");
    let (again, sorted) = (folder.path("again"), |path: &str| {
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.retain(|line| !line.starts_with('\t') && !line.starts_with("soon"));
        lines.sort_unstable();
        lines
    });
    other.text(&["dump", &again]);
    assert!(sorted(&dump) == sorted(&again) && sorted(&dump).len() == 2001);

    let (whole, damaged) = (std::fs::read(&dump).unwrap(), folder.path("damaged"));
    nothing_of_a_damaged_dump_is_loaded(&other, &whole, &damaged);

    // A dump that was cut off resumes where it ended, and only at the same server.
    std::fs::write(&damaged, &whole[..whole.len() * 2 / 3]).unwrap();
    let refusal = other.failure(&["dump", "--resume", &damaged]);
    assert!(refusal.contains("restarted"), "{refusal}");
    server.text(&["dump", "--resume", &damaged]);
    // The second at which an item expires may differ by one.
    assert!(sorted(&damaged) == sorted(&dump));
    assert_eq!(other.object(&["load", &damaged])["loaded"], 2002);
    // Lines after the end mark are removed, and the file has one end mark.
    std::fs::write(&damaged, [&whole[..], b"more\n"].concat()).unwrap();
    server.text(&["dump", "--resume", &damaged]);
    assert!(std::fs::read(&damaged).unwrap() == whole);
    assert!(
        server
            .failure(&["dump", "--resume", &list])
            .contains("it is not a dump")
    );
}

#[test]
fn items_that_expire_leave_a_server_that_gets_no_requests() {
    let (folder, server) = (Folder::new("idle"), Server::start(&["--memory", "8MiB"]));
    let list = folder.path("list");
    let (mut loaded, mut lifetime) = (0, 3);
    // On a busy machine, items may expire before they are loaded. Then others live longer.
    while loaded < 1000 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let soon = now.as_secs() + lifetime;
        let lines = (0..1000).map(|n| format!("key {n} of {lifetime} s\tvalue\t0\t{soon}\n"));
        std::fs::write(&list, lines.collect::<String>()).unwrap();
        loaded += server.object(&["load", &list])["loaded"].as_u64().unwrap();
        lifetime *= 2;
    }
    // A request for figures sweeps nothing.
    wait::until(|| {
        std::thread::sleep(Duration::from_millis(200));
        server.object(&["stats"])["items"] == 0
    });
    assert_eq!(server.end()["figures"]["expired"], loaded);
}

#[test]
fn bad_lines_are_named_and_the_others_are_loaded() {
    let (folder, server) = (Folder::new("load"), Server::start(&["--memory", "8MiB"]));
    let list = folder.path("list");
    let lines = "a\t1\nno value\nb\t2\n\tc\t3\nold\tx\t0\t1\nd\t\\q\ne\t5";
    std::fs::write(&list, lines).unwrap();
    let errors = server.failure(&["load", &list]);
    for (number, reason) in [
        (2, "no value"),
        (4, "mark of a dump"),
        (6, "is not followed by"),
    ] {
        let line = format!("{list}:{number}: ");
        assert!(
            errors.contains(&line) && errors.contains(reason),
            "{errors}"
        );
    }
    assert!(errors.contains("3 bad lines"), "{errors}");
    assert_eq!(server.text(&["get", "a", "b", "e"]), "a\t1\nb\t2\ne\t5\n");
    server.text(&["flush"]);
    std::fs::write(&list, "a\t1\nb\t2\nold\tx\t0\t1\nc\t3\n").unwrap();
    let shown = server.text(&["load", &list, "--from-line", "2"]);
    assert_eq!(shown, "2 items are loaded, 1 have expired\n");
    assert_eq!(server.run(&["get", "a"]).status.code(), Some(1));
    let refusal = server.failure(&["load", &folder.path("none")]);
    assert!(refusal.contains("none"), "{refusal}");
    assert_eq!(server.run(&["load"]).status.code(), Some(2));
}

#[test]
fn an_interrupted_load_resumes_where_it_ended() {
    const ITEMS: usize = 30_000;
    let (folder, server) = (Folder::new("go-on"), Server::start(&["--memory", "16MiB"]));
    let list = folder.path("list");
    let lines: String = (0..ITEMS).map(|at| format!("key {at}\t{at}\n")).collect();
    std::fs::write(&list, lines).unwrap();
    let count = || {
        let shown = server.object(&["stats"]);
        usize::try_from(shown["items"].as_u64().unwrap()).unwrap()
    };
    let args = ["kv", "load", &list, "--server", &server.address];
    let load = dunlin(&args).stderr(Stdio::piped()).spawn().unwrap();
    while count() == 0 {}
    interrupt(&load);
    let output = load.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{errors}");
    let words = errors.split(" --from-line ").nth(1);
    let line = words.and_then(|words| words.split(' ').next());
    let line = line.unwrap_or_else(|| panic!("{errors}"));
    let loaded = line.parse::<usize>().unwrap() - 1;
    assert!((1..ITEMS).contains(&loaded), "{errors}");
    assert_eq!(count(), loaded, "{errors}");
    let shown = server.text(&["load", &list, "--from-line", line]);
    assert_eq!(shown, format!("{} items are loaded\n", ITEMS - loaded));
    assert_eq!(count(), ITEMS);
}
