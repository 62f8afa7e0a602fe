//! Files of channels: the shipped files run as they expect, and wrong files are refused.

use super::*;

const FILE: &str = "
seed = 3
end_ms = 200.0
[channel]
patience_ms = 1000.0
[[server]]
[[server]]
[[fault]]
at_ms = 50.0
server = 1
what = 'crash'
for_ms = 50.0
[expect]
most_failed = 1000
";

fn parse(text: &str, sets: &[&str]) -> anyhow::Result<Channels> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Channels::parse("a.toml", text, &sets, None)
}

#[test]
fn every_shipped_file_of_channels_meets_its_expectations() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Some(channels) = Channels::read(&path, &[], None).unwrap() else {
            continue;
        };
        let played = channels.run().unwrap().unwrap();
        channels.check(&played).unwrap();
        let tally = &played.tally;
        let ended = tally.answered + tally.failed.iter().sum::<u64>() + tally.dropped;
        assert_eq!(ended, played.report.counters.calls);
        names.push(channels.name);
    }
    names.sort();
    let shipped = [
        "channels",
        "equal-servers",
        "keys-that-move",
        "late-repeat",
        "slow-server",
    ];
    assert_eq!(names, shipped);
}

/// The results of a shipped file under several seeds and with this change.
fn shipped(name: &str, set: &str) -> impl Iterator<Item = Result<Played, String>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let path = Path::new(folder).join(name);
    let sets = [set.to_owned(), "end_ms=1500".to_owned()];
    (1..=3).map(move |seed| {
        let channels = Channels::read(&path, &sets, Some(seed)).unwrap().unwrap();
        let played = channels.run().unwrap().unwrap();
        let checked = channels.check(&played);
        checked.map(|()| played).map_err(|why| why.to_string())
    })
}

#[test]
fn equal_servers_get_equal_shares_under_each_pick() {
    for pick in ["round-robin", "least-of-two", "hash"] {
        let set = format!("channel.pick={pick}");
        for run in shipped("equal-servers.toml", &set) {
            run.unwrap();
        }
    }
    // A slower server gets fewer calls, so the shares differ.
    for run in shipped("equal-servers.toml", "server.0.handler_ms=20") {
        assert!(run.unwrap_err().contains("equal_shares_percent = 10, but"));
    }
}

#[test]
fn a_slow_server_gets_at_most_a_fifth_of_an_equal_share() {
    for run in shipped("slow-server.toml", "channel.pick=least-of-two") {
        run.unwrap();
    }
    for run in shipped("slow-server.toml", "channel.pick=round-robin") {
        let what = run.unwrap_err();
        assert!(what.contains("most_of_slowest_percent = 20, but"), "{what}");
    }
}

#[test]
fn only_the_keys_of_a_server_that_leaves_move() {
    for run in shipped("keys-that-move.toml", "fault.0.at_ms=1000") {
        let (moved, keys) = run.unwrap().tally.moved();
        assert_eq!(keys, 500);
        assert!(moved >= keys / 8, "{moved} of {keys} keys move");
    }
    for run in shipped("keys-that-move.toml", "channel.pick=round-robin") {
        let what = run.unwrap_err();
        assert!(what.contains("most_moved_percent = 37.5, but"), "{what}");
    }
}

#[test]
fn a_run_that_is_not_as_expected_is_an_error() {
    let played = |sets: &[&str]| {
        let channels = parse(FILE, sets).unwrap();
        let played = channels.run().unwrap().unwrap();
        let text = channels_text(&channels, &played);
        let calls = &channels_object(&channels, &played)["calls"];
        assert!(text.contains(&format!("{calls} calls: ")), "{text}");
        channels.check(&played).map_err(|why| why.to_string())
    };
    assert_eq!(played(&[]), Ok(()));
    for (set, says) in [
        (
            "expect.least_answered=201",
            "least_answered = 201, but there are ",
        ),
        (
            "expect.least_failed=201",
            "least_failed = 201, but there are ",
        ),
        (
            "expect.least_late_runs=9",
            "least_late_runs = 9, but there are ",
        ),
        (
            "expect.longest_call_ms=0.001",
            "longest_call_ms = 0.001, but one took ",
        ),
    ] {
        let what = played(&[set]).unwrap_err();
        assert!(what.contains(says), "{set}: {what}");
    }
    let failed = [
        "channel.patience_ms=0",
        "fault.0.for_ms=500",
        "expect.most_failed=0",
    ];
    let failed = played(
        &[
            &failed[..],
            &["fault.0.server=0", "server.1.refused_percent=100"],
        ]
        .concat(),
    );
    assert!(
        failed
            .unwrap_err()
            .contains("most_failed = 0, but there are ")
    );
}

#[test]
fn invalid_values_are_refused_with_their_key() {
    for (set, says) in [
        ("fault.0.server=2", "fault.0.server: there are 2 servers"),
        ("fault.0.what=sleep", "unknown variant `sleep`"),
        ("calls.clients=0", "calls.clients: must be"),
        ("calls.rate_per_s=0", "calls.rate_per_s: must be"),
        ("calls.rate_per_s=1e10", "calls.rate_per_s: must be"),
        ("calls.window=65", "calls.window: must be"),
        (
            "calls.idempotent_percent=101",
            "calls.idempotent_percent: must be",
        ),
        (
            "channel.attempts=4",
            "channel.attempts: must be from 1 to 3",
        ),
        ("channel.lookup_ms=-1", "channel.lookup_ms: must be"),
        ("end_ms=-1", "end_ms: must be"),
        ("server.3.handler_ms=1", "there is no server.3"),
        ("server.0.handler_ms=1001", "server.0.handler_ms: must be"),
        ("network.loss_ppm=1000001", "network.loss_ppm: must be"),
        (
            "network.reorder_us=5",
            "network.reorder_us: needs reorder_ppm",
        ),
        ("channel.patience=1", "unknown field `patience`"),
        ("seed", "write key=value"),
    ] {
        let what = format!("{:#}", parse(FILE, &[set]).unwrap_err());
        assert!(what.contains(says), "{set}: {what}");
    }
    let no_server = FILE.replace("[[server]]", "");
    let what = parse(&no_server, &[]).unwrap_err().to_string();
    assert!(what.contains("server: there must be"), "{what}");
    let twice = |what| {
        format!("{FILE}\n[[fault]]\nat_ms = 0.0\nserver = 1\nwhat = \"{what}\"\nfor_ms = 1e4\n")
    };
    assert!(parse(&twice("unlist"), &[]).is_ok());
    let what = parse(&twice("crash"), &[]).unwrap_err().to_string();
    assert!(what.contains("fault.1.at_ms: fault.0 strikes"), "{what}");
    let wrong = FILE.replace("seed = 3", "speed = 3");
    assert!(
        parse(&wrong, &[])
            .unwrap_err()
            .to_string()
            .contains("line 2")
    );
}
