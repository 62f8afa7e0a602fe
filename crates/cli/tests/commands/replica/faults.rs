//! Real faults: a full disk, a process that stops for a while, a network that is cut. Faults of
//! disks and networks need root.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;

use dunlin::replica::Error;
use dunlin_testkit::folder::Folder;
use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::skip;

use super::*;

const BLOCK: usize = 64 << 10;

/// Whether a script runs in a mount namespace of its own here.
fn may_mount(script: &str) -> Result<(), String> {
    let output = Command::new("unshare")
        .args(["-m", "sh", "-ec", script])
        .output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// A replica in a mount namespace of its own, after a script that mounts its disk.
fn mounted(script: &str, disk: &str, errors: Stdio) -> Replica {
    let program = dunlin(&serve("127.0.0.1:0", &["--disk", disk]));
    let mut command = Command::new("unshare");
    let script = format!("{script}\nexec \"$0\" \"$@\"");
    command.args(["-m", "sh", "-ec", &script]);
    command.arg(program.get_program()).args(program.get_args());
    command.env_remove("DUNLIN_CONFIG").stdin(Stdio::null());
    Replica::greeted(command.stdout(Stdio::piped()).stderr(errors))
}

impl Replica {
    /// A path, as the replica sees it.
    fn path(&self, path: &str) -> String {
        format!("/proc/{}/root{path}", self.child.id())
    }

    /// Fills the rest of one of the replica's file systems. Returns the path of the file that fills
    /// it.
    fn fill(&self, folder: &str) -> String {
        let path = self.path(&format!("{folder}/filler"));
        let mut file = File::create(&path).unwrap();
        for block in [BLOCK, 1 << 10] {
            while file.write_all(&vec![1; block]).is_ok() {}
        }
        path
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &id])
                .status()
                .unwrap()
                .success()
        );
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn a_full_disk_stops_writes_until_there_is_room() {
    if !is_root() {
        return skip("a file system of its own needs root");
    }
    let folder = Folder::new("replica-full");
    let disk = folder.path("disk");
    fs::create_dir(&disk).unwrap();
    let script = format!("mount -t tmpfs -o size=24m replica {disk}");
    if let Err(why) = may_mount(&script) {
        return skip(&why);
    }
    let data = format!("{disk}/data");
    let cluster = Cluster::of([mounted(&script, &data, Stdio::inherit())].into_iter());
    let (_nexus, mut client) = cluster.client(PATIENCE);
    client.put(b"before", b"value").unwrap();
    let filler = cluster.0[0].fill(&disk);
    // The replica first uses the bytes that the log's file has reserved. The write that finds the
    // disk full waits.
    let (_other, mut hasty) = cluster.client(Duration::from_millis(300));
    let mut made = Vec::new();
    until(|| {
        let key = format!("key-{}", made.len());
        let put = hasty.put(key.as_bytes(), &[7; BLOCK]);
        made.push((key, put.is_ok()));
        matches!(put, Err(Error::Full))
    });
    assert_eq!(client.get(b"before").unwrap().unwrap().1, b"value");
    let refused = failure(
        &[
            "put",
            "a",
            "b",
            "--cluster",
            &cluster.0[0].address,
            "--timeout",
            "30",
        ],
        1,
    );
    assert!(
        refused.contains("the disk of the leader is full"),
        "{refused}"
    );
    fs::remove_file(filler).unwrap();
    until(|| client.put(b"after", b"value").is_ok());
    for (key, is_made) in made {
        let item = client.get(key.as_bytes()).unwrap();
        assert!(
            item.is_some() || !is_made,
            "{key} was answered, and is lost"
        );
    }
}

#[test]
fn a_leader_that_stops_for_a_while_gives_no_stale_answer() {
    let start = |_| Replica::start_with("127.0.0.1:0", &["--lease-reads"]);
    let cluster = Cluster::of((0..3).map(start));
    let (_nexus, mut client) = cluster.client(PATIENCE);
    for round in 0..3_u32 {
        let value = round.to_le_bytes();
        client.put(b"key", &[0; 4]).unwrap();
        let old = cluster.leader();
        cluster.0[old].signal("-STOP");
        client.put(b"key", &value).unwrap();
        // A client asks the first replica of its list first; here, that is the old leader.
        let own = Cluster::client(&cluster, PATIENCE);
        let (_other, mut reader) = own;
        cluster.0[old].signal("-CONT");
        let mut addresses = cluster.addresses();
        addresses.swap(0, old);
        let all = addresses.join(",");
        let first = text(&["get", "key", "--cluster", &all, "--json", "--timeout", "30"]);
        let first: Value = serde_json::from_str(&first).unwrap();
        let item = reader.get(b"key").unwrap().unwrap();
        assert_eq!(
            (first["version"].as_u64(), &item.1[..]),
            (Some(item.0), &value[..])
        );
    }
}

/// A replica on a host of a network.
fn on_host(host: &Host) -> Replica {
    let listen = format!("{}:7101", host.address);
    host.run(|| Replica::start_with(&listen, &["--transport", "udp"]))
}

#[test]
fn a_leader_behind_a_cut_network_loses_the_lead_and_comes_back() {
    let Some(network) = Network::new() else {
        return;
    };
    let (left, right) = (&network.left, &network.right);
    let near = [7101, 7102].map(|port| {
        let listen = format!("{}:{port}", left.address);
        left.run(|| Replica::start_with(&listen, &["--transport", "udp"]))
    });
    let far = on_host(right);
    let cluster = Cluster(near.into_iter().chain([far]).collect());
    let all = cluster.addresses().join(",");
    let names = cluster.addresses();
    let run = |host: &Host, args: &[&str]| {
        let args = [args, &["--transport", "udp", "--timeout", "30"]].concat();
        host.run(|| text(&args))
    };
    let [first, second, third] = [0, 1, 2].map(|it| names[it].as_str());
    run(left, &["bootstrap", first, second, third]);
    let clustered = ["--cluster", &all];
    run(left, &[&["put", "key", "old"][..], &clustered].concat());
    run(
        left,
        &["transfer-leader", first, second, third, "--to", third],
    );
    right.ip("link set link0 down").unwrap();
    run(left, &[&["put", "key", "new"][..], &clustered].concat());
    // The old leader does not answer a read, because no majority confirms it.
    let cut = [
        "get",
        "key",
        "--cluster",
        third,
        "--transport",
        "udp",
        "--timeout",
        "2",
    ];
    let why = right.run(|| failure(&cut, 1));
    assert!(!why.contains("old"), "{why}");
    right.ip("link set link0 up").unwrap();
    assert_eq!(
        run(right, &[&["get", "key"][..], &clustered].concat()),
        "new\n"
    );
    until(|| {
        let status = run(left, &["status", third, "--json"]);
        let status: Value = serde_json::from_str(&status).unwrap();
        status["role"] == "follower" && status["applied"] == status["last"]
    });
}
