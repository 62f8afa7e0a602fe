//! As many idle clients as a server may have, each with half a command.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dunlin_testkit::folder::Folder;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Server;

/// Idle clients.
const CLIENTS: usize = 10_000;

/// Descriptors that a process has in addition to its clients' descriptors.
const OTHERS: u64 = 100;

/// Resident bytes that a client may cost the server.
const EACH: u64 = 4096;

/// Allows this process and its children the descriptors; false if the system does not permit it.
fn may_open(needed: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < needed) {
        dunlin_testkit::skip(&format!("a process may not have {needed} descriptors"));
        return false;
    }
    let raised = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    if limit.current.is_some_and(|now| now < needed)
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        dunlin_testkit::skip(&format!("a process gets no {needed} descriptors: {error}"));
        return false;
    }
    true
}

/// Resident bytes of a process.
fn resident(process: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:"));
    let kib = line.unwrap().split_whitespace().next().unwrap();
    kib.parse::<u64>().unwrap() << 10
}

struct Client(UnixStream);

impl Client {
    fn call(path: &str) -> Self {
        let socket = UnixStream::connect(path).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Self(socket)
    }

    fn says(&mut self, command: &[u8], answer: &str) {
        self.0.write_all(command).unwrap();
        let mut read = vec![0; answer.len()];
        self.0.read_exact(&mut read).unwrap();
        assert_eq!(String::from_utf8_lossy(&read), answer);
    }
}

#[test]
fn ten_thousand_clients_with_half_a_command_cost_little_memory() {
    if !may_open(CLIENTS as u64 + OTHERS) {
        return;
    }
    let folder = Folder::new("crowd");
    let path = folder.path("socket");
    let limit = (CLIENTS + 10).to_string();
    let args = [
        "memcached",
        "-m",
        "32",
        "-t",
        "2",
        "-c",
        &limit,
        "-s",
        &path,
    ];
    let server = Server::start(&args);
    Client::call(&path).says(b"set first 0 0 1\r\nx\r\n", "STORED\r\n");
    let before = resident(server.child.id());
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|_| {
            let mut client = Client::call(&path);
            client.says(b"get first\r\n", "VALUE first 0 1\r\nx\r\nEND\r\n");
            // The server knows how long the value will be, and has its first bytes.
            client
                .0
                .write_all(b"set half 0 0 1048576\r\nhalf of")
                .unwrap();
            client
        })
        .collect();
    // The buffers of idle clients shrink, some clients at a time.
    let grown = || resident(server.child.id()).saturating_sub(before);
    let end = Instant::now() + Duration::from_secs(30);
    while grown() > CLIENTS as u64 * EACH {
        let each = grown() / CLIENTS as u64;
        assert!(Instant::now() < end, "{each} bytes for each client");
        std::thread::sleep(Duration::from_millis(100));
    }
    // Other clients are served, and a client of the crowd can complete its command.
    Client::call(&path).says(b"get first\r\n", "VALUE first 0 1\r\nx\r\nEND\r\n");
    let rest = [vec![b'v'; 1_048_576 - 7], b"\r\n".to_vec()].concat();
    clients[CLIENTS / 2].says(&rest, "STORED\r\n");
}
