//! A process's counters are the same whether another process or the process itself reads them; a
//! hidden process shows none.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use dunlin_core::Tag;
use dunlin_insight::{ReadError, Remote, Snapshot, Trace, Whereabouts};
use dunlin_nexus::{InsightTcp, Nexus, Rpc};
use dunlin_transport::shm::Shm;
use dunlin_wire::ReqType;
use dunlin_wire::control::{
    BootId, Features, Hello, Incarnation, InsightRead, MAX_FRAME, MAX_INSIGHT, Message, frame_len,
};

/// A nexus whose counters can be read over TCP.
fn open() -> Nexus {
    let builder = Nexus::builder().insight_tcp(InsightTcp::Counters);
    builder.bind("127.0.0.1:0").unwrap()
}

#[test]
fn the_counters_over_the_control_plane_are_the_same() {
    let nexus = open();
    let _endpoint: Rpc<Shm, ()> = nexus.endpoint(()).unwrap();
    let mut remote = Remote::connect(&nexus.address().to_string()).unwrap();
    let there = Snapshot::read(&mut remote).unwrap();
    let here = nexus.snapshot().unwrap();
    assert_eq!(there.endpoints, here.endpoints);
    assert_eq!((there.pid, there.address), (here.pid, here.address));
}

#[test]
fn no_counters_are_read_over_tcp_unless_the_option_is_on() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut remote = Remote::connect(&nexus.address().to_string()).unwrap();
    let error = Snapshot::read(&mut remote).unwrap_err();
    assert!(matches!(error, ReadError::Truncated { at: 0 }), "{error}");
    assert!(
        nexus.snapshot().is_some(),
        "the process itself can read its counters"
    );
}

/// All bytes of counters that a connection can read. It sends the next question as soon as an
/// answer comes.
fn everything(address: std::net::SocketAddr) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut out = [0; MAX_FRAME];
    let mut say = |stream: &mut TcpStream, message: Message<'_>| {
        let len = message.encode(&mut out).unwrap();
        stream.write_all(&out[..len]).unwrap();
    };
    let hello = Hello {
        min_version: 1,
        max_version: 1,
        features: Features::default(),
        boot_id: BootId([1; 16]),
        incarnation: Incarnation(1),
        port: 0,
        unix_name: "",
    };
    say(&mut stream, Message::Hello(hello));
    let (mut found, mut input) = (Vec::new(), Vec::new());
    for offset in (0..).step_by(MAX_INSIGHT) {
        let len = u16::try_from(MAX_INSIGHT).unwrap();
        say(
            &mut stream,
            Message::InsightRead(InsightRead { offset, len }),
        );
        loop {
            let Some(len) = frame_len(&input).unwrap() else {
                let mut chunk = [0; 8192];
                let got = stream.read(&mut chunk).unwrap();
                assert_ne!(got, 0, "the server has closed the connection");
                input.extend_from_slice(&chunk[..got]);
                continue;
            };
            let frame: Vec<u8> = input.drain(..len).collect();
            match Message::decode(&frame).unwrap() {
                Message::Insight(part) => {
                    found.extend_from_slice(part.bytes);
                    if part.bytes.len() < MAX_INSIGHT {
                        return found;
                    }
                    break;
                }
                Message::Heartbeat { counter } => {
                    say(&mut stream, Message::HeartbeatAck { counter });
                }
                _ => {}
            }
        }
    }
    unreachable!("a file ends")
}

/// A trace holds data of packets, and a session's row holds its peer's address. A reader over the
/// control plane may see neither.
#[test]
fn no_packets_and_no_addresses_are_read_over_the_control_plane() {
    const ECHO: ReqType = ReqType(1);
    let nexus = open();
    let mut server: Rpc<Shm, ()> = nexus.endpoint(()).unwrap();
    server.on(ECHO, |(), request, cx| request.reply(cx, 0, |_| {}));
    let other = Nexus::bind("127.0.0.1:0").unwrap();
    let mut client: Rpc<Shm, ()> = other.endpoint(()).unwrap();
    let files = dunlin_insight::of_process(std::process::id()).unwrap();
    let mut traces: Vec<_> = files
        .iter()
        .filter_map(|found| Trace::begin(found, None, 200).ok())
        .collect();
    let session = client.connect(nexus.address()).unwrap();
    let secret = *b"for the reader on this host";
    let mut done = false;
    for turn in 0..600 {
        if turn % 60 == 30 {
            let mut request = client.buf(secret.len()).unwrap();
            request.data_mut().copy_from_slice(&secret);
            let response = client.buf(8).unwrap();
            done |= client
                .call(session, ECHO, request, response, Tag(0))
                .is_ok();
            traces
                .iter_mut()
                .for_each(|trace| trace.still_wanted().unwrap());
        }
        client.run_for(Duration::from_millis(1));
        server.run_for(Duration::from_millis(1));
    }
    assert!(done);
    let has = |bytes: &[u8]| bytes.windows(secret.len()).any(|part| part == secret);
    let there = everything(nexus.address());
    assert!(there.len() > 10_000, "{} bytes of counters", there.len());
    assert!(!has(&there), "data of a packet is read over TCP");
    assert!(
        files
            .iter()
            .any(|found| has(&std::fs::read(&found.path).unwrap_or_default())),
        "the memory file has it"
    );
    let here = nexus.snapshot().unwrap();
    assert!(here.endpoints[0].sessions[0].place.nexus.is_some());
    let there = Snapshot::read(&mut Remote::connect(&nexus.address().to_string()).unwrap());
    let row = there.unwrap().endpoints[0].sessions[0].clone();
    assert_eq!(row.place, Whereabouts::default());
}

#[test]
fn a_hidden_nexus_has_nothing_to_read() {
    let builder = Nexus::builder().hidden(true);
    let nexus = builder
        .insight_tcp(InsightTcp::Counters)
        .bind("127.0.0.1:0")
        .unwrap();
    assert!(nexus.snapshot().is_none());
    let mut remote = Remote::connect(&nexus.address().to_string()).unwrap();
    let error = Snapshot::read(&mut remote).unwrap_err();
    assert!(matches!(error, ReadError::Truncated { at: 0 }), "{error}");
}
