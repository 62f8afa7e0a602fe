//! `dunlin memcached` and `dunlin kv serve --memcached` as a user runs them.

mod clients;
mod crowd;
mod exporter;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use dunlin_testkit::folder::Folder;
use serde_json::Value;

use crate::program::dunlin;

struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    greeting: Value,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        let mut child = dunlin(&[args, &["--json"]].concat())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let greeting = serde_json::from_str(&line).unwrap();
        Self {
            child,
            out,
            greeting,
        }
    }

    fn door(&self, number: usize) -> &str {
        self.greeting["memcached"][number].as_str().unwrap()
    }

    fn native(&self) -> &str {
        self.greeting["listening"].as_str().unwrap()
    }

    /// Ends the server with Ctrl-C, and returns its report.
    fn end(mut self) -> Value {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-INT", &id]).status();
        assert!(status.unwrap().success());
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

/// Sends commands, the last of which ends the connection, and returns all answers.
fn ask(mut socket: impl Read + Write, commands: &str) -> String {
    socket.write_all(commands.as_bytes()).unwrap();
    let mut answers = String::new();
    socket.read_to_string(&mut answers).unwrap();
    answers
}

fn tcp(address: &str) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    let patience = Some(Duration::from_secs(20));
    socket.set_read_timeout(patience).unwrap();
    socket
}

#[test]
fn memcacheds_clients_and_native_ones_have_the_same_items() {
    let folder = Folder::new("memcached");
    let path = &*folder.path("socket");
    let server = Server::start(&[
        "memcached",
        "-m",
        "8",
        "-t",
        "2",
        "-l",
        "127.0.0.1:0",
        "-s",
        path,
        "-c",
        "10",
        "-U",
        "0",
    ]);
    let answers = ask(
        tcp(server.door(1)),
        "set a 7 0 3\r\nabc\r\nget a\r\nquit\r\n",
    );
    assert_eq!(answers, "STORED\r\nVALUE a 7 3\r\nabc\r\nEND\r\n");
    let kv = |args: &[&str]| {
        let all = [&["kv"], args, &["--server", server.native()]].concat();
        let output = dunlin(&all).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(kv(&["get", "a"]), "abc\n");
    kv(&["set", "b", "native"]);
    let socket = UnixStream::connect(server.door(0)).unwrap();
    let answers = ask(socket, "get b\r\nstats settings\r\nquit\r\n");
    assert!(answers.starts_with("VALUE b 0 6\r\nnative\r\nEND\r\n"));
    for line in [
        "maxbytes 8388608",
        "maxconns 10",
        "num_threads 2",
        "domain_socket ",
    ] {
        assert!(answers.contains(&format!("STAT {line}")), "{answers}");
    }
    let report = server.end();
    assert!(report["figures"]["gets"].as_u64().unwrap() >= 3, "{report}");
    assert!(!std::path::Path::new(path).exists());
}

/// Each of the two threads has whole huge pages, so 3 MiB of the 67 are not used.
#[test]
fn clients_see_the_memory_that_items_can_have() {
    let server = Server::start(&["memcached", "-m", "67", "-t", "2", "-l", "127.0.0.1:0"]);
    let answers = ask(tcp(server.door(0)), "stats\r\nstats settings\r\nquit\r\n");
    for line in ["limit_maxbytes 67108864", "maxbytes 67108864"] {
        assert!(answers.contains(&format!("STAT {line}\r\n")), "{answers}");
    }
    drop(server);
}

#[test]
fn users_and_flushes_are_refused_as_the_options_say() {
    let file = std::env::temp_dir().join(format!("dunlin-users-{}", std::process::id()));
    std::fs::write(&file, "ann:secret\n").unwrap();
    let users = file.to_str().unwrap();
    let serve = ["kv", "serve", "--memory", "1MiB", "--listen", "127.0.0.1:0"];
    let front = [
        "--memcached",
        "127.0.0.1:0",
        "--auth-file",
        users,
        "--no-flush-all",
    ];
    let auth = format!("kv.auth_file={users}");
    let options = [
        "--memcached",
        "127.0.0.1:0",
        "--set",
        &auth,
        "--set",
        "kv.flush_all=off",
        "--set",
        "kv.max_connections=7",
    ];
    let commands = "get a\r\nset a 0 0 10\r\nann secret\r\nflush_all\r\nget a\r\nquit\r\n";
    let answers = [
        "CLIENT_ERROR unauthenticated",
        "STORED",
        "CLIENT_ERROR flush_all not allowed",
        "END\r\n",
    ];
    for front in [&front[..], &options] {
        let server = Server::start(&[&serve[..], front].concat());
        assert_eq!(ask(tcp(server.door(0)), commands), answers.join("\r\n"));
        let load = [
            "kv",
            "load",
            "--from",
            server.door(0),
            "--server",
            server.native(),
        ];
        let refused = dunlin(&load).output().unwrap();
        let errors = String::from_utf8(refused.stderr).unwrap();
        assert!(errors.contains("--from-auth"), "{errors}");
        let loaded = dunlin(&[&load[..], &["--from-auth", users]].concat()).output();
        let loaded = String::from_utf8(loaded.unwrap().stdout).unwrap();
        assert_eq!(loaded, "0 items are loaded\n");
        let login = "set a 0 0 10\r\nann secret\r\nstats settings\r\nquit\r\n";
        let has_option = ask(tcp(server.door(0)), login).contains("STAT maxconns 7\r\n");
        assert_eq!(has_option, front == options);
        server.end();
    }
    let socket = file.with_extension("socket");
    let option = format!("kv.memcached_socket={}", socket.display());
    let server = Server::start(&[&serve[..], &["--set", &option]].concat());
    assert_eq!(server.door(0), socket.to_str().unwrap());
    server.end();
    std::fs::write(&file, "ann\n").unwrap();
    let output = dunlin(&["memcached", "-m", "1", "-Y", users]).output();
    let output = output.unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("line 1 is not `name:password`"), "{errors}");
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn messages_too_short_for_bursts_between_threads_are_refused() {
    let serve = ["kv", "serve", "--memory", "8MiB", "--listen", "127.0.0.1:0"];
    let front = ["--memcached", "127.0.0.1:0", "--threads", "2"];
    let short = ["--set", "endpoint.max_message=64KiB"];
    let mut refused = dunlin(&[&serve[..], &front, &short].concat())
        .spawn()
        .unwrap();
    // A server that starts prints a line to its standard output, and would never end.
    let mut greeting = [0];
    if refused
        .stdout
        .as_mut()
        .unwrap()
        .read(&mut greeting)
        .unwrap()
        != 0
    {
        refused.kill().unwrap();
    }
    let output = refused.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "it serves");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("endpoint.max_message is 65536"), "{errors}");
}

#[test]
fn a_server_without_addresses_listens_on_the_loopback_address_at_the_given_port() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let server = Server::start(&["memcached", "-m", "8", "-p", &port, "-F"]);
    assert_eq!(server.door(0), format!("127.0.0.1:{port}"));
    assert_eq!(server.greeting["memcached"].as_array().unwrap().len(), 1);
    let other = format!("127.0.0.2:{port}");
    assert!(
        TcpStream::connect(other).is_err(),
        "it listens at another address"
    );
    let commands = "set a 0 0 1\r\nx\r\nflush_all\r\nflush_all noreply\r\nget a\r\nquit\r\n";
    assert_eq!(
        ask(tcp(server.door(0)), commands),
        "STORED\r\nCLIENT_ERROR flush_all not allowed\r\nVALUE a 0 1\r\nx\r\nEND\r\n"
    );
    let settings = ask(tcp(server.door(0)), "stats settings\r\nquit\r\n");
    assert!(settings.contains("STAT flush_enabled no\r\n"), "{settings}");
}

/// `kv load --from` takes a running server for a memcached.
#[test]
fn the_items_of_a_running_server_are_copied() {
    let from = Server::start(&["memcached", "-m", "8", "-t", "2", "-l", "127.0.0.1:0"]);
    let items = (0..500).map(|n| format!("set k{n} {n} {} 3 noreply\r\nabc\r\n", n % 2 * 1000));
    let commands = format!("{}mn\r\nquit\r\n", items.collect::<String>());
    assert_eq!(ask(tcp(from.door(0)), &commands), "MN\r\n");
    let to = Server::start(&["kv", "serve", "--memory", "8MiB", "--listen", "127.0.0.1:0"]);
    let kv = |args: &[&str]| {
        let output =
            dunlin(&[&["kv"], args, &["--server", to.native(), "--json"]].concat()).output();
        let output = output.unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        (serde_json::from_slice::<Value>(&output.stdout), errors)
    };
    let (shown, errors) = kv(&["load", "--from", from.door(0)]);
    assert_eq!(shown.unwrap()["loaded"], 500, "{errors}");
    let item = kv(&["get", "k17"]).0.unwrap();
    assert_eq!(
        (&item["value"], &item["flags"]),
        (&"abc".into(), &17.into())
    );
    assert!(item["ttl"].as_u64().unwrap() > 900, "{item}");
    assert_eq!(kv(&["get", "k16"]).0.unwrap()["ttl"], 0);
    // Items that the server cannot have are named and counted. A key of UTF-8 is ordinary, and one
    // with a space has a name in base64, unless that is longer than a name may be.
    let long_name = "a ".repeat(100);
    let set = ["kv", "set", &long_name, "x", "--server", from.native()];
    assert!(dunlin(&set).output().unwrap().status.success());
    let long = "x".repeat(900_000);
    let odd = [
        "set \u{e4} 0 0 1 noreply\r\nu\r\nms YSBi 1 b q F5\r\ns\r\n",
        "set long 0 0 900000 noreply\r\n",
        &long,
        "\r\nmn\r\nquit\r\n",
    ]
    .concat();
    assert_eq!(ask(tcp(from.door(0)), &odd), "MN\r\n");
    let small = Server::start(&["kv", "serve", "--memory", "3MiB", "--listen", "127.0.0.1:0"]);
    let load = [
        "kv",
        "load",
        "--from",
        from.door(0),
        "--server",
        small.native(),
        "--json",
    ];
    let output = dunlin(&load).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&shown["loaded"], &shown["bad"]),
        (&502.into(), &2.into()),
        "{errors}"
    );
    let name = format!("`{long_name}`");
    assert!(
        errors.contains(&name) && errors.contains("`long`"),
        "{errors}"
    );
    assert_eq!(output.status.code(), Some(1));
    let get = ["kv", "get", "a b", "--server", small.native(), "--json"];
    let item: Value = serde_json::from_slice(&dunlin(&get).output().unwrap().stdout).unwrap();
    assert_eq!((&item["value"], &item["flags"]), (&"s".into(), &5.into()));
    // A native server is not memcached.
    let (_, errors) = kv(&["load", "--from", to.native()]);
    assert!(errors.contains(to.native()), "{errors}");
}

#[test]
fn wrong_usage_has_clear_errors() {
    let fails = |args: &[&str], code, text: &str| {
        let output = dunlin(args).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(code) && errors.contains(text),
            "{args:?}: {errors}"
        );
    };
    fails(&["memcached", "-U", "11211"], 2, "there is no UDP");
    fails(&["memcached", "-I", "2m"], 2, "1048576 bytes");
    fails(&["memcached", "-m", "0"], 2, "--memory");
    fails(&["memcached", "-l", "a:b:c"], 2, "-l a:b:c");
    fails(
        &["kv", "serve", "--memcached", "11211"],
        2,
        "neither HOST:PORT",
    );
    fails(&["kv", "serve", "--no-flush-all"], 2, "--memcached");
    let server = Server::start(&["memcached", "-m", "1", "-l", "127.0.0.1:0"]);
    let taken = format!("another server listens at {}", server.door(0));
    fails(&["memcached", "-m", "1", "-l", server.door(0)], 1, &taken);
}

#[test]
fn the_help_has_examples_and_exit_codes() {
    let output = dunlin(&["memcached", "--help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (usage, examples) = text.split_once("Examples:").unwrap();
    assert!(output.status.success() && usage.contains("-Y, --auth-file"));
    assert!(examples.contains("dunlin memcached -m 1024") && examples.contains("Exit codes: 0"));
}
