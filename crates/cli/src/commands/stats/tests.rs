//! The output about a nexus of this process, in every format.

use std::collections::{BTreeMap, BTreeSet};

use dunlin::{ConnectOptions, Done, InsightTcp, Nexus, ReqType, Rpc, Shm, Tag};
use dunlin_insight::Snapshot;

use super::columns::{count, rate, time};
use super::*;

const ECHO: ReqType = ReqType(1);
const CALLS: u64 = 20;

/// The snapshot of a nexus whose two endpoints have exchanged RPCs.
pub(crate) fn snapshot() -> Snapshot {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut server: Rpc<Shm, ()> = nexus.endpoint_builder().index(1).build(()).unwrap();
    server.on(ECHO, |(), request, cx| {
        let data = request.data().to_vec();
        request.reply(cx, data.len(), |out| out.copy_from_slice(&data));
    });
    let mut client: Rpc<Shm, Vec<Done>> = nexus.endpoint(Vec::new()).unwrap();
    client.on_completion(|app, done, _| app.push(done));
    let options = ConnectOptions {
        endpoint: Some(1),
        ..ConnectOptions::default()
    };
    let session = client.connect_with(nexus.address(), &options).unwrap();
    for tag in 0..CALLS {
        let (mut request, response) = (client.buf(32).unwrap(), client.buf(32).unwrap());
        request.data_mut().fill(7);
        client
            .call(session, ECHO, request, response, Tag(tag))
            .unwrap();
        while client.app().len() as u64 <= tag {
            client.iterate(|_| dunlin::Nanos::ZERO);
            server.iterate(|_| dunlin::Nanos::ZERO);
        }
    }
    // Both publish before they block, and otherwise once an interval.
    for _ in 0..1000 {
        client.run_for(Duration::from_millis(1));
        server.run_for(Duration::from_millis(1));
        if let Some(snapshot) = nexus.snapshot().filter(is_current) {
            return snapshot;
        }
    }
    panic!("{:?}", nexus.snapshot());
}

fn is_current(snapshot: &Snapshot) -> bool {
    let sum = |name| -> u64 {
        snapshot
            .endpoints
            .iter()
            .map(|e| e.counters.get(name))
            .sum()
    };
    sum("completions") == CALLS && sum("requests_received") == CALLS
}

#[test]
fn a_running_process_shows_what_it_did() {
    let snapshot = snapshot();
    assert_eq!(snapshot.endpoints.len(), 2);
    let client = &snapshot.endpoints[0];
    assert_eq!(client.transport, "shm");
    assert_eq!(client.counters.get("requests_sent"), CALLS);
    assert_eq!(client.histogram("call").unwrap().count(), CALLS);
    assert_eq!(client.sessions.len(), 1);
    assert_eq!(client.sessions[0].get("window"), 8);
    let text = tables::render(&snapshot, false);
    let [client_there, server_there] = [0, 1].map(|index| format!("{}/{index}", snapshot.address));
    assert!(text.contains(&client_there), "{text}");
    assert!(text.contains(&server_there), "{text}");
    assert!(text.contains("endpoint 1 (shm), 1 sessions"), "{text}");
    assert!(!text.contains("handler_panics"), "{text}");
    assert!(tables::render(&snapshot, true).contains("handler_panics"));
    let json: serde_json::Value = serde_json::from_str(&json::line(&snapshot)).unwrap();
    assert_eq!(json["endpoints"][1]["counters"]["requests_received"], CALLS);
    assert_eq!(json["endpoints"][0]["times"]["call"]["count"], CALLS);
    let session = &json["endpoints"][0]["sessions"][0];
    assert_eq!(session["peer_nexus"], snapshot.address);
    assert_eq!(session["peer_endpoint"], 1);
    assert_eq!(session["peer_port"], serde_json::Value::Null, "{session}");
}

/// Checks the rules of the text format on which a scraper relies.
#[test]
fn the_text_for_prometheus_is_valid() {
    let text = prometheus::render(&[snapshot(), snapshot()]);
    let mut types = BTreeMap::new();
    let (mut seen, mut families, mut last) = (BTreeSet::new(), BTreeSet::new(), "");
    let mut buckets: BTreeMap<String, f64> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name, kind).is_none(), "twice: {name}");
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap();
        let (name, labels) = series.strip_suffix('}').unwrap().split_once('{').unwrap();
        assert!(seen.insert(series), "twice: {series}");
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .filter_map(|suffix| name.strip_suffix(suffix))
            .find(|family| types.get(family) == Some(&"histogram"))
            .unwrap_or(name);
        let kind = types
            .get(family)
            .unwrap_or_else(|| panic!("no type: {line}"));
        assert!(family == last || families.insert(family), "apart: {line}");
        last = family;
        assert_eq!(*kind == "counter", name.ends_with("_total"), "{line}");
        if name.ends_with("_bucket") {
            let (of, _) = labels.rsplit_once(",le=").unwrap();
            let before = buckets.insert(format!("{name}{of}"), value).unwrap_or(0.0);
            assert!(before <= value, "buckets fall: {line}");
        }
    }
    assert!(types.len() > 40, "{text}");
    assert_eq!(buckets.len(), 2 * 2 * 3);
    assert!(text.contains("dunlin_call_seconds_count{"));
}

#[test]
fn rates_cover_the_time_between_two_snapshots() {
    let mut snapshot = snapshot();
    let before = [snapshot.clone()];
    snapshot.endpoints[0].clock_ns += 500_000_000;
    let all = rates::all_between(&before, std::slice::from_ref(&snapshot));
    assert!((all[0].seconds() - 0.5).abs() < 1e-9);
    assert_eq!(
        all[0].growth(dunlin_insight::Group::Counters, "completions"),
        0
    );
    assert_eq!(all[0].histogram("call").count(), 0);
    // All counts of a new endpoint belong to the time since its start.
    let new = rates::all_between(&[], std::slice::from_ref(&snapshot));
    assert_eq!(
        new[0].growth(dunlin_insight::Group::Counters, "completions"),
        CALLS
    );
    assert_eq!(rates::lines(&new, 0).lines().count(), 3);
    assert_eq!(rates::lines(&new, 1).lines().count(), 2);
}

#[test]
fn a_target_is_a_number_an_address_or_a_path() {
    assert_eq!("4711".parse(), Ok(Target::Process(4711)));
    assert_eq!(
        "[::1]:31850".parse(),
        Ok(Target::Address("[::1]:31850".into()))
    );
    assert_eq!("./saved".parse(), Ok(Target::Saved("./saved".into())));
    for wrong in ["", "saved", ":31850", "host:", "host:70000", "-3"] {
        assert!(wrong.parse::<Target>().is_err(), "{wrong}");
    }
}

/// A process that has taken the address of another is not mistaken for it.
#[test]
fn a_process_that_takes_the_address_of_another_ends_the_watch() {
    let shown = Nexus::builder().insight_tcp(InsightTcp::Counters);
    let first = shown.bind("127.0.0.1:0").unwrap();
    let address = first.address();
    let mut opened = Opened::open(&Target::Address(address.to_string())).unwrap();
    assert_eq!(opened.read().unwrap()[0].address, address.to_string());
    assert!(opened.read().is_ok(), "the same as before");
    drop(first);
    let second = Nexus::builder().insight_tcp(InsightTcp::Counters);
    let _second = second.bind(address).unwrap();
    let why = opened.read().unwrap_err().to_string();
    assert!(
        why.contains(&format!("at {address} has ended; process")),
        "{why}"
    );
}

#[test]
fn numbers_have_three_digits_and_a_unit() {
    assert_eq!(
        [0, 999, 1_230, 45_600_000].map(time),
        ["-", "999 ns", "1.23 µs", "45.6 ms"]
    );
    assert_eq!([0.0, 12.3, 4.5e6].map(rate), ["0", "12.3", "4.50M"]);
    assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
}
