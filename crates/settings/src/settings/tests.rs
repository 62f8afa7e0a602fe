//! Layers, refusals with places and nearest names, and the values that reach the builders.
//! `tests/complete.rs` tests that the table has every field of the option structs, and
//! `tests/page.rs` that the page about options has every row.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod complete;
mod page;

use std::ffi::OsString;
use std::time::Duration;

use dunlin_core::Nanos;
use dunlin_nexus::{Idle, Nexus};
use dunlin_transport::shm::Shm;

use super::{Settings, find};
use crate::value::Value;
use crate::{Source, nearest, table};

fn refused(toml: &str) -> String {
    let refused = Settings::default().with_toml("dunlin.toml", toml);
    refused.unwrap_err().to_string()
}

fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let owned = pairs
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    owned.collect()
}

#[test]
fn a_later_layer_has_priority_and_says_where_a_value_is_from() {
    let settings = Settings::default()
        .with_toml(
            "a.toml",
            "endpoint.backlog = 7\n[udp]\npack = false\ngso = false",
        )
        .unwrap()
        .with_variables(variables(&[("DUNLIN_UDP_PACK", "yes"), ("HOME", "/")]))
        .unwrap()
        .with("endpoint.backlog", "9")
        .unwrap();
    let entry = |name: &str| settings.get(name).unwrap();
    let shown = |name: &str| format!("{} {}", entry(name).value, entry(name).source);
    assert_eq!(shown("endpoint.backlog"), "9 the program");
    assert_eq!(shown("udp.pack"), "on DUNLIN_UDP_PACK");
    assert_eq!(shown("udp.gso"), "off a.toml:4:7");
    assert_eq!(shown("udp.gro"), "on default");
    assert_eq!(entry("endpoint.backlog").default, "1024");
}

#[test]
fn a_wrong_key_is_refused_with_its_place_and_the_nearest_name() {
    assert_eq!(
        refused("[endpoint]\n  rto_flor = \"5 ms\"\n"),
        "dunlin.toml:2:3: there is no option `endpoint.rto_flor`; the nearest is \
         `endpoint.rto_floor`"
    );
    let end = |toml: &str| refused(toml).rsplit(' ').next().unwrap().to_owned();
    assert_eq!(end("cels = 64"), "`shm.cells`");
    assert_eq!(end("sesion = 64"), "`session`");
    // The group is missing.
    let bare = refused("rto_floor = 5");
    assert!(
        bare.ends_with("the nearest is `endpoint.rto_floor`"),
        "{bare}"
    );
    let group = refused("[sesion]\nwindow = 4");
    assert!(
        group.contains(":2:1: ") && group.ends_with("`session.window`"),
        "{group}"
    );
    let inside = refused("[nexus.heartbeat]\nbeatz = 4\n[udp.pack]\nx = 1");
    assert_eq!(inside.lines().count(), 2, "{inside}");
    assert!(inside.contains("`nexus.heartbeat.beats`"), "{inside}");
}

#[test]
fn a_wrong_value_is_refused_with_its_place_and_what_was_expected() {
    assert_eq!(
        refused("endpoint.rto_floor = \"5 parsecs\""),
        "dunlin.toml:1:22: `endpoint.rto_floor` cannot be `5 parsecs`; expected 1 us to 1 h; \
         write `5 ms`, or a plain number of ms"
    );
    let scheme = refused("endpoint.scheme = \"timly\"");
    assert!(scheme.ends_with("the nearest is `timely`"), "{scheme}");
    let window = refused("session.window = 12");
    assert!(
        window.ends_with("expected 1 to 64, a power of two; the nearest is `8`"),
        "{window}"
    );
    for wrong in [
        "endpoint.rto_floor = true",
        "endpoint.rto_floor = -1",
        "endpoint.rto_floor = 0",
        "endpoint.rto_floor = 1e3",
        "endpoint.rto_floor = \"0.0000001 ms\"",
        "endpoint.rto_floor = [1]",
        "endpoint.rto_floor = 1979-05-27",
        "endpoint.max_message = \"2 GiB\"",
        "endpoint.max_message = 99999999999999999999",
        "endpoint.max_message = \"5 ms\"",
        "endpoint.hugepages = 2",
        "nexus.listen = \"31850\"",
        "nexus.listen = \"::1:31850\"",
        "nexus.advertise = \"0.0.0.0\"",
        "nexus.allow_peers = []",
        "nexus.allow_peers = [1]",
        "nexus.allow_peers = \"10.1.0.0/8\"",
        "udp.ip = \"localhost\"",
        "udp.ip = [\"10.1.2.3\"]",
        "udp.pack = {}",
        "udp.busy_poll = \"1500 ns\"",
    ] {
        let said = refused(wrong);
        assert!(
            said.starts_with("dunlin.toml:1:") && said.contains("expected "),
            "{said}"
        );
    }
}

#[test]
fn a_list_of_networks_is_written_as_one_text_or_as_an_array() {
    for list in ["\"10.1.0.0/16, ::1\"", "[\"10.1.0.0/16\", \"::1\"]"] {
        let toml = format!("nexus.allow_peers = {list}\n");
        let settings = Settings::default().with_toml("a.toml", &toml).unwrap();
        for name in ["nexus.allow_peers", "udp.allow_peers"] {
            assert_eq!(settings.get(name).unwrap().value, "10.1.0.0/16, ::1/128");
        }
        let settings = settings.with("udp.allow_peers", "none").unwrap();
        assert_eq!(settings.get("udp.allow_peers").unwrap().value, "none");
    }
}

#[test]
fn an_impossible_number_is_refused_with_the_nearest_possible_one() {
    for (key, value, nearest) in [
        ("endpoint.rto_floor", "0", "1 us"),
        ("endpoint.rto_floor", "-1", "1 us"),
        ("endpoint.rto_floor", "\"0.0000001 ms\"", "1 us"),
        ("endpoint.rto_floor", "\"90 min\"", "1 h"),
        ("endpoint.max_message", "\"2 GiB\"", "1 GiB"),
        ("endpoint.max_message", "99999999999999999999", "1 GiB"),
        (
            "endpoint.max_message",
            "\"99999999999999999999 TiB\"",
            "1 GiB",
        ),
        ("session.window", "0", "1"),
        ("session.window", "12", "8"),
        ("session.window", "13", "16"),
        ("session.window", "65", "64"),
        ("endpoint.first_req", "100", "128"),
        ("endpoint.first_req", "4294967295", "4294967232"),
        ("udp.busy_poll", "\"1600 ns\"", "2 us"),
        ("udp.busy_poll", "\"1400 ns\"", "1 us"),
        ("endpoint.backlog", "1.4", "1"),
    ] {
        let said = refused(&format!("{key} = {value}"));
        let end = format!("; the nearest is `{nearest}`");
        assert!(said.ends_with(&end), "{said}");
        let accepted = Settings::default().with(key, nearest);
        assert!(accepted.is_ok(), "{key} = {nearest}");
    }
    for (key, value) in [
        ("endpoint.rto_floor", "[1]"),
        ("endpoint.max_message", "\"5 ms\""),
        ("udp.ip", "7"),
        ("udp.pack", "7"),
    ] {
        let said = refused(&format!("{key} = {value}"));
        assert!(!said.contains("nearest"), "nothing is near: {said}");
    }
}

/// If an option from the program contradicts one from a file, the refusal uses the names that the
/// options have in files.
#[test]
fn a_wrong_value_of_a_builder_is_refused_by_its_key() {
    let settings = Settings::default()
        .with_toml("a.toml", "endpoint.probe_max = \"200 ms\"")
        .unwrap();
    let nexus = settings.nexus().bind("127.0.0.1:0").unwrap();
    let refused = settings
        .endpoint::<Shm>(&nexus)
        .config(|config| config.response_hold = Nanos::from_millis(1))
        .build(());
    let said = refused.unwrap_err().to_string();
    for key in ["endpoint.response_hold", "endpoint.probe_max"] {
        assert!(find(key).is_some() && said.contains(key), "{said}");
    }
}

#[test]
fn a_text_that_is_not_toml_is_refused_with_its_place() {
    let said = refused("[udp]\npack = \n");
    assert!(said.starts_with("dunlin.toml:2:"), "{said}");
    let twice = refused("udp.pack = true\nudp.pack = true");
    assert!(twice.starts_with("dunlin.toml:2:"), "{twice}");
    let missing = Settings::load_from("/nonexistent/dunlin.toml").unwrap_err();
    let missing = missing.to_string();
    assert!(
        missing.starts_with("/nonexistent/dunlin.toml: cannot read"),
        "{missing}"
    );
}

#[test]
fn variables_that_are_not_options_or_wrong_are_all_refused() {
    let wrong = variables(&[
        ("DUNLIN_UDP_PAK", "off"),
        ("DUNLIN_UDP_PACK", "perhaps"),
        ("DUNLIN_CONFIG", "x.toml"),
        ("DUNLIN_NO_SKIP", "1"),
        ("DUNLIN_", ""),
    ]);
    let error = Settings::default().with_variables(wrong).unwrap_err();
    let said = error.to_string();
    assert_eq!(error.problems().len(), 3, "{said}");
    assert!(
        said.contains("DUNLIN_UDP_PAK: no option has this variable"),
        "{said}"
    );
    assert!(said.contains("nearest is DUNLIN_UDP_PACK"), "{said}");
    assert!(
        said.contains("DUNLIN_UDP_PACK: `udp.pack` cannot be `perhaps`"),
        "{said}"
    );
}

#[test]
fn values_are_read_in_every_unit() {
    let read = |name: &str, text: &str| find(name).unwrap().parse(text);
    let number = |n: u64| Some(Value::Number(n));
    assert_eq!(read("endpoint.rto_floor", "5"), number(5_000_000));
    assert_eq!(read("endpoint.rto_floor", "2.5"), number(2_500_000));
    assert_eq!(read("endpoint.rto_floor", "250us"), number(250_000));
    assert_eq!(read("endpoint.rto_floor", " 250 µs "), number(250_000));
    assert_eq!(
        read("endpoint.rto_floor", "0.5 min"),
        number(30_000_000_000)
    );
    assert_eq!(read("endpoint.max_message", "1_000"), number(1_000));
    assert_eq!(read("endpoint.max_message", "1.5 MiB"), number(3 << 19));
    assert_eq!(read("endpoint.max_message", "2 MB"), number(2_000_000));
    assert_eq!(read("udp.line_rate", "100 Gbit/s"), number(12_500_000_000));
    assert_eq!(read("udp.busy_poll", "2 ms"), number(2_000));
    assert_eq!(read("session.endpoint", "ANY"), Some(Value::Word("any")));
    assert_eq!(read("udp.ecn", "false"), Some(Value::Word("off")));
    assert_eq!(read("endpoint.idle", "spin"), Some(Value::Word("spin")));
    let hexadecimal = Settings::default()
        .with_toml("a", "shm.cells = 0x1_00")
        .unwrap();
    assert_eq!(hexadecimal.get("shm.cells").unwrap().value, "256");
}

#[test]
fn shown_values_can_be_read() {
    for setting in table::all() {
        let numbers = [setting.numbers.least, setting.numbers.most].map(Value::Number);
        for value in [setting.default_value()].iter().chain(&numbers) {
            if setting.unit() == "" && matches!(value, Value::Number(_)) {
                continue;
            }
            let shown = setting.show(value);
            let read = setting.parse(&shown).map(|read| setting.show(&read));
            assert_eq!(read.as_ref(), Some(&shown), "{}", setting.name);
        }
        let expected = setting.expected();
        let example = expected.split('`').nth(1);
        let fits = example.is_none_or(|example| setting.parse(example).is_some());
        assert!(fits, "{}: {expected}", setting.name);
    }
}

#[test]
fn options_that_do_not_fit_together_name_both_places() {
    let alone = Settings::default()
        .with_toml("a.toml", "nexus.max_links = 10")
        .unwrap();
    let said = alone.check().unwrap_err().to_string();
    assert_eq!(
        said,
        "a.toml:1:19: `nexus.max_half_open` = 64 (default) is more than `nexus.max_links` = 10 \
         (a.toml:1:19); lower the first or raise the second"
    );
    let hold = Settings::default()
        .with_toml(
            "a.toml",
            "[endpoint]\nresponse_hold = \"100 ms\"\nrto_floor = \"50 ms\"",
        )
        .unwrap();
    let said = hold.check().unwrap_err().to_string();
    assert!(
        said.starts_with("a.toml:2:17: `endpoint.response_hold` is 100ms, too short"),
        "{said}"
    );
    assert!(
        said.ends_with("together with `endpoint.rto_floor` = 50 ms (a.toml:3:13)"),
        "{said}"
    );
    let wheel = Settings::default()
        .with("endpoint.wheel_slot", "1 s")
        .unwrap();
    assert!(wheel.check().is_err());
    assert!(Settings::default().check().is_ok());
}

#[test]
fn an_option_that_follows_another_shows_whose_value_it_has() {
    let settings = Settings::default()
        .with_toml(
            "a.toml",
            "[nexus]\nlisten = \"[::1]:7\"\nheartbeat.timeout = \"3 s\"",
        )
        .unwrap();
    let shown = |name: &str| {
        settings
            .get(name)
            .map(|it| (it.value, it.source.to_string()))
    };
    let pair = |value: &str, source: &str| Some((value.to_owned(), source.to_owned()));
    assert_eq!(shown("udp.ip"), pair("::1", "a.toml:2:10"));
    assert_eq!(
        shown("endpoint.failure_timeout"),
        pair("3 s", "a.toml:3:21")
    );
    assert_eq!(
        settings.get("udp.advertise").unwrap().source,
        Source::Default
    );
}

#[test]
fn settings_reach_the_endpoint_and_the_builder_has_the_last_word() {
    let settings = Settings::default()
        .with_toml(
            "a.toml",
            "nexus.heartbeat.timeout = \"3 s\"\nendpoint.idle = \"7 us\"",
        )
        .unwrap();
    let nexus = settings.nexus().bind("127.0.0.1:0").unwrap();
    let builder = settings.endpoint::<Shm>(&nexus);
    let mut seen = None;
    let builder = builder.config(|config| seen = Some(config.failure_timeout));
    assert_eq!(
        seen,
        Some(Nanos::from_secs(3)),
        "the option of the nexus is not overwritten"
    );
    let spin = Duration::from_micros(7);
    assert!(format!("{builder:?}").contains(&format!("{:?}", Idle::Adaptive { spin })));
    let builder = builder.idle(Idle::Spin);
    assert!(format!("{builder:?}").contains("idle: Spin"));
    builder.build(()).unwrap();
    let program = settings.nexus().any_port(true);
    assert!(format!("{program:?}").contains("any_port: true"));
    assert!(format!("{:?}", Nexus::builder()).contains("any_port: false"));
}

#[test]
fn the_nearest_name_is_the_one_with_fewest_edits() {
    for (from, to, edits) in [
        ("", "", 0),
        ("kitten", "sitting", 3),
        ("acb", "abc", 1),
        ("a", "", 1),
        ("ab", "ba", 1),
        ("abc", "xyz", 3),
    ] {
        assert_eq!(nearest::distance(from, to), edits, "{from} {to}");
        assert_eq!(nearest::distance(to, from), edits, "{to} {from}");
    }
    assert_eq!(
        nearest::nearest("SPIM", ["auto", "spin"].into_iter()),
        Some("spin")
    );
    assert_eq!(nearest::nearest("x", std::iter::empty()), None);
}

#[test]
fn variables_that_kubernetes_sets_for_a_service_named_dunlin_are_ignored_with_one_warning() {
    let of_services = [
        ("DUNLIN_SERVICE_HOST", "10.0.0.1"),
        ("DUNLIN_SERVICE_PORT", "31850"),
        ("DUNLIN_SERVICE_PORT_RPC", "31850"),
        ("DUNLIN_PORT", "tcp://10.0.0.1:31850"),
        ("DUNLIN_PORT_31850_TCP", "tcp://10.0.0.1:31850"),
        ("DUNLIN_PORT_31850_TCP_PROTO", "tcp"),
        ("DUNLIN_PORT_31850_TCP_PORT", "31850"),
        ("DUNLIN_PORT_31850_TCP_ADDR", "10.0.0.1"),
        ("DUNLIN_UDP_PORT", "udp://10.0.0.2:31850"),
        ("DUNLIN_UDP_SERVICE_HOST", "10.0.0.2"),
        ("DUNLIN_UDP_PORT_31850_UDP_ADDR", "10.0.0.2"),
    ];
    let settings = Settings::default().with_variables(variables(&of_services));
    let settings = settings.unwrap();
    assert!(
        settings
            .entries()
            .all(|entry| entry.source == Source::Default)
    );
    let [warning] = settings.warnings() else {
        panic!("{:?}", settings.warnings());
    };
    assert!(
        warning.contains("DUNLIN_PORT and 10 more ignored"),
        "{warning}"
    );
    // Options of these forms still work, and mistakes are still refused, without a warning.
    let port = Settings::default().with_variables(variables(&[("DUNLIN_UDP_PORT", "31900")]));
    let port = port.unwrap();
    assert_eq!(port.get("udp.port").unwrap().value, "31900");
    assert!(port.warnings().is_empty());
    for mistake in [
        "DUNLIN_UDP_PAK",
        "DUNLIN_INSIGHT_TCP_",
        "DUNLIN_SERVICE",
        "DUNLIN_PORT",
    ] {
        let refused = Settings::default().with_variables(variables(&[(mistake, "1")]));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("no option has this variable"), "{refused}");
    }
}

#[test]
fn a_hedge_with_one_attempt_is_refused_and_so_are_none_and_a_queue_of_none() {
    let hedged = |hedge: &str, attempts: &str| {
        let text = format!("[channel]\nhedge = \"{hedge}\"\nattempts = {attempts}");
        Settings::default().with_toml("a.toml", &text).unwrap()
    };
    assert_eq!(
        hedged("5 ms", "1").check().unwrap_err().to_string(),
        "a.toml:2:9: `channel.hedge` = 5 ms (a.toml:2:9) needs a second attempt, but \
         `channel.attempts` = 1 (a.toml:3:12); raise the second to 2 or more, or set the first to \
         none"
    );
    assert!(hedged("5 ms", "2").check().is_ok());
    assert!(hedged("none", "1").check().is_ok());
    assert_eq!(
        refused("[channel]\nattempts = 0\nqueue = 0"),
        "dunlin.toml:2:12: `channel.attempts` cannot be `0`; expected 1 to 3; the nearest is `1`\n\
         dunlin.toml:3:9: `channel.queue` cannot be `0`; expected 1 to 1048576; the nearest is `1`"
    );
}

#[test]
fn a_largest_message_that_no_budget_holds_is_refused() {
    let large = Settings::default().with("endpoint.max_message", "1 GiB");
    let refused = large.unwrap().check().unwrap_err().to_string();
    assert_eq!(
        refused,
        "the program: `endpoint.max_message` = 1 GiB (the program) is more than \
         `endpoint.session_receive_budget` = 64 MiB (default); lower the first or raise the \
         second\nthe program: `endpoint.max_message` = 1 GiB (the program) is more than \
         `endpoint.receive_budget` = 256 MiB (default); lower the first or raise the second"
    );
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let builder = nexus.endpoint_builder::<Shm>();
    let built = builder
        .config(|config| config.max_message = 1 << 30)
        .build(());
    let refused = built.map(drop).unwrap_err().to_string();
    assert!(
        refused.contains("raise the second or lower the first"),
        "{refused}"
    );
}

#[test]
fn a_device_is_checked_with_the_settings_and_its_fault_is_named() {
    for (device, part) in [
        ("net_null0", "the form is"),
        ("net_null0;ip=10.0.0.2/40", "1 to 32 bits"),
        ("net_null0;ip=10.0.0.2/24,mtu=40000", "an mtu has"),
    ] {
        let error = Settings::default().with("dpdk.device", device).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("dpdk.device") && text.contains(part),
            "{text}"
        );
    }
}
