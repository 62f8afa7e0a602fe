//! An error in a scenario file names key and line, before anything runs.

use dunlin_sim::scenario::{Arrivals, Nanos};

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

/// The error for the file in which `old` is replaced by `new`.
fn complaint(old: &str, new: &str) -> String {
    let text = FILE.replace(old, new);
    assert_ne!(text, FILE);
    match variants(&text, &[]) {
        Ok(_) => panic!("{new} is accepted"),
        Err(what) => what,
    }
}

#[test]
fn a_sweep_runs_every_combination() {
    let all = variants(FILE, &[]).unwrap();
    let credits = all.iter().map(|it| it.scenario.loads[0].session.credits);
    assert_eq!(credits.collect::<Vec<_>>(), [8, 32, 8, 32]);
    assert_eq!(all[3].params.len(), 2);
}

#[test]
fn keys_that_are_set_are_not_swept() {
    let sets = [
        "endpoint.credits=5",
        "load.0.clients=2-3",
        "load.0.servers=1",
        "seed=9",
    ];
    let all = variants(FILE, &sets).unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].scenario.loads[0].servers, 1..2);
    assert_eq!(all[0].scenario.loads[0].session.credits, 5);
    assert_eq!(all[0].scenario.loads[0].clients, 2..4);
    assert_eq!(all[0].scenario.seed, 9);
}

/// A change of the file, and the key and the line that the error must name.
const COMPLAINTS: &[[&str; 4]] = &[
    ["gbps = 25.0", "gbps = 0", "network.gbps", "x.toml:5"],
    ["gbps = 25.0", "gbps = -1", "network.gbps", "x.toml:5"],
    ["gbps = 25.0", "gbps = nan", "network.gbps", "x.toml:5"],
    ["gbps = 25.0", "racks = 9", "network.racks", "x.toml:5"],
    ["hosts = 4", "hosts = 1", "network.hosts", "x.toml:4"],
    [
        "hosts = 4",
        "hosts = 4\nracks = 2\nuplink_gbps = 0",
        "network.uplink_gbps",
        "x.toml:6",
    ],
    [
        "hosts = 4",
        "hosts = 4\nracks = 2\nuplinks = 1_000_000_000_000",
        "network.uplinks",
        "x.toml:6",
    ],
    [
        "gbps = 25.0",
        "cable_ns = 999999999",
        "network.cable_ns",
        "x.toml:5",
    ],
    [
        "[sweep]",
        "[faults]\nloss_ppm = 1000001\n[sweep]",
        "loss_ppm",
        "x.toml:15",
    ],
    [
        "[sweep]",
        "[switch]\nmark_percent = 101.0\n[sweep]",
        "percent",
        "x.toml:15",
    ],
    [
        "hosts = 4",
        "hosts = 9999999",
        "load.0.endpoints: there are 9999999",
        "x.toml:7",
    ],
    ["'1-'", "'1-7'", "load.0.clients", "x.toml:9"],
    ["'1-'", "'some'", "load.0.clients", "x.toml:9"],
    [
        "servers = '0'",
        "servers = '4'",
        "load.0.servers",
        "x.toml:10",
    ],
    ["[8, 32]", "8", "a list", "x.toml:15"],
    [
        "gbps = 25.0",
        "gbps = inf",
        "network.gbps: must be at most 8000",
        "x.toml:5",
    ],
    [
        "gbps = 25.0",
        "gbps = 1e-6",
        "network.gbps: a packet takes",
        "x.toml:5",
    ],
    [
        "gbps = 25.0",
        "nic_kb = -1.0",
        "network.nic_kb: must be a number",
        "x.toml:5",
    ],
    [
        "[network]",
        "end_ms = inf\n[network]",
        "end_ms: must be at most an hour",
        "x.toml:3",
    ],
    [
        "[network]",
        "end_ms = nan\n[network]",
        "end_ms: must be a number",
        "x.toml:3",
    ],
    [
        "[network]",
        "sample_us = inf\n[network]",
        "sample_us: must not",
        "x.toml:3",
    ],
    [
        "[network]",
        "sample_us = 0.001\n[network]",
        "sample_us: makes more",
        "x.toml:3",
    ],
    [
        "response_bytes",
        "in_flight = 10_000_000\nresponse_bytes",
        "load.0.in_flight: must be at most 1032",
        "x.toml:12",
    ],
    [
        "response_bytes",
        "window = 3\nresponse_bytes",
        "load.0.window",
        "x.toml:12",
    ],
    [
        "response_bytes",
        "rate_per_s = inf\nresponse_bytes",
        "load.0.rate_per_s: asks for",
        "x.toml:12",
    ],
    [
        "response_bytes",
        "rate_per_s = 0.0\nresponse_bytes",
        "load.0.rate_per_s: is so low",
        "x.toml:12",
    ],
    [
        "response_bytes",
        "rate_per_s = -1.0\nresponse_bytes",
        "load.0.rate_per_s: must be",
        "x.toml:12",
    ],
    [
        "response_bytes",
        "think_us = inf\nresponse_bytes",
        "load.0.think_us",
        "x.toml:12",
    ],
    [
        "response_bytes",
        "start_us = inf\nresponse_bytes",
        "load.0.start_us",
        "x.toml:12",
    ],
    [
        "response_bytes",
        "stop_us = 0.0\nresponse_bytes",
        "load.0.stop_us: must be after",
        "x.toml:12",
    ],
    [
        "response_bytes",
        "stop_us = 1e9\nresponse_bytes",
        "load.0.stop_us: has no effect",
        "x.toml:12",
    ],
    [
        "'1-'",
        "'1-18446744073709551615'",
        "load.0.clients",
        "x.toml:9",
    ],
    [
        "[sweep]",
        "[faults]\nreorder_ppm = 1\nreorder_us = 18446744073710552\n[sweep]",
        "faults.reorder_us: takes as long",
        "x.toml:16",
    ],
    [
        "[sweep]",
        "[endpoint]\nrto_floor_us = 18446744073710552\n[sweep]",
        "rto_floor",
        "x.toml:14",
    ],
    ["'none'", "'best'", "endpoint.cc", "none, timely"],
    ["[8, 32]", "[0]", "endpoint.credits = 0", "use 1 to 4096"],
];

#[test]
fn complaints_name_the_key_and_the_line() {
    for [old, new, key, line] in COMPLAINTS {
        let what = complaint(old, new);
        assert!(what.contains(key) && what.contains(line), "{new}: {what}");
    }
}

/// A change of the file, the key that then has no effect, and the key that it needs.
const IDLE: &[[&str; 4]] = &[
    [
        "gbps = 25.0",
        "uplinks = 2",
        "network.uplinks",
        "network.racks",
    ],
    [
        "gbps = 25.0",
        "spines = 2",
        "network.spines",
        "network.racks",
    ],
    [
        "gbps = 25.0",
        "uplink_gbps = 2.0",
        "network.uplink_gbps",
        "network.racks",
    ],
    [
        "gbps = 25.0",
        "neighbours = 2",
        "network.neighbours",
        "network.racks",
    ],
    [
        "[sweep]",
        "[switch]\nmark_all_kb = 9.0\n[sweep]",
        "switch.mark_all_kb",
        "mark_from_kb",
    ],
    [
        "[sweep]",
        "[switch]\nmark_percent = 9.0\n[sweep]",
        "mark_percent",
        "mark_from_kb",
    ],
    [
        "[sweep]",
        "[switch]\nmark_from_kb = 9.0\n[sweep]",
        "switch.mark_from_kb",
        "mark_all_kb",
    ],
    [
        "[sweep]",
        "[switch]\nmark_from_kb = 9.0\nmark_all_kb = 9.0\nmark_percent = 9.0\n[sweep]",
        "switch.mark_percent",
        "mark_from_kb",
    ],
    [
        "[sweep]",
        "[faults]\nburst_ppm = 9\n[sweep]",
        "faults.burst_ppm",
        "burst_frames",
    ],
    [
        "[sweep]",
        "[faults]\nburst_frames = 9\n[sweep]",
        "faults.burst_frames",
        "burst_ppm",
    ],
    [
        "[sweep]",
        "[faults]\nreorder_ppm = 9\n[sweep]",
        "faults.reorder_ppm",
        "reorder_us",
    ],
    [
        "[sweep]",
        "[faults]\nreorder_us = 9\n[sweep]",
        "faults.reorder_us",
        "reorder_ppm",
    ],
    [
        "[sweep]",
        "[faults]\nspike_ppm = 9\n[sweep]",
        "faults.spike_ppm",
        "spike_us",
    ],
    [
        "[sweep]",
        "[faults]\nspike_us = 9\n[sweep]",
        "faults.spike_us",
        "spike_ppm",
    ],
    [
        "response_bytes",
        "batch = 1\nrate_per_s = 10_000.0\nresponse_bytes",
        "load.0.batch",
        "rate_per_s",
    ],
    [
        "response_bytes",
        "think_us = 1.0\nrate_per_s = 10_000.0\nresponse_bytes",
        "think_us",
        "rate_per_s",
    ],
    [
        "response_bytes",
        "credits = 9\nresponse_bytes",
        "endpoint.credits",
        "every load",
    ],
    [
        "response_bytes",
        "cc = 'dcqcn'\nresponse_bytes",
        "endpoint.cc",
        "every load",
    ],
    [
        "response_bytes",
        "partners = 'fixed'\nresponse_bytes",
        "load.0.partners",
        "only one server",
    ],
];

#[test]
fn a_key_without_effect_is_refused_with_the_key_that_it_needs() {
    for [old, new, key, needs] in IDLE {
        let what = complaint(old, new);
        assert!(
            what.contains(key) && what.contains("no effect"),
            "{new}: {what}"
        );
        assert!(what.contains(needs), "{new}: {what}");
    }
}

#[test]
fn a_key_that_only_another_scheme_reads_is_refused() {
    let marks = "mark_from_kb = 9.0\nmark_all_kb = 99.0";
    let file = |keys: &str, cc: &str| {
        let text = FILE[..FILE.find("[sweep]").unwrap()].to_owned();
        format!("{text}{keys}\n[endpoint]\ncc = '{cc}'\n")
    };
    let switch = format!("[switch]\n{marks}");
    let told = |cc| file("", cc).replace("hosts = 4", "hosts = 4\nbase_rtt = 'measured'");
    let large = told("none").replace("response_bytes = 32", "response_bytes = 3200");
    for (text, key) in [
        (file(&switch, "swift"), Some("switch.mark_from_kb")),
        (file(&switch, "none"), Some("switch.mark_from_kb")),
        (file(&switch, "dcqcn"), None),
        (told("none"), Some("network.base_rtt")),
        (told("swift"), None),
        (large, None),
        // A file that compares schemes may have the options of each.
        (
            file(&switch, "swift") + "[sweep]\n'endpoint.cc' = ['dcqcn', 'none']\n",
            None,
        ),
    ] {
        let what = variants(&text, &["endpoint.credits=9"]).err();
        let is_right = match (&what, key) {
            (None, None) => true,
            (Some(what), Some(key)) => what.contains(key) && what.contains("no effect"),
            _ => false,
        };
        assert!(is_right, "{text}: {what:?}");
    }
    let sweep = file(&switch, "swift") + "[sweep]\n'endpoint.cc' = ['dcqcn', 'none']\n";
    assert!(
        variants(&sweep, &["endpoint.cc=none"]).is_ok(),
        "as with the sweep"
    );
}

#[test]
fn a_file_without_a_scheme_gets_the_scheme_of_real_networks() {
    let text = &FILE[..FILE.find("[sweep]").unwrap()];
    let all = variants(text, &[]).unwrap();
    let scheme = all[0].scenario.loads[0].session.scheme;
    assert_eq!(scheme, Some(dunlin_sim::scenario::Scheme::Swift));
}

#[test]
fn options_of_a_load_are_blamed_on_the_load() {
    for (line, key) in [
        ("credits = 0", "load.0.credits"),
        ("cc = 'best'", "load.0.cc"),
    ] {
        let text = FILE[..FILE.find("[sweep]").unwrap()].to_owned() + line;
        let what = variants(&text, &[]).err().unwrap_or_default();
        assert!(what.contains(key) && what.contains("x.toml:14"), "{what}");
    }
}

#[test]
fn a_load_has_options_of_its_own_sessions() {
    let text = FILE.replace("response_bytes", "window = 4\ncredits = 9\nresponse_bytes");
    let text = text.replace("'endpoint.credits' = [8, 32]\n", "");
    let all = variants(&text, &["load.0.rate_per_s=1e6", "load.0.stop_us=50"]).unwrap();
    let load = &all[0].scenario.loads[0];
    assert_eq!((load.session.window, load.session.credits), (4, 9));
    assert_eq!(load.arrivals, Arrivals::Open { gap: Nanos(1000) });
    assert_eq!(load.stop, Nanos::from_micros(50));
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
fn a_wrong_value_is_blamed_on_its_source() {
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
        let path = entry.unwrap().path();
        // Files of channels have tests of their own.
        if !std::fs::read_to_string(&path)
            .unwrap()
            .contains("\n[channel]")
        {
            runs += Source::read(&path).unwrap().variants().unwrap().len();
        }
    }
    assert_eq!(runs, 2 + 20 + 2 * 4 + 4 + 3 + 4 + 1);
}
