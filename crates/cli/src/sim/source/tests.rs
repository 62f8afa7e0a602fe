//! What is wrong with a scenario file is said with key and line, before anything runs.

use super::{Source, Variant};

const FILE: &str = "\
name = 'small'

[network]
hosts = 4
gbps = 25.0

[[load]]
name = 'pairs'
clients = '1-'
servers = '0'
request_bytes = 32
response_bytes = 32

[sweep]
'endpoint.credits' = [8, 32]
'endpoint.cc' = ['none', 'swift']
";

fn variants(text: &str, sets: &[&str]) -> Result<Vec<Variant>, String> {
    let wrong = |why: anyhow::Error| format!("{why:#}");
    let mut source = Source::parse("x.toml".to_owned(), text.to_owned()).map_err(wrong)?;
    for set in sets {
        source.set(set).map_err(wrong)?;
    }
    source.variants().map_err(wrong)
}

/// What is said of the file with `old` replaced by `new`.
fn complaint(old: &str, new: &str) -> String {
    let text = FILE.replace(old, new);
    assert_ne!(text, FILE);
    match variants(&text, &[]) {
        Ok(_) => panic!("{new} is accepted"),
        Err(what) => what,
    }
}

#[test]
fn a_sweep_is_every_combination() {
    let all = variants(FILE, &[]).unwrap();
    let credits = all.iter().map(|it| it.scenario.session.credits);
    assert_eq!(credits.collect::<Vec<_>>(), [8, 32, 8, 32]);
    assert_eq!(all[3].params.len(), 2);
}

#[test]
fn what_is_set_is_not_swept() {
    let sets = [
        "endpoint.credits=5",
        "load.0.clients=2-3",
        "load.0.servers=1",
        "seed=9",
    ];
    let all = variants(FILE, &sets).unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].scenario.loads[0].servers, 1..2);
    assert_eq!(all[0].scenario.session.credits, 5);
    assert_eq!(all[0].scenario.loads[0].clients, 2..4);
    assert_eq!(all[0].scenario.seed, 9);
}

#[test]
fn complaints_name_the_key_and_the_line() {
    for (old, new, key, line) in [
        ("gbps = 25.0", "gbps = 0", "network.gbps", "x.toml:5"),
        ("gbps = 25.0", "gbps = -1", "network.gbps", "x.toml:5"),
        ("gbps = 25.0", "gbps = nan", "network.gbps", "x.toml:5"),
        ("gbps = 25.0", "racks = 9", "network.racks", "x.toml:5"),
        ("hosts = 4", "hosts = 1", "network.hosts", "x.toml:4"),
        (
            "hosts = 4",
            "hosts = 4\nracks = 2\nuplink_gbps = 0",
            "network.uplink_gbps",
            "x.toml:6",
        ),
        (
            "hosts = 4",
            "hosts = 4\nracks = 2\nuplinks = 1_000_000_000_000",
            "network.uplinks",
            "x.toml:6",
        ),
        (
            "gbps = 25.0",
            "cable_ns = 999999999",
            "network.cable_ns",
            "x.toml:5",
        ),
        (
            "[sweep]",
            "[faults]\nloss_ppm = 1000001\n[sweep]",
            "loss_ppm",
            "x.toml:15",
        ),
        (
            "[sweep]",
            "[switch]\nmark_percent = 101.0\n[sweep]",
            "percent",
            "x.toml:15",
        ),
        (
            "hosts = 4",
            "hosts = 9999999",
            "load.0.endpoints: there are 9999999",
            "x.toml:7",
        ),
        ("'1-'", "'1-7'", "load.0.clients", "x.toml:9"),
        ("'1-'", "'some'", "load.0.clients", "x.toml:9"),
        (
            "servers = '0'",
            "servers = '4'",
            "load.0.servers",
            "x.toml:10",
        ),
        ("[8, 32]", "8", "a list", "x.toml:15"),
        ("'none'", "'best'", "endpoint.cc", "none, timely"),
        ("[8, 32]", "[0]", "endpoint.credits = 0", "use 1 to 4096"),
    ] {
        let what = complaint(old, new);
        assert!(what.contains(key) && what.contains(line), "{new}: {what}");
    }
}

#[test]
fn unknown_keys_and_wrong_types_name_their_line() {
    for (old, new, key, line) in [
        ("gbps", "gpbs", "gpbs", "line 5"),
        ("[network]", "[networks]", "networks", "line 3"),
        ("hosts = 4", "hosts = 'four'", "hosts", "line 4"),
        ("request_bytes = 32", "", "request_bytes", "line 7"),
        ("hosts = 4", "hosts = ", "hosts", "line 4"),
    ] {
        let what = complaint(old, new);
        assert!(what.contains(key) && what.contains(line), "{new}: {what}");
    }
}

#[test]
fn what_is_set_wrongly_is_blamed_on_who_set_it() {
    for (set, says) in [
        ("network.gbps=0", "network.gbps = 0: must be above 0"),
        ("network.gpbs=3", "unknown field `gpbs`"),
        ("load.3.batch=1", "there is no load.3"),
        ("network.hosts", "write key=value"),
    ] {
        let what = variants(FILE, &[set]).err().unwrap_or_default();
        assert!(what.contains(says), "{set}: {what}");
    }
}

#[test]
fn every_shipped_scenario_can_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut runs = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let source = Source::read(&entry.unwrap().path()).unwrap();
        runs += source.variants().unwrap().len();
    }
    assert_eq!(runs, 2 + 20 + 2 * 4 + 4 + 3);
}
