//! Several processes: this one serves, its children are clients, and some are killed.
//!
//! A child is this test binary again, started with its task in `DUNLIN_SHM_CHILD`.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dunlin_core::transport::PeerId;

use crate::endpoint::{End, SOON, info};
use crate::passing;

/// A child, connected to a server.
struct Client {
    process: Child,
    socket: UnixStream,
    peer: PeerId,
}

/// Starts a child with a task and lets it connect.
fn start(server: &mut End, task: &str, uid: u8) -> Client {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("dunlin-{}-{number}", std::process::id()));
    let _there_is_none = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::child", "--nocapture"])
        .env("DUNLIN_SHM_CHILD", task)
        .env("DUNLIN_SHM_UID", uid.to_string())
        .env("DUNLIN_SHM_SOCKET", &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let (mut socket, _) = listener.accept().unwrap();
    std::fs::remove_file(&path).unwrap();
    let offer = passing::receive(&mut socket);
    let (peer, answer) = server.accept(&info(uid), offer).unwrap();
    passing::send(&mut socket, &answer);
    Client {
        process,
        socket,
        peer,
    }
}

impl Client {
    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// The client of every test here. It runs in a child process; without a task it does nothing.
#[test]
fn child() {
    let Ok(task) = std::env::var("DUNLIN_SHM_CHILD") else {
        return;
    };
    let uid = std::env::var("DUNLIN_SHM_UID").unwrap().parse().unwrap();
    let path = std::env::var("DUNLIN_SHM_SOCKET").unwrap();
    let mut socket = UnixStream::connect(path).unwrap();
    let mut end = End::new(uid);
    let (pending, offer) = end.offer(&info(0)).unwrap();
    passing::send(&mut socket, &offer);
    let answer = passing::receive(&mut socket);
    let peer = end.complete(pending, answer).unwrap();
    match task.as_str() {
        "echo" => echo(&mut end, peer),
        "flood" => flood(&mut end, peer),
        "ask" => ask(&mut end, peer, &mut socket),
        _ => panic!("unknown task"),
    }
}

/// Sends every packet back until packet `u64::MAX` comes, and sleeps while there is none.
fn echo(end: &mut End, peer: PeerId) {
    loop {
        for number in end.poll() {
            if number == u64::MAX {
                return;
            }
            assert!(end.send(peer, number));
        }
        end.sleep(SOON);
    }
}

/// Sends as much as there is room for, until it is killed.
fn flood(end: &mut End, peer: PeerId) {
    let start = Instant::now();
    let mut number = 0;
    while start.elapsed() < 2 * SOON {
        number += u64::from(end.send(peer, number));
    }
}

/// Makes round trips, each answered by a sleeping server, and reports that they are over.
fn ask(end: &mut End, peer: PeerId, socket: &mut UnixStream) {
    for number in 0..2000 {
        assert!(end.send(peer, number));
        assert_eq!(end.receive(), [number]);
    }
    socket.write_all(&[1]).unwrap();
}

#[test]
fn packets_travel_between_processes() {
    let mut server = End::new(0);
    let mut client = start(&mut server, "echo", 1);
    for number in 0..3000 {
        assert!(server.send(client.peer, number));
        // The child may or may not have gone to sleep by then.
        if number % 300 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(server.receive(), [number]);
    }
    server.send(client.peer, u64::MAX);
    server.settle();
    assert!(client.process.wait().unwrap().success());
    assert_eq!(server.counters().rx_corrupt, 0);
}

#[test]
fn a_sleeping_server_is_woken_by_another_process() {
    let mut server = End::new(0);
    let mut client = start(&mut server, "ask", 1);
    let mut answered = 0;
    while answered < 2000 {
        for number in server.poll() {
            assert!(server.send(client.peer, number));
            answered += 1;
        }
        if answered < 2000 {
            assert!(
                server.sleep(SOON),
                "a wake-up was lost after {answered} answers"
            );
        }
    }
    client.socket.read_exact(&mut [0]).unwrap();
    assert!(client.process.wait().unwrap().success());
}

#[test]
fn a_producer_killed_while_it_writes_leaves_whole_packets_only() {
    let mut server = End::new(0);
    let mut witness = start(&mut server, "echo", 200);
    for round in 0..25_u8 {
        let mut client = start(&mut server, "flood", 1 + round);
        let mut expected = 0;
        let mut asked = 0;
        let mut answered = 0;
        let deadline = Instant::now() + Duration::from_micros(300 + 437 * u64::from(round));
        let mut alive = true;
        // `poll` checks the contents of packets; this loop checks that the numbers of the flood
        // have no gap.
        let mut quiet = 0;
        while alive || quiet < 1000 || answered < asked {
            if alive && expected > 0 && Instant::now() > deadline {
                client.kill();
                alive = false;
            }
            if alive && answered == asked {
                assert!(server.send(witness.peer, (1 << 40) + asked));
                asked += 1;
            }
            let numbers = server.poll();
            quiet = if numbers.is_empty() { quiet + 1 } else { 0 };
            if quiet > 0 {
                // The witness may have gone to sleep as we sent.
                server.settle();
            }
            for number in numbers {
                if number >= 1 << 40 {
                    answered += 1;
                } else {
                    assert_eq!(number, expected, "the flood has a gap");
                    expected += 1;
                }
            }
        }
        server.remove(client.peer);
    }
    assert_eq!(server.counters().rx_corrupt, 0);
    server.send(witness.peer, u64::MAX);
    assert!(witness.process.wait().unwrap().success());
}

#[test]
fn sending_to_a_process_that_was_killed_drops_at_once() {
    let mut server = End::new(0);
    let mut client = start(&mut server, "flood", 1);
    client.kill();
    let start = Instant::now();
    let sent = (0..100_000)
        .filter(|&number| server.send(client.peer, number))
        .count();
    assert!(sent < 100_000, "a dead process takes no packets");
    assert!(start.elapsed() < SOON);
    assert!(server.counters().tx_dropped_full > 0);
    server.sleep(Duration::from_millis(1));
    server.remove(client.peer);
    assert!(!server.send(client.peer, 1));
}

#[test]
fn a_channel_that_was_left_goes_when_its_process_dies() {
    // The client still uses the channel when it dies, and we have no session left.
    let options = dunlin_transport::shm::Options {
        max_peers: 3,
        ..dunlin_transport::shm::Options::default()
    };
    let mut server = End::with(0, options);
    for round in 0..10 {
        let mut client = start(&mut server, "flood", 1 + round);
        server.release(client.peer);
        client.kill();
    }
}
