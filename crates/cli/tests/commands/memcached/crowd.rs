//! As many idle clients as a server may have, each with half a command, and clients with halves of
//! long values.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dunlin_testkit::folder::Folder;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::memcached::Server;

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

/// Writes as much as the server and the kernel take now. False if nothing is left.
fn write_some(client: &mut Client, bytes: &mut &[u8]) -> bool {
    while !bytes.is_empty() {
        match client.0.write(bytes) {
            Ok(len) => *bytes = &bytes[len..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            Err(error) => panic!("{error}"),
        }
    }
    false
}

#[test]
fn halves_of_long_values_take_limited_memory_and_all_are_completed() {
    const CLIENTS: usize = 300;
    const LEN: usize = 1 << 20;
    /// The server's limit for incomplete commands, and 2 MiB more: 64 KiB for each thread, and one
    /// value.
    const MOST: u64 = (8 << 20) + (2 << 20);
    let folder = Folder::new("halves");
    let path = folder.path("socket");
    let server = Server::start(&["memcached", "-m", "32", "-t", "2", "-s", &path]);
    Client::call(&path).says(b"set first 0 0 1\r\nx\r\n", "STORED\r\n");
    let before = resident(server.child.id());
    let command = [&b"set half 0 0 1048576\r\n"[..], &vec![b'v'; LEN], b"\r\n"].concat();
    let (half, rest) = command.split_at(LEN / 2);
    let mut clients: Vec<(Client, &[u8])> =
        (0..CLIENTS).map(|_| (Client::call(&path), half)).collect();
    for (client, _) in &clients {
        client.0.set_nonblocking(true).unwrap();
    }
    let grown = || resident(server.child.id()).saturating_sub(before);
    let mut most = 0;
    // A second in which the server reads as much as it allows.
    for _ in 0..20 {
        for (client, left) in &mut clients {
            write_some(client, left);
        }
        most = most.max(grown());
        std::thread::sleep(Duration::from_millis(50));
    }
    let allowed = MOST + CLIENTS as u64 * 2 * EACH;
    assert!(most < allowed, "{most} of {allowed} bytes");
    Client::call(&path).says(b"get first\r\n", "VALUE first 0 1\r\nx\r\nEND\r\n");
    // Each value is completed, and the memory is free for the next one.
    let mut open: Vec<(Client, [&[u8]; 2])> = clients
        .into_iter()
        .map(|(client, left)| (client, [left, rest]))
        .collect();
    let end = Instant::now() + Duration::from_secs(60);
    while !open.is_empty() {
        assert!(Instant::now() < end, "{} clients still wait", open.len());
        open.retain_mut(|(client, parts)| {
            let [left, rest] = parts;
            if write_some(client, left) || write_some(client, rest) {
                return true;
            }
            let mut answer = [0; 8];
            match client.0.read_exact(&mut answer) {
                Ok(()) => assert_eq!(&answer, b"STORED\r\n"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    return true;
                }
            }
            false
        });
        std::thread::sleep(Duration::from_millis(1));
    }
}
