//! Options, health and figures of a server, and keys that are spread over several.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use dunlin_testkit::folder::Folder;
use dunlin_testkit::wait;
use serde_json::Value;

use super::{Server, dunlin, interrupt};

#[test]
fn a_server_answers_questions_about_its_health() {
    let health = |address: &str, more: &[&str]| {
        let args = [&["health", "--timeout", "5", address], more].concat();
        dunlin(&args).output().unwrap()
    };
    let server = Server::start(&["--memory", "2MiB", "--threads", "2"]);
    let output = health(&server.address, &[]);
    assert_eq!(output.stdout, b"serving\n");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(health(&server.address, &["Kv"]).status.code(), Some(0));
    let other = health(&server.address, &["Words"]);
    assert_eq!(other.status.code(), Some(4));
    assert!(
        String::from_utf8(other.stdout)
            .unwrap()
            .contains("its services are Kv")
    );
    let stats = |more: &[&str]| {
        let pid = server.child.id().to_string();
        let output = dunlin(&[&["stats", &pid], more].concat()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    // A number of endpoints that differs from the number of partitions changes nothing for clients.
    server.text(&["set", "name", "dunlin"]);
    assert_eq!(server.text(&["get", "name"]), "dunlin\n");
    // Each of the two partitions has its figures, and the endpoint of health has none.
    wait::until(|| stats(&["--json"]).contains("\"kv_hits\":1"));
    let shown = stats(&["--prometheus"]);
    let samples = |metric: &str| shown.lines().filter(|it| it.starts_with(metric)).count();
    assert_eq!(samples("dunlin_kv_items{"), 2, "{shown}");
    assert_eq!(samples("dunlin_kv_misses_total{"), 2);
    assert!(stats(&[]).contains("kv_memory_bytes"));
    let get = "get name\n".repeat(1000);
    let mut shell = dunlin(&["kv", "shell", "--server", &server.address])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    shell
        .stdin
        .take()
        .unwrap()
        .write_all(get.as_bytes())
        .unwrap();
    assert!(shell.wait().unwrap().success());
    assert_eq!(server.text(&["stats", "--hot"]), "100.0 %  name\n");
}

#[test]
fn keys_are_spread_over_several_servers() {
    let servers: Vec<Server> = (0..3)
        .map(|_| Server::start(&["--memory", "4MiB"]))
        .collect();
    let addresses: Vec<&str> = servers.iter().map(|it| it.address.as_str()).collect();
    let all = addresses.join(",");
    let run = |args: &[&str]| {
        let args = [&["kv"], args, &["--server", &all, "--timeout", "2"]].concat();
        dunlin(&args).output().unwrap()
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let keys: Vec<String> = (0..30).map(|number| format!("key-{number}")).collect();
    let mut shell = dunlin(&["kv", "shell", "--server", &all])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = keys.iter().map(|key| format!("set {key} 1\n")).collect();
    let mut input = shell.stdin.take().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    assert!(shell.wait().unwrap().success());
    let get: Vec<&str> = ["get"]
        .into_iter()
        .chain(keys.iter().map(String::as_str))
        .collect();
    let got = run(&get);
    assert!(got.status.success(), "{}", text(&got.stderr));
    assert_eq!(text(&got.stdout).lines().count(), 30);
    let stats = run(&["stats"]);
    let shown = text(&stats.stdout);
    assert!(
        addresses
            .iter()
            .all(|it| shown.contains(&format!("server {it}\n"))),
        "{shown}"
    );
    for server in &servers {
        let items = server.object(&["stats"])["items"].as_u64().unwrap();
        assert!(
            (1..=25).contains(&items),
            "{items} of 30 items are at one server"
        );
    }

    // The keys of a server that is down are errors that name it, or misses if the user wants that.
    let down = addresses[1].to_owned();
    let mut servers = servers.into_iter();
    let first = servers.next().unwrap();
    servers.next().unwrap().end();
    let one = run(&get);
    let errors = text(&one.stderr);
    assert_eq!(one.status.code(), Some(1));
    assert!(
        errors.contains(&down) && errors.contains("no server was ready"),
        "{errors}"
    );
    let missing = run(&[&get[..], &["--when-down", "miss"]].concat());
    let errors = text(&missing.stderr);
    assert!(errors.contains("there is no item with the key"), "{errors}");
    let found = text(&missing.stdout).lines().count();
    assert!((5..30).contains(&found), "{found} of 30 keys are found");
    let dump = run(&["dump", "/nowhere/items"]);
    assert_eq!(dump.status.code(), Some(2));
    first.end();
}

/// Starts a server, and returns its greeting and the first line of its standard error.
fn start(args: &[&str]) -> (Value, String) {
    let all = [&["kv", "serve", "--listen", "127.0.0.1:0", "--json"], args].concat();
    let mut child = dunlin(&all).spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let mut said = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut said).unwrap();
    interrupt(&child);
    child.wait().unwrap();
    (serde_json::from_str(&line).unwrap(), said)
}

#[test]
fn options_stand_where_flags_are_missing() {
    let folder = Folder::new("options");
    let file = folder.path("dunlin.toml");
    let text = "[kv]\nmemory = \"8 MiB\"\nmode = \"store\"\nthreads = 2\n\
                memcached = \"127.0.0.1:0\"\n";
    std::fs::write(&file, text).unwrap();
    let (greeting, _) = start(&["--config", &file]);
    assert_eq!(greeting["memory"], 8 << 20, "{greeting}");
    assert_eq!(greeting["mode"], "store", "{greeting}");
    assert_eq!(greeting["partitions"], 2, "{greeting}");
    assert_eq!(
        greeting["memcached"].as_array().unwrap().len(),
        1,
        "{greeting}"
    );
    let socket = folder.path("socket");
    let flags = [
        "--memory",
        "4MiB",
        "--mode",
        "cache",
        "--threads",
        "1",
        "--memcached",
        &socket,
    ];
    let (greeting, _) = start(&[&["--config", &file], &flags[..]].concat());
    assert_eq!(greeting["memory"], 4 << 20, "{greeting}");
    assert_eq!(greeting["mode"], "cache", "{greeting}");
    assert_eq!(greeting["partitions"], 1, "{greeting}");
    assert_eq!(greeting["memcached"][0], socket.as_str(), "{greeting}");
}

#[test]
fn a_server_with_more_threads_than_processors_warns_and_serves() {
    let processors = std::thread::available_parallelism().unwrap().get();
    let threads = (processors + 1).to_string();
    let (greeting, said) = start(&["--memory", "16MiB", "--threads", &threads]);
    assert_eq!(greeting["partitions"], processors + 1);
    let warning = format!("{threads} threads share {processors} processors");
    assert!(said.contains(&warning), "{said}");
    let (_, said) = start(&["--memory", "16MiB", "--threads", "1"]);
    assert!(!said.contains("share"), "{said}");
}
