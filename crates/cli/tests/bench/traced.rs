//! tshark dissects the file that `dunlin trace` writes about running endpoints: small calls, large
//! messages in both directions, and errors, over both transports.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use dunlin::{
    ConnectOptions, Done, ErrorCode, Nexus, Open, ReqType, Rpc, Session, SessionInfo, Shm, Tag, Udp,
};
use serde_json::Value;

use super::command::signal;
use super::turns::alone;
use super::wireshark::{dissect, number, packets, temporary};
use super::{dunlin, text};

const ECHO: ReqType = ReqType(1);
const REJECT: ReqType = ReqType(2);
/// A type without a handler.
const UNKNOWN: ReqType = ReqType(9);
const REJECTED: ErrorCode = ErrorCode::application(404);
/// Indices of the endpoints.
const SERVER: u16 = 4;
const CLIENT: u16 = 5;
const SMALL: usize = 32;
/// No wait takes this long unless a test fails, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
/// A time in which a tracer certainly writes its buffer to the file.
const WRITTEN: Duration = Duration::from_millis(300);

/// Two endpoints of this process with a session.
struct Pair<T: Open> {
    server: Rpc<T, ()>,
    client: Rpc<T, Vec<Done>>,
    session: Session,
}

impl<T: Open> Pair<T> {
    fn connect() -> Self {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let mut server: Rpc<T, ()> = nexus.endpoint_builder().index(SERVER).build(()).unwrap();
        server.on(ECHO, |(), request, cx| {
            let data = request.data().to_vec();
            request.reply_bytes(cx, &data);
        });
        server.on(REJECT, |(), request, cx| request.reject(cx, REJECTED));
        let client = nexus.endpoint_builder().index(CLIENT).build(Vec::new());
        let mut client: Rpc<T, Vec<Done>> = client.unwrap();
        client.on_completion(|app, done, _| app.push(done));
        let options = ConnectOptions {
            endpoint: Some(SERVER),
            ..ConnectOptions::default()
        };
        // Only the client has this session, so the next one gets different numbers at the two ends.
        client.connect("127.0.0.1:1").unwrap();
        let session = client.connect_with(nexus.address(), &options).unwrap();
        let mut pair = Self {
            server,
            client,
            session,
        };
        pair.turn_until(|pair| pair.info().open);
        pair
    }

    fn info(&self) -> SessionInfo {
        self.client.session_info(self.session).unwrap()
    }

    /// Runs both endpoints in turn until `done` returns true.
    fn turn_until(&mut self, mut done: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !done(self) {
            assert!(Instant::now() < deadline, "too long");
            self.client.run_for(Duration::from_micros(100));
            self.server.run_for(Duration::from_micros(100));
        }
    }

    fn turn_for(&mut self, span: Duration) {
        let end = Instant::now() + span;
        self.turn_until(|_| Instant::now() >= end);
    }

    /// Makes one call, and returns its completion.
    fn call(&mut self, kind: ReqType, len: usize) -> Done {
        let buffers = (self.client.buf(len).unwrap(), self.client.buf(len).unwrap());
        let (mut request, response) = buffers;
        request.data_mut().fill(0x5A);
        let called = self
            .client
            .call(self.session, kind, request, response, Tag(0));
        called.unwrap();
        self.turn_until(|pair| !pair.client.app().is_empty());
        self.client.app_mut().pop().unwrap()
    }
}

/// Stops a tracer with the signal that Ctrl-C sends.
fn finish(tracer: Child) {
    signal(tracer.id(), "-INT");
    let out = tracer.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
}

/// Makes calls of every kind while `dunlin trace` writes to `path`. Returns the length of the large
/// messages, and the session's numbers at the client and at the server.
fn trace<T: Open>(path: &Path) -> (usize, [u32; 2]) {
    let mut pair = Pair::<T>::connect();
    // Three full packets and a part of one.
    let info = pair.info();
    let large = 3 * info.data_size as usize + 100;
    // The file may exist from an earlier run.
    let _ = std::fs::remove_file(path);
    let pid = std::process::id().to_string();
    let tracer = dunlin(&["trace", &pid, "-o", path.to_str().unwrap()])
        .spawn()
        .unwrap();
    let begun = || std::fs::metadata(path).is_ok_and(|file| file.len() > 1000);
    let deadline = Instant::now() + LIMIT;
    while !begun() {
        assert!(Instant::now() < deadline, "nothing is traced");
        assert!(pair.call(ECHO, SMALL).result.is_ok());
        pair.turn_for(Duration::from_millis(5));
    }
    assert!(pair.call(ECHO, large).result.is_ok());
    for kind in [UNKNOWN, REJECT] {
        assert!(pair.call(kind, SMALL).result.is_err());
    }
    pair.turn_for(WRITTEN);
    finish(tracer);
    (large, [pair.session.number().0, info.remote.0])
}

/// A packet and its frame.
struct Seen {
    endpoint: u16,
    sent: bool,
    packet: Value,
}

impl Seen {
    fn number(&self, field: &str) -> u64 {
        number(&self.packet[field])
    }

    fn is(&self, kind: u64, endpoint: u16, sent: bool) -> bool {
        self.number("dunlin.type") == kind && self.endpoint == endpoint && self.sent == sent
    }
}

fn seen(frames: &[Value]) -> Vec<Seen> {
    let mut all = Vec::new();
    for frame in frames {
        let about = &frame["frame"];
        let name = about["frame.interface_id_tree"]["frame.interface_name"].as_str();
        let index = name.unwrap().strip_prefix("endpoint ").unwrap();
        let direction = &about["frame.packet_flags_tree"]["frame.packet_flags_direction"];
        for packet in packets(frame) {
            assert!(packet["dunlin.refused"].is_null(), "{packet}");
            all.push(Seen {
                endpoint: index.parse().unwrap(),
                sent: number(direction) == 2,
                packet: packet.clone(),
            });
        }
    }
    all
}

/// The flag of a retransmitted packet.
const AGAIN: u64 = 2;
const REQ: u64 = 0;
const CR: u64 = 1;
const RESP: u64 = 3;
const ERR: u64 = 4;

/// Checks that one small call was traced from end to end, with its data.
fn assert_small(all: &[Seen]) {
    let small = SMALL as u64;
    let is_small = |seen: &&Seen| {
        seen.is(REQ, CLIENT, true)
            && seen.number("dunlin.request_type") == 1
            && seen.number("dunlin.message_size") == small
    };
    // The last one: when the first left, perhaps only one of the endpoints was traced yet.
    let request = all.iter().rfind(is_small).unwrap();
    assert_eq!(request.number("dunlin.packet"), 0);
    // Each call has its number.
    let mut calls: Vec<u64> = all
        .iter()
        .filter(|seen| is_small(seen) && number(&seen.packet["dunlin.flags"]) & AGAIN == 0)
        .map(|seen| seen.number("dunlin.req"))
        .collect();
    let sent = calls.len();
    calls.sort_unstable();
    calls.dedup();
    assert!(calls.len() == sent && sent > 1, "{calls:?}");
    let data = ["5a"; SMALL].join(":");
    let call = request.number("dunlin.req");
    let places = [
        (REQ, SERVER, false),
        (RESP, SERVER, true),
        (RESP, CLIENT, false),
    ];
    for (kind, endpoint, sent) in places {
        let same =
            |seen: &&Seen| seen.is(kind, endpoint, sent) && seen.number("dunlin.req") == call;
        let found = all.iter().find(same);
        let found = found.unwrap_or_else(|| panic!("{kind} at {endpoint}, call {call}"));
        assert_eq!(found.number("dunlin.message_size"), small);
        assert_eq!(found.packet["dunlin.data"], data.as_str());
        assert_eq!(found.number("dunlin.data_len"), small);
    }
}

/// Checks that all packets of a large message have left one endpoint and arrived at the other.
fn assert_large(all: &[Seen], len: usize) {
    for (kind, from, to) in [(REQ, CLIENT, SERVER), (RESP, SERVER, CLIENT)] {
        for (endpoint, sent) in [(from, true), (to, false)] {
            let mut numbers: Vec<u64> = all
                .iter()
                .filter(|seen| seen.is(kind, endpoint, sent))
                .filter(|seen| seen.number("dunlin.message_size") == len as u64)
                .map(|seen| seen.number("dunlin.packet"))
                .collect();
            // A slow machine may have let a time-out expire, so a packet may appear twice.
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers, [0, 1, 2, 3], "{kind} at {endpoint}");
        }
    }
    let returned =
        |seen: &&Seen| seen.is(CR, CLIENT, false) && number(&seen.packet["dunlin.cumulative"]) > 0;
    assert!(all.iter().any(|seen| returned(&seen)), "no credits return");
}

/// Checks that both errors appear under their names.
fn assert_errors(all: &[Seen]) {
    let errors = all.iter().filter(|seen| seen.is(ERR, CLIENT, false));
    let mut names: Vec<&str> = errors
        .map(|seen| &seen.packet["dunlin.error_tree"]["dunlin.error.name"])
        .map(|name| name.as_str().unwrap())
        .collect();
    names.dedup();
    assert_eq!(names, ["unknown request type", "application error 404"]);
}

fn dissects_a_live_run<T: Open>(name: &str) {
    let path = temporary(name);
    // `dunlin trace` traces every nexus of a process, so no other test may run meanwhile.
    let alone = alone();
    let (large, [client, server]) = trace::<T>(&path);
    assert_ne!(client, server);
    drop(alone);
    let Some(frames) = dissect(&path, "frame dunlin", &[]) else {
        return;
    };
    let all = seen(&frames);
    for seen in &all {
        // A packet carries the number that its receiver has for the session.
        let to_server = seen.sent == (seen.endpoint == CLIENT);
        let receiver = if to_server { server } else { client };
        assert_eq!(seen.number("dunlin.session"), u64::from(receiver));
    }
    assert_small(&all);
    assert_large(&all, large);
    assert_errors(&all);
}

#[test]
fn wireshark_reads_what_was_traced_of_a_run_over_shm() {
    dissects_a_live_run::<Shm>("traced-shm.pcapng");
}

#[test]
fn wireshark_reads_what_was_traced_of_a_run_over_udp() {
    dissects_a_live_run::<Udp>("traced-udp.pcapng");
}
