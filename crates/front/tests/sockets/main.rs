//! The front end over real sockets: memcached's clients and native ones, and clients that are slow,
//! numerous, incorrect or unknown.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod doors;
mod halves;
mod hostile;
mod server;
mod threads;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dunlin_front::Options;
use dunlin_kv::{Connection, Options as NativeOptions, Store};
use dunlin_memcached::Users;
use dunlin_transport::shm::Shm;

use server::{Running, wait_until};

#[test]
fn text_and_meta_commands_are_answered() {
    let server = Running::start(Options::default());
    let mut client = server.call();
    client.says("set a 7 0 3\r\nabc\r\n", "STORED\r\n");
    client.says("get a b\r\n", "VALUE a 7 3\r\nabc\r\nEND\r\n");
    client.says("mg a v f k Oq\r\n", "VA 3 f7 ka Oq\r\nabc\r\n");
    // A pipeline in which some commands have no answer.
    client.says(
        "set b 0 0 1 noreply\r\n1\r\nincr b 41\r\nmg none q\r\nmn\r\ndelete a noreply\r\nget a\r\n",
        "42\r\nMN\r\nEND\r\n",
    );
    client.says("quit\r\n", "");
    assert_eq!(client.rest(), b"");
}

#[test]
fn bytes_that_come_one_by_one_are_commands() {
    let server = Running::start(Options::default());
    let mut client = server.call();
    for byte in b"set half 0 0 5\r\nab\r\nc\r\nmg half v\r\n" {
        client.0.write_all(&[*byte]).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    client.says("", "STORED\r\nVA 5\r\nab\r\nc\r\n");
}

#[test]
fn values_of_the_longest_length_come_back() {
    let server = Running::start(Options::default());
    let mut client = server.call();
    let value: Vec<u8> = (0..1 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
    let command = [b"set v 0 0 1048576\r\n", &value[..], b"\r\n"].concat();
    assert_eq!(client.ask(&command, 8), b"STORED\r\n");
    let answer = client.ask(b"get v\r\n", 19 + value.len() + 7);
    assert!(answer.starts_with(b"VALUE v 0 1048576\r\n") && answer[19..][..value.len()] == value);
    client.says(
        "set w 0 0 1048577\r\n",
        "SERVER_ERROR object too large for cache\r\n",
    );
}

/// There is only one table and one clock.
#[test]
fn native_clients_and_those_of_memcached_see_each_other() {
    let server = Running::start(Options::default());
    let mut client = server.call();
    let builder = server.nexus.endpoint_builder().index(9);
    let address = server.nexus.address();
    let mut native = Connection::<Shm>::open(builder, address, NativeOptions::DEFAULT).unwrap();
    client.says("set a 7 100 3\r\nabc\r\n", "STORED\r\n");
    let item = native.get(b"a").unwrap().unwrap();
    assert_eq!((item.value(), item.flags()), (&b"abc"[..], 7));
    assert!((98..=100).contains(&item.lifetime()));
    let store = Store {
        lifetime: 50,
        ..Store::set(b"b", b"xyz")
    };
    native.store(&store).unwrap();
    client.says("get b\r\n", "VALUE b 0 3\r\nxyz\r\nEND\r\n");
    let seen = String::from_utf8(client.ask(b"mg b t\r\n", 8)).unwrap();
    assert!(
        ["HD t50\r\n", "HD t49\r\n", "HD t48\r\n"].contains(&&seen[..]),
        "{seen}"
    );
    let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let at = since_1970.as_secs() + 70;
    client.says(&format!("set c 0 {at} 0\r\n\r\n"), "STORED\r\n");
    let item = native.get(b"c").unwrap().unwrap();
    assert!((60..=71).contains(&item.lifetime()));
    client.says("flush_all\r\n", "OK\r\n");
    assert!(native.get(b"a").unwrap().is_none());
    let figures = server.end()[0];
    assert!(figures.requests >= 3 && figures.gets >= 4, "{figures:?}");
}

#[test]
fn a_client_that_does_not_read_does_not_stop_others() {
    let server = Running::start(Options::default());
    let mut slow = server.call();
    let value = "x".repeat(100_000);
    slow.says(&format!("set v 0 0 100000\r\n{value}\r\n"), "STORED\r\n");
    // 100 MB of answers, which the client does not read yet.
    slow.0
        .write_all("get v\r\n".repeat(1000).as_bytes())
        .unwrap();
    let mut other = server.call();
    let begin = Instant::now();
    for _ in 0..100 {
        other.says("mn\r\n", "MN\r\n");
    }
    assert!(begin.elapsed() < Duration::from_secs(5));
    let answer = format!("VALUE v 0 100000\r\n{value}\r\nEND\r\n");
    for _ in 0..1000 {
        assert!(slow.read(answer.len()) == answer.as_bytes());
    }
}

#[test]
fn clients_above_the_limit_get_memcacheds_error() {
    let server = Running::start(Options {
        max_connections: 3,
        ..Options::default()
    });
    let mut clients = [server.call(), server.call(), server.call()];
    for client in &mut clients {
        client.says("mn\r\n", "MN\r\n");
    }
    let refused = server.call().rest();
    assert_eq!(refused, b"ERROR Too many open connections\r\n");
    drop(clients);
    // Their places are free again.
    wait_until("a place is free", || {
        let mut late = server.call();
        let _ = late.0.write_all(b"mn\r\nquit\r\n");
        late.rest() == b"MN\r\n"
    });
    let mut client = server.call();
    client.0.write_all(b"stats\r\n").unwrap();
    let stats = client.read_to("END\r\n");
    assert!(stats.contains("STAT max_connections 3\r\n"));
    assert!(!stats.contains("STAT rejected_connections 0\r\n"));
    assert!(stats.contains(&format!("STAT pid {}\r\n", std::process::id())));
}

#[test]
fn statistics_name_the_clients() {
    let server = Running::start(Options {
        memory: 64 << 20,
        settings: vec![("inter", "127.0.0.1".to_owned())],
        ..Options::default()
    });
    let mut client = server.call();
    let address = client.0.local_addr().unwrap();
    client.0.write_all(b"stats conns\r\n").unwrap();
    let conns = client.read_to("END\r\n");
    assert!(
        conns.contains(&format!("STAT 1:addr tcp:{address}\r\n")),
        "{conns}"
    );
    client.0.write_all(b"stats settings\r\n").unwrap();
    let settings = client.read_to("END\r\n");
    for line in ["maxbytes 67108864", "inter 127.0.0.1", "flush_enabled yes"] {
        assert!(settings.contains(&format!("STAT {line}\r\n")), "{settings}");
    }
}

#[test]
fn idle_clients_stay_and_others_are_served() {
    let server = Running::start(Options::default());
    let mut idle: Vec<_> = (0..300).map(|_| server.call()).collect();
    for client in &mut idle {
        client.says("mn\r\n", "MN\r\n");
    }
    // After two seconds, all of them count as idle.
    std::thread::sleep(Duration::from_millis(2100));
    for client in &mut idle {
        client.says("mn\r\n", "MN\r\n");
    }
}

#[test]
fn a_client_that_sends_its_last_command_gets_its_answer() {
    let server = Running::start(Options::default());
    let mut client = server.call();
    client
        .0
        .write_all(b"set a 0 0 1\r\nx\r\nget a\r\n")
        .unwrap();
    client.0.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.rest(), b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn clients_that_leave_in_the_middle_of_a_value_are_forgotten() {
    let server = Running::start(Options::default());
    for _ in 0..20 {
        let mut client = server.call();
        client.0.write_all(b"set a 0 0 100\r\nabc").unwrap();
    }
    let mut client = server.call();
    wait_until("one client is left", || {
        client.0.write_all(b"stats\r\n").unwrap();
        client
            .read_to("END\r\n")
            .contains("STAT curr_connections 1\r\n")
    });
    client.says("get a\r\n", "END\r\n");
}

#[test]
fn other_protocols_get_an_answer_before_the_connection_ends() {
    let server = Running::start(Options::default());
    let mut binary = server.call();
    let request = [&[0x80, 0x0a][..], &[0; 10], b"oaqu", &[0; 8]].concat();
    binary.0.write_all(&request).unwrap();
    let answer = binary.rest();
    assert_eq!(
        (answer[0], &answer[6..8], &answer[12..16]),
        (0x81, &[0, 0x81][..], &b"oaqu"[..])
    );
    let mut tls = server.call();
    tls.0
        .write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3])
        .unwrap();
    assert_eq!(tls.rest(), b"CLIENT_ERROR TLS is not enabled\r\n");
    let mut http = server.call();
    http.0
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert_eq!(http.rest(), b"");
}

/// The answer arrives although the server never read most of the line.
#[test]
fn a_line_without_an_end_is_refused() {
    let server = Running::start(Options::default());
    let mut client = server.call();
    let mut writer = client.0.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        let piece = [b'x'; 65536];
        (0..1600)
            .take_while(|_| writer.write_all(&piece).is_ok())
            .count()
    });
    assert_eq!(client.rest(), b"CLIENT_ERROR line too long\r\n");
    writing.join().unwrap();
}

#[test]
fn only_known_users_come_in() {
    let users = Users::read(b"ann:secret\n").unwrap();
    let server = Running::start(Options {
        users: Some(Arc::new(users)),
        refuses_flush: true,
        ..Options::default()
    });
    let mut client = server.call();
    client.says("get a\r\n", "CLIENT_ERROR unauthenticated\r\n");
    client.says("set a 0 0 10\r\nann secret\r\n", "STORED\r\n");
    client.says("get a\r\n", "END\r\n");
    client.says("flush_all\r\n", "CLIENT_ERROR flush_all not allowed\r\n");
}
