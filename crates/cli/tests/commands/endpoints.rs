//! `dunlin config`, `info`, `echo-server`, `ping`, `health`, `list` and `call` as a user runs them:
//! between processes, against addresses without a server, and with servers that die. Nothing here
//! may hang.

mod dpdk;
mod faces;
mod health;
mod kubernetes;
mod past_kernel;
mod pings;
mod reflect;
mod xdp;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::dunlin;

/// No wait takes this long unless a test fails, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

/// The output of a command that ends by itself. A command that does not end is killed, and has no
/// code.
fn run(args: &[&str]) -> Output {
    let mut child = dunlin(args).spawn().unwrap();
    let deadline = Instant::now() + LIMIT;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn objects(bytes: &[u8]) -> Vec<Value> {
    let lines = text(bytes).lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A command that runs until it is stopped, or the test ends.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(args: &[&str]) -> Self {
        let mut child = dunlin(args).stderr(Stdio::inherit()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// An echo server at a free port, and its address.
    fn server(args: &[&str]) -> (Self, String) {
        let all = [&["echo-server", "127.0.0.1:0", "--json"], args].concat();
        let mut server = Self::start(&all);
        let line = server.line();
        let address = line["listening"].as_str().unwrap().to_owned();
        (server, address)
    }

    /// The next line.
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"))
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &id])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits until the command ends by itself, and kills it if it does not. Returns its last line.
    fn last(mut self) -> Value {
        let (out, child) = (&mut self.out, &mut self.child);
        let rest = std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut rest = Vec::new();
                out.read_to_end(&mut rest).map(|_| rest)
            });
            let deadline = Instant::now() + LIMIT;
            while child.try_wait().unwrap().is_none() {
                if Instant::now() > deadline {
                    child.kill().unwrap();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            reader.join().unwrap().unwrap()
        });
        objects(&rest).pop().unwrap()
    }

    /// Sends a signal; returns the command's further output, and its exit code.
    fn end(mut self, name: &str) -> (Vec<Value>, Option<i32>) {
        self.signal(name);
        let begin = Instant::now();
        let mut rest = Vec::new();
        self.out.read_to_end(&mut rest).unwrap();
        let code = self.child.wait().unwrap().code();
        assert!(begin.elapsed() < Duration::from_secs(5), "it ends at once");
        (objects(&rest), code)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn config_shows_where_each_value_is_from() {
    let path = std::env::temp_dir().join(format!("dunlin-{}.toml", std::process::id()));
    std::fs::write(&path, "[udp]\ngro = false\npack = false\n").unwrap();
    let file = path.to_str().unwrap();
    let args = ["config", "--file", file, "--set", "udp.gso=off", "--json"];
    let out = dunlin(&args).env("DUNLIN_UDP_PACK", "on").output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let rows = objects(&out.stdout);
    let shown = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        (row["value"].clone(), row["source"]["kind"].clone())
    };
    assert_eq!(shown("udp.gro"), ("off".into(), "file".into()));
    assert_eq!(shown("udp.pack"), ("on".into(), "variable".into()));
    assert_eq!(shown("udp.gso"), ("off".into(), "flag".into()));
    assert_eq!(shown("udp.ecn"), ("auto".into(), "default".into()));
    let every = rows
        .iter()
        .all(|row| row["meaning"].is_string() && row["range"].is_string());
    assert!(every && rows.len() > 50);

    // The TOML that the command writes can be loaded as a settings file, with the same values.
    let out = run(&["config", "--file", file, "--toml"]);
    std::fs::write(&path, &out.stdout).unwrap();
    let out = run(&["config", "--file", file, "udp"]);
    let table = text(&out.stdout).to_owned();
    let gro = table
        .lines()
        .find(|line| line.starts_with("udp.gro "))
        .unwrap();
    assert!(gro.contains(" off ") && gro.contains(file), "{gro}");
    assert!(!table.contains("nexus.listen"), "one group was asked for");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn wrong_options_are_exit_code_2_in_every_command_that_loads_them() {
    for (args, said) in [
        (
            ["config", "--set", "udp.grow=off"],
            "--set: there is no option `udp.grow`; the nearest",
        ),
        (["config", "--set", "udp.gro"], "option=value"),
        (
            ["config", "--file", "/nonexistent"],
            "/nonexistent: cannot read",
        ),
        (
            ["ping", "127.0.0.1:1", "--idle=spim"],
            "the nearest is `spin`",
        ),
        (
            ["echo-server", "--set", "nexus.listen=no"],
            "expected HOST:PORT",
        ),
        (
            ["echo-server", "31850", "--json"],
            "HOST:PORT: `nexus.listen` cannot be `31850`",
        ),
    ] {
        let out = run(&args);
        assert_eq!(
            out.status.code(),
            Some(2),
            "{args:?}: {}",
            text(&out.stderr)
        );
        assert!(text(&out.stderr).contains(said), "{}", text(&out.stderr));
    }
    let out = dunlin(&["config"])
        .env("DUNLIN_UDP_GRP", "on")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(
        text(&out.stderr).contains("DUNLIN_UDP_GRO"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn the_file_that_the_environment_names_is_loaded() {
    let path = std::env::temp_dir().join(format!("dunlin-config-{}.toml", std::process::id()));
    std::fs::write(&path, "endpoint.backlog = 7\n").unwrap();
    let mut config = dunlin(&["config", "--json", "endpoint.backlog"]);
    let out = config.env("DUNLIN_CONFIG", &path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    let option = &objects(&out.stdout)[0];
    assert_eq!(option["value"], "7", "{option}");
    assert_eq!(option["source"]["line"], 1, "{option}");
}

/// As in a pipe to `head`: the reader has closed its end before the first line.
#[test]
fn a_command_whose_reader_has_gone_ends_silently() {
    let (_server, address) = Running::server(&[]);
    for args in [
        &["config"][..],
        &["config", "--json"],
        &["info"],
        &["ping", &address, "-i", "0.01"],
        &["echo-server", "127.0.0.1:0"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut child = dunlin(args).stdout(writer).spawn().unwrap();
        let deadline = Instant::now() + LIMIT;
        while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        // A command that still runs has no code.
        let _ = child.kill();
        let out = child.wait_with_output().unwrap();
        assert_eq!(text(&out.stderr), "", "{args:?}");
        assert_eq!(out.status.code(), Some(130), "{args:?}");
    }
}

#[test]
fn info_says_what_there_is_and_what_to_do() {
    let out = run(&["info", "--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let facts = objects(&out.stdout);
    for fact in &facts {
        assert_eq!(fact["advice"].is_null(), fact["state"] == "good", "{fact}");
    }
    let fact = |name: &str| facts.iter().find(|fact| fact["name"] == name).unwrap();
    assert!(fact("udp")["value"].as_str().unwrap().starts_with("works"));
    assert_eq!(fact("shm, two processes")["value"], "works");
    assert!(
        fact("cores")["value"]
            .as_str()
            .unwrap()
            .parse::<u32>()
            .is_ok()
    );
    assert!(text(&run(&["info"]).stdout).contains("huge pages"));
}

/// Runs in a process that can make the memory file of a doorbell, but not the larger file of a
/// channel.
#[test]
fn info_shows_that_endpoints_fall_back_to_udp_and_why() {
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" info --json";
    let command = env!("CARGO_BIN_EXE_dunlin");
    let out = Command::new("sh").args(["-c", script, command]).output();
    let facts = objects(&out.unwrap().stdout);
    let fact = |name: &str| facts.iter().find(|fact| fact["name"] == name).unwrap();
    let channel = fact("shm, two processes");
    let value = channel["value"].as_str().unwrap();
    assert!(value.contains("so auto uses UDP"), "{channel}");
    assert!(value.contains("File too large"), "{channel}");
    assert_eq!(channel["state"], "improve", "{channel}");
}

#[test]
fn help_has_examples() {
    for command in ["config", "info", "echo-server", "ping"] {
        let out = run(&[command, "--help"]);
        assert!(
            out.status.success() && text(&out.stdout).contains("Examples:"),
            "{command}"
        );
        assert!(text(&out.stdout).contains("Exit codes: 0"), "{command}");
    }
}
