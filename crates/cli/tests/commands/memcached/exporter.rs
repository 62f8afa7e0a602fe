//! Prometheus's exporter of memcached, unmodified: it reads this server's figures in the same way
//! as Debian memcached's.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dunlin_testkit::folder::Folder;

use crate::memcached::clients::{Theirs, run};
use crate::memcached::{Server, ask, tcp};

const PACKAGE: &str = "github.com/prometheus/memcached_exporter/cmd/memcached_exporter";

/// Series that the exporter has only for memcached: they belong to its slabs or to the order of
/// items in slabs, or name its version.
const THEIRS: [&str; 4] = [
    "memcached_slab_",
    "memcached_lru_",
    "memcached_slabs_",
    "memcached_version{",
];

/// Series whose values do not depend on the server's clock, processes or memory, without
/// `memcached_items_total`: this server also counts an increment as an item written.
const EQUAL: [&str; 8] = [
    "memcached_up",
    "memcached_commands_total",
    "memcached_current_items",
    "memcached_items_evicted_total",
    "memcached_items_reclaimed_total",
    "memcached_limit_bytes",
    "memcached_max_connections",
    "memcached_item_too_large_total",
];

/// A program that is killed at the end.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The page that an HTTP server shows, as soon as it listens.
fn page(address: &str, path: &str) -> String {
    let begin = Instant::now();
    let mut socket = loop {
        match TcpStream::connect(address) {
            Ok(socket) => break socket,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(10), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    socket.read_to_string(&mut page).unwrap();
    page
}

/// The exporter's series of a server, with their values.
fn series(exporter: &str, server: &str) -> BTreeMap<String, f64> {
    // Other tests take ports of another address.
    let free = TcpListener::bind("127.0.0.79:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let mut program = Command::new(exporter);
    program.arg(format!("--memcached.address={server}"));
    program.arg(format!("--web.listen-address={address}"));
    let _program = Program(program.stderr(Stdio::null()).spawn().unwrap());
    let page = page(&address, "/metrics");
    let lines = page.lines().filter(|line| line.starts_with("memcached_"));
    let pair = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    lines.map(pair).collect()
}

#[test]
fn prometheus_exporter_reads_the_same_figures_as_from_memcached() {
    const MODULE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/commands/memcached/exporter"
    );
    let (Some(_), Some(_)) = (run("go", &["version"]), run("memcached", &["-V"])) else {
        return;
    };
    let folder = Folder::new("exporter");
    let exporter = folder.path("exporter");
    let mut go = Command::new("go");
    go.args(["build", "-mod=readonly", "-o", &exporter, PACKAGE]);
    let built = go.current_dir(MODULE).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    let ours = Server::start(&["memcached", "-m", "64", "-t", "1", "-l", "127.0.0.1:0"]);
    let (_theirs, their_door) = Theirs::start_tcp();
    let [our_series, their_series] = [ours.door(0), &their_door].map(|door| {
        let commands = "set a 0 0 1\r\n5\r\nget a b\r\nincr a 2\r\ndecr n 1\r\ntouch a 100\r\n\
                        gets a\r\ncas a 0 0 1 1\r\nx\r\ndelete a\r\ndelete a\r\n\
                        set c 0 0 1\r\nc\r\nset d 0 0 2000000\r\n";
        let value = "v".repeat(2_000_000);
        let answers = ask(tcp(door), &format!("{commands}{value}\r\nmn\r\nquit\r\n"));
        assert!(answers.ends_with("MN\r\n"), "{answers}");
        series(&exporter, door)
    });
    assert_eq!(our_series.get("memcached_up"), Some(&1.0), "{our_series:?}");
    assert!(their_series.len() > 50, "{their_series:?}");
    for (name, theirs) in &their_series {
        if THEIRS.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let Some(ours) = our_series.get(name) else {
            panic!("there is no {name}");
        };
        let base = name.split('{').next().unwrap();
        if EQUAL.contains(&base) {
            assert!((ours - theirs).abs() < 0.5, "{name}: {ours} and {theirs}");
        }
    }
    assert!((our_series["memcached_current_items"] - 1.0).abs() < 0.5);
    let hits = our_series["memcached_commands_total{command=\"get\",status=\"hit\"}"];
    assert!((hits - 2.0).abs() < 0.5, "{hits}");
}
