//! Dumps that are not complete: of a server that restarts meanwhile, or of one that has items
//! longer than its messages.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use dunlin::kv::store::{Config, Mode, Region, Seed, Table};
use dunlin::kv::{MULTI, Map, Partition, serve};
use dunlin::{Auto, Nexus, Rpc};
use dunlin_testkit::folder::Folder;
use dunlin_testkit::wait;

use super::{Server, dunlin};

/// A server in this process, with one thread. It ends once `is_over` is set.
fn play(
    address: &str,
    tag: u32,
    is_over: &'static AtomicBool,
    set_up: fn(&mut Rpc<Auto, Partition>),
) -> (SocketAddr, JoinHandle<()>) {
    let nexus = Nexus::bind(address).unwrap();
    let address = nexus.address();
    let thread = thread::spawn(move || {
        let config = Config {
            mode: Mode::Cache,
            seed: Seed::new([tag.into(), 1]),
            first_version: u64::from(tag) << 32,
        };
        let table = Table::new(Region::new(4 << 20).unwrap(), config).unwrap();
        let map = Map::new(tag, Mode::Cache, 0..1).unwrap();
        let builder = nexus.endpoint_builder().index(0);
        let mut rpc = builder.build(Partition::new(table, map, 0)).unwrap();
        serve(&mut rpc);
        set_up(&mut rpc);
        rpc.run_until(|_| is_over.load(Ordering::Relaxed));
    });
    (address, thread)
}

#[test]
fn a_dump_of_a_server_that_restarts_after_the_last_scan_is_refused() {
    static ASKED: AtomicBool = AtomicBool::new(false);
    static OVER: AtomicBool = AtomicBool::new(false);
    let (address, first) = play("127.0.0.1:0", 1, &ASKED, |rpc| {
        // The only scan is over, and the server ends in the middle of the gets.
        rpc.on(MULTI, |_, request, cx| {
            request.keep(cx);
            ASKED.store(true, Ordering::Relaxed);
        });
    });
    let (folder, server) = (Folder::new("restarts"), address.to_string());
    let file = folder.path("items");
    let set = dunlin(&["kv", "set", "name", "dunlin", "--server", &server]).output();
    assert!(set.unwrap().status.success());
    let args = ["kv", "dump", &file, "--server", &server, "--timeout", "60"];
    let dump = dunlin(&args).stderr(Stdio::piped()).spawn().unwrap();
    wait::until(|| ASKED.load(Ordering::Relaxed));
    first.join().unwrap();
    let (_, second) = play(&server, 2, &OVER, |_| {});
    let output = dump.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("the server has restarted"), "{errors}");
    OVER.store(true, Ordering::Relaxed);
    second.join().unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("\tend\t"), "{text}");
}

#[test]
fn a_dump_that_would_take_a_failure_for_misses_is_refused() {
    let (folder, server) = (Folder::new("misses"), Server::start(&["--memory", "1MiB"]));
    let file = folder.path("items");
    let refused = server.run(&["dump", &file, "--when-down", "miss"]);
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    assert!(errors.contains("--when-down miss"), "{errors}");
    assert!(!std::path::Path::new(&file).exists());
}

#[test]
fn a_resumed_dump_counts_the_items_that_its_first_attempt_has_left_out() {
    let folder = Folder::new("left-out");
    let socket = folder.path("socket");
    let short = "endpoint.max_message=32KiB";
    let server = ["--memory", "8MiB", "--memcached", &socket, "--set", short];
    let server = Server::start(&server);
    let mut client = UnixStream::connect(&socket).unwrap();
    let value = "v".repeat(100_000);
    let command = format!("set long 0 0 100000\r\n{value}\r\n");
    client.write_all(command.as_bytes()).unwrap();
    let mut answer = [0; 8];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"STORED\r\n");
    server.text(&["set", "name", "dunlin"]);

    let file = folder.path("items");
    let errors = server.failure(&["dump", &file]);
    assert!(errors.contains("the key `long` is left out"), "{errors}");
    assert!(errors.contains("1 items; 1 are left out"), "{errors}");
    let whole = std::fs::read_to_string(&file).unwrap();
    let end = whole.find("\tend\t").unwrap();
    std::fs::write(&file, &whole[..end]).unwrap();
    let errors = server.failure(&["dump", "--resume", &file]);
    assert!(errors.contains("1 items; 1 are left out"), "{errors}");
    assert!(
        !errors.contains("`long`"),
        "nothing is read again: {errors}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
    let errors = server.failure(&["dump", "--resume", &file]);
    assert!(errors.contains("complete already; 1 items"), "{errors}");
    let other = Server::start(&["--memory", "1MiB"]);
    assert_eq!(other.text(&["load", &file]), "1 items are loaded\n");
}
