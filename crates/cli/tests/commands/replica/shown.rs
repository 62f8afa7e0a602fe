//! The output of commands: bytes that are not text, and news of the cluster.

use dunlin_testkit::folder::Folder;

use super::*;

#[test]
fn keys_and_values_that_are_not_text_survive_every_form() {
    let cluster = Cluster::start(1);
    let all = cluster.addresses().join(",");
    let run = |args: &[&str]| text(&[args, &["--cluster", &all, "--timeout", "30"]].concat());
    let (_nexus, mut client) = cluster.client(PATIENCE);
    for key in [0_u8, 1] {
        client.put(&[0xff, 0, key], b"a\xfe").unwrap();
    }
    let lines = |out: String| -> Vec<Value> {
        let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    };
    let listed = lines(run(&["list", "--json"]));
    assert_eq!(listed[0]["key_hex"], "ff0000", "{listed:?}");
    assert_eq!(listed[0]["value_hex"], "61fe", "{listed:?}");
    assert!(listed[0].get("key").is_none() && listed[0].get("value").is_none());
    // Keys in the output can be used as arguments unchanged.
    let rest = run(&["list", "ff00", "--hex", "--after", "ff0000"]);
    assert!(
        rest.starts_with("ff0001\t") && rest.ends_with("\t61fe\n"),
        "{rest}"
    );
    assert_eq!(run(&["get", "ff0001", "--hex"]), "61fe\n");
    assert_eq!(
        lines(run(&["get", "ff0001", "--hex", "--json"]))[0]["value_hex"],
        "61fe"
    );
    let seen = lines(run(&[
        "watch", "ff", "--hex", "--from", "2", "--count", "1", "--json",
    ]));
    assert_eq!(seen[0]["key_hex"], "ff0000");
    assert_eq!(run(&["transact", "--hex", "--delete", "ff0001"]), "");
    assert_eq!(run(&["delete", "ff0000", "--hex"]), "");
    let wrong = failure(
        &["get", "f", "--hex", "--cluster", &all, "--timeout", "30"],
        2,
    );
    assert!(wrong.contains("pairs of hexadecimal digits"), "{wrong}");
}

#[test]
fn a_watch_prints_that_the_cluster_is_gone_and_that_it_is_back() {
    let folder = Folder::new("replica-watch");
    let path = folder.path("disk");
    let start = |listen: &str| Replica::start_with(listen, &["--disk", &path]);
    let mut cluster = Cluster::of([start("127.0.0.1:0")].into_iter());
    let address = cluster.0[0].address.clone();
    let put = |key| text(&["put", key, "x", "--cluster", &address, "--timeout", "30"]);
    put("a");
    let mut watch = dunlin(&[
        "watch",
        "--from",
        "2",
        "--count",
        "2",
        "--cluster",
        &address,
        "--timeout",
        "1",
    ]);
    let mut watch = watch.stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(watch.stdout.take().unwrap());
    let mut errors = BufReader::new(watch.stderr.take().unwrap());
    let next = |of: &mut dyn BufRead| {
        let mut line = String::new();
        of.read_line(&mut line).unwrap();
        line
    };
    assert!(next(&mut out).starts_with("a\t"));
    cluster.0[0].kill();
    let gone = next(&mut errors);
    assert!(gone.contains("no leader answers"), "{gone}");
    cluster.0[0] = start(&address);
    let back = next(&mut errors);
    assert!(back.contains("answers again"), "{back}");
    put("b");
    assert!(next(&mut out).starts_with("b\t"));
    assert!(watch.wait().unwrap().success());
}
