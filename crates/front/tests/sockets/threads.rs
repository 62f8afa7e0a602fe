//! Several threads: clients of one thread use keys of another.

use std::fmt::Write as _;
use std::io::Write;
use std::net::TcpStream;

use dunlin_front::Options;
use dunlin_kv::{Connection, Options as NativeOptions};
use dunlin_transport::shm::Shm;

use super::server::{Running, wait_until};

fn start(threads: u64) -> Running {
    Running::start(Options {
        threads,
        ..Options::default()
    })
}

/// Keys and clients are spread over all threads.
#[test]
fn each_client_reaches_the_keys_of_each_thread() {
    let server = start(3);
    let mut clients: Vec<_> = (0..6).map(|_| server.call()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let mut commands = String::new();
        for key in 0..50 {
            write!(commands, "set {number}-{key} {key} 0 3\r\nabc\r\n").unwrap();
        }
        client.says(&commands, &"STORED\r\n".repeat(50));
    }
    for client in &mut clients {
        let (mut line, mut answer) = ("get".to_owned(), String::new());
        for number in 0..6 {
            for key in 0..50 {
                write!(line, " {number}-{key}").unwrap();
                write!(answer, "VALUE {number}-{key} {key} 3\r\nabc\r\n").unwrap();
            }
        }
        client.says(&format!("{line} none\r\n"), &format!("{answer}END\r\n"));
    }
    // Quiet commands have no answer, on whichever thread they run.
    let mut quiet = String::new();
    for key in 0..50 {
        write!(
            quiet,
            "incr 0-{key} 1 noreply\r\nmg none-{key} v q\r\ndelete 1-{key} noreply\r\n"
        )
        .unwrap();
    }
    clients[0].says(&format!("{quiet}mn\r\n"), "MN\r\n");
    let missing: String = (0..50).map(|key| format!(" 1-{key}")).collect();
    clients[0].says(&format!("get{missing}\r\n"), "END\r\n");
    clients[1].0.write_all(b"stats\r\n").unwrap();
    let stats = clients[1].read_to("END\r\n");
    for line in [
        "curr_items 250",
        "cmd_set 300",
        "get_misses 106",
        "threads 3",
        "curr_connections 6",
    ] {
        assert!(
            stats.contains(&format!("STAT {line}\r\n")),
            "{line}: {stats}"
        );
    }
    clients[2]
        .0
        .write_all(b"lru_crawler metadump all\r\n")
        .unwrap();
    let list = clients[2].read_to("END\r\n");
    assert_eq!(list.matches("key=").count(), 250);
    clients[3].says("flush_all\r\n", "OK\r\n");
    clients[4].says("get 0-1 2-2 3-3 4-4 5-5\r\n", "END\r\n");
    drop(clients);
    let figures = server.end();
    assert!(figures.iter().all(|it| it.writes >= 50), "{figures:?}");
}

/// A thread has bursts in flight to only a few other threads at a time, but all of them answer.
#[test]
fn many_threads_answer_although_few_bursts_are_under_way_at_a_time() {
    let server = start(12);
    let keys: String = (0..200).map(|key| format!(" {key}")).collect();
    let sets: String = (0..200)
        .map(|key| format!("set {key} 0 0 1\r\nx\r\n"))
        .collect();
    let items: String = (0..200)
        .map(|key| format!("VALUE {key} 0 1\r\nx\r\n"))
        .collect();
    let mut clients = [server.call(), server.call()];
    clients[0].says(&sets, &"STORED\r\n".repeat(200));
    for _ in 0..5 {
        for client in &mut clients {
            client.says(&format!("get{keys}\r\n"), &format!("{items}END\r\n"));
        }
    }
    drop(clients);
    let figures = server.end();
    assert!(figures.iter().all(|it| it.writes > 0), "{figures:?}");
}

#[test]
fn long_values_of_another_thread_come_back_while_others_are_served() {
    let server = start(2);
    let mut slow = server.call();
    let value = "x".repeat(1 << 20);
    for key in ["a", "b", "c", "d"] {
        slow.says(
            &format!("set {key} 0 0 {}\r\n{value}\r\n", value.len()),
            "STORED\r\n",
        );
    }
    slow.0
        .write_all("get a b c d\r\n".repeat(20).as_bytes())
        .unwrap();
    let mut others = [server.call(), server.call()];
    for turn in 0..50 {
        for client in &mut others {
            client.says(&format!("set k{turn} 0 0 1\r\nx\r\n"), "STORED\r\n");
        }
    }
    let items = ["a", "b", "c", "d"].map(|key| format!("VALUE {key} 0 1048576\r\n{value}\r\n"));
    let answer = format!("{}END\r\n", items.concat());
    for _ in 0..20 {
        assert!(slow.read(answer.len()) == answer.as_bytes());
    }
}

#[test]
fn a_write_without_an_answer_is_done_although_the_client_has_left() {
    let server = start(2);
    for turn in 0..20 {
        let mut client = server.call();
        let commands = (0..100).map(|key| format!("set {turn}-{key} 0 0 1 noreply\r\nx\r\n"));
        client
            .0
            .write_all(commands.collect::<String>().as_bytes())
            .unwrap();
    }
    let mut client = server.call();
    wait_until("all writes are done", || {
        client.0.write_all(b"stats\r\n").unwrap();
        let stats = client.read_to("END\r\n");
        stats.contains("STAT curr_items 2000\r\n") && stats.contains("STAT curr_connections 1\r\n")
    });
}

/// Several clients count with each thread's counters at the same time, and no count is lost.
#[test]
fn counters_of_many_clients_lose_nothing() {
    let server = start(3);
    let mut first = server.call();
    for key in 0..10 {
        first.says(&format!("set n{key} 0 0 1\r\n0\r\n"), "STORED\r\n");
    }
    let address = server.address();
    let count = move || {
        let mut client = super::server::Caller::new(TcpStream::connect(address).unwrap());
        for _ in 0..50 {
            let commands: String = (0..10).map(|key| format!("incr n{key} 1\r\n")).collect();
            client.0.write_all(commands.as_bytes()).unwrap();
            for _ in 0..10 {
                client.read_to("\r\n");
            }
        }
    };
    let clients: Vec<_> = (0..4).map(|_| std::thread::spawn(count)).collect();
    clients
        .into_iter()
        .for_each(|client| client.join().unwrap());
    for key in 0..10 {
        first.says(
            &format!("get n{key}\r\n"),
            &format!("VALUE n{key} 0 3\r\n200\r\nEND\r\n"),
        );
    }
}

#[test]
fn native_clients_share_the_threads() {
    let server = start(2);
    let mut client = server.call();
    let builder = server.nexus.endpoint_builder().index(9);
    let address = server.nexus.address();
    let mut native = Connection::<Shm>::open(builder, address, NativeOptions::DEFAULT).unwrap();
    for key in 0..20 {
        client.says(&format!("set {key} 5 0 3\r\nabc\r\n"), "STORED\r\n");
        let item = native.get(key.to_string().as_bytes()).unwrap().unwrap();
        assert_eq!((item.value(), item.flags()), (&b"abc"[..], 5));
    }
}

/// The kernel watches each connection, so a client that vanishes without notice does not stay.
#[test]
fn the_kernel_probes_idle_clients() {
    const KEEPALIVE: &str = "02";
    let server = start(1);
    let mut client = server.call();
    client.says("mn\r\n", "MN\r\n");
    let local = server.address().port();
    let remote = client.0.local_addr().unwrap().port();
    wait_until("the timer runs", || {
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        sockets.lines().any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_it = fields[1].ends_with(&format!(":{local:04X}"))
                && fields[2].ends_with(&format!(":{remote:04X}"));
            is_it && fields[5].starts_with(KEEPALIVE)
        })
    });
}
