//! Sends the same scripts to Debian's `memcached` and to one of our connections. The answers are
//! equal, byte for byte, except for those in `differences.rs`, which `docs/memcached.md` lists.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod differences;
mod generate;
mod peer;
mod scripts;

use std::collections::BTreeMap;

use peer::{Answers, Pair};

/// The number of random scripts, and of commands in each.
const SCRIPTS: u64 = 150;
const COMMANDS: usize = 40;

fn pair(name: &str) -> Option<Pair> {
    let pair = Pair::start(name);
    if pair.is_none() {
        dunlin_testkit::skip("memcached is not installed");
    }
    pair
}

fn compare(script: &[u8], answers: &Answers, what: &str) {
    if answers.ours == answers.theirs {
        return;
    }
    let lines = |bytes: &[u8]| bytes.escape_ascii().to_string().replace("\\n", "\\n\n");
    panic!(
        "{what}\n--- script\n{}\n--- ours\n{}\n--- theirs\n{}",
        lines(script),
        lines(&answers.ours),
        lines(&answers.theirs)
    );
}

#[test]
fn scripts_written_by_hand_have_the_same_answers() {
    // A flush takes a version in memcached but none here, so each file has its own servers.
    for file in scripts::ALL {
        let Some(mut pair) = pair("by-hand") else {
            return;
        };
        for number in 0..scripts::read(file, "").len() {
            let write = |attempt| scripts::read(file, &format!("k{attempt}_")).swap_remove(number);
            let (bytes, answers) = pair.run(write);
            compare(&bytes, &answers, "by hand");
        }
    }
    let Some(mut pair) = pair("by-hand") else {
        return;
    };
    for script in scripts::long() {
        let (bytes, answers) = pair.run(|_| script.clone());
        let shown = &bytes[..bytes.len().min(300)];
        assert!(
            answers.ours == answers.theirs,
            "{}\n{} bytes: {}\n{} bytes: {}",
            shown.escape_ascii(),
            answers.ours.len(),
            answers.ours[..answers.ours.len().min(300)].escape_ascii(),
            answers.theirs.len(),
            answers.theirs[..answers.theirs.len().min(300)].escape_ascii()
        );
    }
}

/// The time that `N` gives applies to a new item: an existing item needs no memory for it.
#[test]
fn full_servers_have_the_same_answers() {
    let Some(mut pair) = Pair::start_full("full") else {
        return dunlin_testkit::skip("memcached is not installed");
    };
    let script = "mg fill8000005 N30 v t s f\r\nmg fill8000005 N30 R40 v t\r\n\
                  mg missing N30 v t\r\nmg missing N30 q v\r\nmg missing N30 k O7\r\n\
                  ma fill8000006 N30 v t\r\nma missing N30 v\r\nma missing N30 q\r\n\
                  mg missing k v\r\nincr fill8000006 1\r\nset other 0 0 8\r\n12345678\r\n";
    let (bytes, answers) = pair.run(|_| script.into());
    assert!(
        answers
            .ours
            .ends_with(b"out of memory storing object\r\nEN kend.of.script\r\n")
    );
    compare(&bytes, &answers, "full servers");
}

#[test]
fn random_scripts_have_the_same_answers() {
    let Some(mut pair) = pair("random") else {
        return;
    };
    let mut version = 1;
    for seed in 0..SCRIPTS {
        let (bytes, answers) =
            pair.run(|attempt| generate::script(seed, attempt, version, COMMANDS));
        compare(&bytes, &answers, &format!("seed {seed}"));
        version = generate::last_version(&answers.ours).unwrap_or(version);
    }
}

/// A difference that is in the table but not in the answers is also an error.
#[test]
fn the_differences_match_the_table() {
    let Some(mut pair) = pair("differences") else {
        return;
    };
    for difference in differences::ALL {
        let script = difference.script();
        let shown = script[..script.len().min(100)].escape_ascii();
        let [ours, theirs] = difference.answers();
        assert!(!ours.starts_with(&theirs), "{shown}: no difference");
        let answers = pair.begin(&script, |answers| answers.len() >= theirs.len());
        let starts = |answer: &[u8], with: &[u8]| answer.starts_with(with);
        assert!(
            starts(&answers.ours, &ours) && starts(&answers.theirs, &theirs),
            "{shown}\nours: {}\ntheirs: {}",
            answers.ours.escape_ascii(),
            answers.theirs.escape_ascii()
        );
    }
}

/// Monitors read the figures by name.
#[test]
fn statistics_have_the_same_names() {
    let Some(mut pair) = pair("names") else {
        return;
    };
    let (_, answers) = pair.run(|_| b"set a 0 0 1\r\na\r\nstats\r\n".to_vec());
    let names = |answer: &[u8]| -> Vec<String> {
        let text = String::from_utf8(answer.to_vec()).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("STAT "));
        let names = lines.map(|line| line.split(' ').next().unwrap().to_owned());
        names.collect()
    };
    assert_eq!(names(&answers.ours), names(&answers.theirs));
}

/// Monitoring tools such as Prometheus's `memcached_exporter` omit a figure that is missing, and
/// consider a server down if a figure that is a number in memcached is not a number here.
#[test]
fn figures_of_each_topic_have_memcacheds_names_and_kinds() {
    let Some(mut pair) = pair("kinds") else {
        return;
    };
    let figures = |answer: &[u8]| -> BTreeMap<String, String> {
        let text = String::from_utf8(answer.to_vec()).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("STAT "));
        let pairs = lines.map(|line| line.split_once(' ').unwrap_or((line, "")));
        pairs
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    };
    let is_number = |value: &String| value.parse::<f64>().is_ok();
    for (topic, least) in [("", 90), (" settings", 4), (" items", 12), (" slabs", 10)] {
        let script = format!("set a 0 0 1\r\na\r\nget a\r\nstats{topic}\r\n");
        let (_, answers) = pair.run(|_| script.clone().into_bytes());
        let (ours, theirs) = (figures(&answers.ours), figures(&answers.theirs));
        assert!(ours.len() >= least, "{topic}: {ours:?}");
        for (name, value) in ours.iter().filter(|(name, _)| *name != "version") {
            let there = theirs
                .get(name)
                .unwrap_or_else(|| panic!("memcached has no `{name}`"));
            let is_alike = is_number(value) == is_number(there) || name == "libevent";
            assert!(is_alike, "{name} is {value}, and {there} in memcached");
        }
    }
}

/// Compares the lists of items, which are unordered in both, and the sizes of their memory.
#[test]
fn lists_of_items_have_the_same_lines() {
    let Some(mut pair) = pair("lists") else {
        return;
    };
    let (_, _) = pair.run(|_| {
        b"set a%b 5 0 3\r\nabc\r\nset c 0 100 0\r\n\r\nget c\r\nms Af8= 1 b\r\nx\r\n".to_vec()
    });
    let script = b"lru_crawler metadump all\r\n";
    let answers = pair.begin(script, |answers| answers.ends_with(b"END\r\n"));
    let lines = |answer: &[u8]| -> Vec<String> {
        let text = String::from_utf8(answer.to_vec()).unwrap();
        let lines = text.lines().filter_map(|line| line.split(" cas=").next());
        let lines = lines.map(|line| line.split(" exp=").next().unwrap().to_owned());
        let mut lines: Vec<String> = lines.filter(|line| !line.starts_with("EN k")).collect();
        lines.sort();
        lines
    };
    let ours = lines(&answers.ours);
    assert_eq!(ours, lines(&answers.theirs));
    assert_eq!(ours, ["END", "key=%01%FF", "key=a%25b", "key=c"]);
}
