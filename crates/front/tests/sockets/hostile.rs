//! A native client on a thread with hostile clients of memcached.
//!
//! The test also measures how busy the machine is: at the same time, another client asks a server
//! of its own, whose thread serves nothing else. A pause that both clients have comes from the
//! machine.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dunlin_front::Options;
use dunlin_kv::{Connection, Options as NativeOptions, Store};
use dunlin_transport::shm::Shm;

use super::server::Running;

/// How long the clients ask.
const TIME: Duration = Duration::from_secs(2);

/// The work of a turn and of 256 short commands takes less than a millisecond, also in a debug
/// build. The rest is for other programs of the machine.
const MOST_PAUSE: Duration = Duration::from_millis(100);

/// Uses the connection of a hostile client until the test ends.
type Hostile = fn(&mut TcpStream, &AtomicBool) -> std::io::Result<()>;

/// Sends commands and never reads an answer.
fn never_reads(stream: &mut TcpStream, is_over: &AtomicBool) -> std::io::Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        stream.write_all(&b"get long\r\n".repeat(100))?;
    }
    Ok(())
}

/// Sends halves of long values, and closes in the middle.
fn closes_in_the_middle(stream: &mut TcpStream, is_over: &AtomicBool) -> std::io::Result<()> {
    let half = vec![b'h'; 500_000];
    while !is_over.load(Ordering::Relaxed) {
        stream.write_all(b"set half 0 0 1000000\r\n")?;
        stream.write_all(&half)?;
        stream.shutdown(Shutdown::Both)?;
        *stream = TcpStream::connect(stream.peer_addr()?)?;
    }
    Ok(())
}

/// Writes long values, appends to them, and reads them, as fast as it can.
fn sends_long_values(stream: &mut TcpStream, is_over: &AtomicBool) -> std::io::Result<()> {
    let mut commands = b"set own 0 0 1000000\r\n".to_vec();
    commands.resize(commands.len() + 1_000_000, b'o');
    commands.extend_from_slice(b"\r\nappend own 0 0 20\r\n01234567890123456789\r\nmn\r\n");
    let mut answer = vec![0; b"STORED\r\nSTORED\r\nMN\r\n".len()];
    while !is_over.load(Ordering::Relaxed) {
        stream.write_all(&commands)?;
        stream.read_exact(&mut answer)?;
    }
    Ok(())
}

/// Reads ten thousand keys with one command.
fn reads_many_keys(stream: &mut TcpStream, is_over: &AtomicBool) -> std::io::Result<()> {
    let mut command = b"get".to_vec();
    for number in 0..10_000 {
        command.extend_from_slice(format!(" key{number}").as_bytes());
    }
    command.extend_from_slice(b"\r\n");
    while !is_over.load(Ordering::Relaxed) {
        stream.write_all(&command)?;
        stream.read_exact(&mut [0; 5])?;
    }
    Ok(())
}

/// Sends a line that never ends, byte by byte and then in large pieces.
fn sends_no_end(stream: &mut TcpStream, is_over: &AtomicBool) -> std::io::Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        stream.write_all(b"get ")?;
        for _ in 0..100 {
            stream.write_all(b"x")?;
        }
        // The server ends the connection, after one line for the client.
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
        *stream = TcpStream::connect(stream.peer_addr()?)?;
    }
    Ok(())
}

fn attack(address: SocketAddr, how: Hostile, is_over: &Arc<AtomicBool>) -> JoinHandle<()> {
    let is_over = Arc::clone(is_over);
    std::thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            let mut stream = TcpStream::connect(address).unwrap();
            let patience = Some(Duration::from_millis(200));
            stream.set_write_timeout(patience).unwrap();
            stream.set_read_timeout(patience).unwrap();
            // The server may end its connection, or read no more.
            let _ = how(&mut stream, &is_over);
        }
    })
}

/// Asks for a key again and again. Returns the longest time to an answer, and the number of
/// answers.
fn ask(server: &Running) -> (Duration, u32) {
    let builder = server.nexus.endpoint_builder().index(9);
    let address = server.nexus.address();
    let mut native = Connection::<Shm>::open(builder, address, NativeOptions::DEFAULT).unwrap();
    native.store(&Store::set(b"native", b"value")).unwrap();
    let (begin, mut longest, mut answers) = (Instant::now(), Duration::ZERO, 0);
    while begin.elapsed() < TIME {
        let before = Instant::now();
        assert!(native.get(b"native").unwrap().is_some());
        longest = longest.max(before.elapsed());
        answers += 1;
    }
    (longest, answers)
}

#[test]
fn hostile_clients_do_not_hold_up_a_native_one() {
    let (server, alone) = (
        Running::start(Options::default()),
        Running::start(Options::default()),
    );
    let long = "v".repeat(1_000_000);
    server
        .call()
        .says(&format!("set long 0 0 1000000\r\n{long}\r\n"), "STORED\r\n");
    let is_over = Arc::new(AtomicBool::new(false));
    let all: [Hostile; 5] = [
        never_reads,
        closes_in_the_middle,
        sends_long_values,
        reads_many_keys,
        sends_no_end,
    ];
    let address = server.address();
    let attacks = all.map(|how| attack(address, how, &is_over));
    let (beside, undisturbed) = std::thread::scope(|scope| {
        let undisturbed = scope.spawn(|| ask(&alone));
        (ask(&server), undisturbed.join().unwrap())
    });
    is_over.store(true, Ordering::Relaxed);
    attacks
        .into_iter()
        .for_each(|attack| attack.join().unwrap());
    let most = MOST_PAUSE + 2 * undisturbed.0;
    assert!(
        beside.0 <= most && beside.1 > 100,
        "longest pause and answers: {beside:?}, {undisturbed:?} on a thread without such clients"
    );
}
