//! Pings and their servers.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dunlin::{Auto, DeferredRequest, Nexus, ReqType, Rpc};
use serde_json::Value;

use super::{Running, objects, run, text};

/// The request type of `dunlin ping`.
const ECHO: ReqType = ReqType(0x7ec0);

fn ping(address: &str, args: &[&str]) -> (Vec<Value>, Option<i32>, String) {
    let begin = Instant::now();
    let out = run(&[&["ping", address, "--json"], args].concat());
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "a ping that hangs"
    );
    let said = text(&out.stderr).to_owned();
    (objects(&out.stdout), out.status.code(), said)
}

#[test]
fn an_echo_server_answers_pings_of_any_size_over_each_transport() {
    let (server, address) = Running::server(&["--endpoints", "2"]);
    let (lines, code, said) = ping(&address, &["-c", "3", "-i", "1 ms", "-s", "5"]);
    assert_eq!((code, lines.len()), (Some(0), 4), "{said}");
    assert_eq!(
        (&lines[2]["seq"], &lines[2]["bytes"]),
        (&3.into(), &5.into())
    );
    let us = |line: &Value, name: &str| line["us"][name].as_f64().unwrap();
    let summary = &lines[3];
    assert_eq!(
        (&summary["sent"], &summary["answered"]),
        (&3.into(), &3.into())
    );
    assert!(us(summary, "min") > 0.0 && us(summary, "min") <= us(summary, "p50"));
    assert!(us(summary, "p999") <= us(summary, "max"));

    let flood = [
        "-f",
        "-c",
        "50",
        "-s",
        "200000",
        "--transport",
        "udp",
        "--endpoint",
        "1",
    ];
    let (lines, code, said) = ping(&address, &flood);
    assert_eq!(
        (code, lines.len()),
        (Some(0), 1),
        "a flood has only a summary: {said}"
    );
    let buckets = lines[0]["histogram"].as_array().unwrap();
    let counted = buckets
        .iter()
        .map(|bucket| bucket["count"].as_u64().unwrap());
    assert_eq!(counted.sum::<u64>(), 50);
    assert_eq!(lines[0]["wrong"], 0);

    // The port is in use; the message names a command that finds the owner, and a remedy.
    let out = run(&["echo-server", &address]);
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(
        said.contains(&format!("{address} is in use")) && said.contains("ss -ltnp"),
        "{said}"
    );

    let (rest, code) = server.end("-INT");
    assert_eq!(code, Some(0), "Ctrl-C is how it ends");
    assert_eq!(
        (&rest[0]["served"], &rest[0]["sessions"]),
        (&53.into(), &2.into())
    );
    assert_eq!(rest[0]["by_endpoint"], serde_json::json!([3, 50]));
}

#[test]
fn a_server_that_dies_costs_pings_and_its_successor_answers_again() {
    let (server, address) = Running::server(&[]);
    let args = ["ping", &address, "--json", "-i", "20 ms", "-d", "0.3"];
    let mut pinging = Running::start(&args);
    assert!(pinging.line()["us"].is_number());
    drop(server);
    let until = |pinging: &mut Running, name: &str| {
        let begin = Instant::now();
        while pinging.line()[name].is_null() {
            assert!(begin.elapsed() < Duration::from_secs(10), "no {name}");
        }
    };
    until(&mut pinging, "lost");
    let again = Running::start(&["echo-server", &address, "--json"]);
    until(&mut pinging, "us");
    drop(again);
    until(&mut pinging, "lost");
    let (rest, code) = pinging.end("-INT");
    let summary = rest.last().unwrap();
    assert_eq!(code, Some(0), "something has answered");
    assert!(summary["lost"].as_u64().unwrap() >= 2, "{summary}");
    assert!(summary["loss_percent"].as_f64().unwrap() > 0.0, "{summary}");
}

#[test]
fn a_stopped_server_is_not_waited_for() {
    let (server, address) = Running::server(&[]);
    server.signal("-STOP");
    let patience = ["--set", "session.patience=0.3 s", "-c", "1"];
    let (lines, code, said) = ping(&address, &patience);
    assert_eq!((code, lines.len()), (Some(1), 0), "{said}");
    server.signal("-CONT");
}

#[test]
fn an_address_without_a_server_is_exit_code_1_with_advice() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let loud = TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = [&silent, &loud].map(|listener| listener.local_addr().unwrap().to_string());
    std::thread::spawn(move || {
        for stream in loud.incoming() {
            // The client may close the connection at any time.
            let _ = stream
                .unwrap()
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let absent = "127.0.0.1:1".to_owned();
    for address in [&absent, &addresses[0], &addresses[1]] {
        let patience = ["--set", "session.patience=0.3 s"];
        let (lines, code, said) = ping(address, &patience);
        assert_eq!((code, lines.len()), (Some(1), 0), "{said}");
        let hint = format!("`dunlin echo-server {address}`");
        assert!(said.contains(&hint), "{said}");
    }
    let (_, code, said) = ping("nowhere", &[]);
    assert_eq!(code, Some(1));
    assert!(said.contains("not a HOST:PORT"), "{said}");
}

/// Pings an endpoint of this process that has the handlers of `register`.
fn ping_here<App: 'static>(
    app: impl FnOnce() -> App + Send + 'static,
    register: fn(&mut Rpc<Auto, App>),
    args: &[&str],
) -> (Vec<Value>, Option<i32>, String) {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let address = nexus.address().to_string();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let server = std::thread::spawn(move || {
        let mut rpc: Rpc<Auto, App> = nexus.endpoint(app()).unwrap();
        register(&mut rpc);
        rpc.run_until(|_| stopped.load(Ordering::Relaxed));
    });
    let said = ping(&address, args);
    stop.store(true, Ordering::Relaxed);
    server.join().unwrap();
    said
}

#[test]
fn a_server_without_an_echo_is_still_found() {
    let (lines, code, said) = ping_here(|| (), |_| {}, &["-c", "1"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("is alive, but refuses pings"), "{said}");
    let refused = &lines[0];
    assert!(
        refused["refused"].is_string() && refused["us"].is_number(),
        "{refused}"
    );
    assert_eq!(
        (&lines[1]["refused"], &lines[1]["answered"]),
        (&1.into(), &0.into())
    );
}

#[test]
fn a_server_that_answers_too_late_is_exit_code_1() {
    let never = |rpc: &mut Rpc<Auto, Vec<DeferredRequest>>| {
        rpc.on(ECHO, |held, request, cx| held.push(request.defer(cx)));
    };
    let args = ["-c", "2", "-i", "0", "-d", "30 ms"];
    let (lines, code, said) = ping_here(Vec::new, never, &args);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        lines[0]["lost"].as_str().unwrap().contains("deadline"),
        "{}",
        lines[0]
    );
    assert_eq!(lines[2]["lost"], 2);
    assert!(said.contains("has answered within 30ms"), "{said}");
}
