//! `dunlin replica` as a user runs it: clusters of processes, each command, and leaders that are
//! killed while a client writes.

mod disks;
mod faults;
mod members;
mod shown;
mod syncs;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use dunlin::replica::{ClientOptions, Connection, Inquirer, Names, PARCEL, Parcel, Status};
use dunlin::{Auto, ConnectOptions, Done, Nanos, Nexus, Rpc, Tag};
use dunlin_testkit::wait::{PATIENCE, until};
use raft::eraftpb::{Message, MessageType};
use serde_json::Value;

fn dunlin(args: &[&str]) -> Command {
    crate::program::dunlin(&[&["replica"], args].concat())
}

/// The output of a command that must succeed.
fn text(args: &[&str]) -> String {
    let output = dunlin(args).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The message of a command that must fail with a code.
fn failure(args: &[&str], code: i32) -> String {
    let Output { status, stderr, .. } = dunlin(args).output().unwrap();
    let errors = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(code), "{args:?}: {errors}");
    errors
}

struct Replica {
    child: Child,
    out: BufReader<ChildStdout>,
    address: String,
    /// The name of its cluster when it has started.
    cluster: Value,
}

/// The arguments of a replica, with long time-outs, so that a busy machine holds no election
/// without a reason.
fn serve<'a>(listen: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let args = ["serve", "--listen", listen, "--json", "--election", "300ms"];
    [&args, more].concat()
}

impl Replica {
    fn start(listen: &str) -> Self {
        Self::start_with(listen, &[])
    }

    fn start_with(listen: &str, more: &[&str]) -> Self {
        Self::greeted(dunlin(&serve(listen, more)).stderr(Stdio::inherit()))
    }

    /// Starts a replica with a command, and reads its greeting.
    fn greeted(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let greeting: Value = serde_json::from_str(&line).unwrap();
        let address = greeting["listening"].as_str().unwrap().to_owned();
        Self {
            child,
            out,
            address,
            cluster: greeting["cluster"].clone(),
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Cluster(Vec<Replica>);

impl Cluster {
    fn start(count: usize) -> Self {
        Self::of((0..count).map(|_| Replica::start("127.0.0.1:0")))
    }

    fn of(replicas: impl Iterator<Item = Replica>) -> Self {
        let cluster = Self(replicas.collect());
        let count = cluster.0.len();
        text(&cluster.bootstrap(count));
        cluster
    }

    /// A client of the replicas.
    fn client(&self, deadline: Duration) -> (Nexus, Connection<Auto>) {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let options = ClientOptions {
            deadline: Nanos::from(deadline),
            ..ClientOptions::DEFAULT
        };
        let endpoint = nexus.endpoint_builder::<Auto>();
        let client = Connection::open(endpoint, self.addresses(), options).unwrap();
        (nexus, client)
    }

    fn addresses(&self) -> Vec<String> {
        self.0.iter().map(|it| it.address.clone()).collect()
    }

    /// The arguments of a bootstrap of the first replicas.
    fn bootstrap(&self, count: usize) -> Vec<&str> {
        let addresses = self.0[..count].iter().map(|it| it.address.as_str());
        ["bootstrap", "--timeout", "30"]
            .into_iter()
            .chain(addresses)
            .collect()
    }

    /// The place of the replica that leads.
    fn leader(&self) -> usize {
        let mut leader = None;
        until(|| {
            let is_leader = |replica: &Replica| {
                let status = dunlin(&["status", &replica.address, "--json", "--timeout", "2"]);
                let out = { status }.output().unwrap().stdout;
                let status: Option<Value> = serde_json::from_slice(&out).ok();
                status.is_some_and(|it| it["role"] == "leader")
            };
            leader = self.0.iter().position(is_leader);
            leader.is_some()
        });
        leader.unwrap()
    }
}

#[test]
fn each_command_does_its_work() {
    let mut cluster = Cluster::start(3);
    let all = cluster.addresses().join(",");
    let run = |args: &[&str]| text(&[args, &["--cluster", &all, "--timeout", "30"]].concat());
    let fail =
        |args: &[&str]| failure(&[args, &["--cluster", &all, "--timeout", "30"]].concat(), 1);
    let version = |out: String| {
        let object: Value = serde_json::from_str(&out).unwrap();
        object["version"].to_string()
    };
    assert_eq!(run(&["put", "name", "dunlin"]), "");
    assert_eq!(run(&["get", "name"]), "dunlin\n");
    let first = version(run(&["get", "name", "--json"]));
    let second = version(run(&["cas", "name", &first, "lough", "--json"]));
    assert!(fail(&["cas", "name", &first, "x"]).contains(&format!("has the version {second}")));
    assert_eq!(run(&["get", "name"]), "lough\n");
    assert_eq!(run(&["cas", "lock", "0", "me"]), "");
    assert_eq!(run(&["delete", "name"]), "");
    for gone in [vec!["get", "name"], vec!["delete", "name"]] {
        assert!(fail(&gone).contains("there is no item with the key `name`"));
    }
    several_keys(&all, &run, &fail);
    // The same bootstrap again changes nothing; another one is refused.
    assert!(text(&cluster.bootstrap(3)).contains("of 3 replicas"));
    assert!(failure(&cluster.bootstrap(2), 2).contains("2 replicas do not form a cluster"));
    assert!(failure(&cluster.bootstrap(1), 1).contains("it belongs to another cluster"));
    // A new process at the address of an earlier one is another replica.
    let address = cluster.0[2].address.clone();
    cluster.0[2].kill();
    cluster.0[2] = Replica::start(&address);
    assert!(text(&["status", &address]).contains("without a cluster"));
    assert!(failure(&cluster.bootstrap(3), 1).contains("another cluster"));
    assert_eq!(run(&["get", "lock"]), "me\n");
    // Ctrl-C ends a replica with a report.
    let id = cluster.0[2].child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let mut rest = String::new();
    cluster.0[2].out.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"applied\":0"), "{rest}");
    assert_eq!(cluster.0[2].child.wait().unwrap().code(), Some(0));
}

/// Transactions, ranges and lifetimes.
fn several_keys(all: &str, run: &dyn Fn(&[&str]) -> String, fail: &dyn Fn(&[&str]) -> String) {
    let both = [
        "transact",
        "--if",
        "user/1=0",
        "--put",
        "user/1=a",
        "--put",
        "user/2=b=1",
    ];
    assert_eq!(run(&both[..5]), "");
    assert!(fail(&both).contains("nothing is written: `user/1` has another version"));
    assert_eq!(run(&["put", "user/2", "b"]), "");
    let keys = |out: String| -> Vec<String> {
        let keys = out
            .lines()
            .map(|line| line.split('\t').next().unwrap().to_owned());
        keys.collect()
    };
    assert_eq!(keys(run(&["list", "user/"])), ["user/1", "user/2"]);
    assert_eq!(
        keys(run(&["list", "user/", "--after", "user/1"])),
        ["user/2"]
    );
    let first = dunlin(&["list", "user/", "--limit", "1", "--json", "--cluster", all]);
    let first = { first }.output().unwrap();
    let item: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(
        (&item["key"], &item["more"]),
        (&"user/1".into(), &true.into())
    );
    let errors = String::from_utf8(first.stderr).unwrap();
    assert!(
        errors.contains("more items follow; go on with --after=user/1"),
        "{errors}"
    );
    assert_eq!(keys(run(&["list", "user/", "--limit", "1"])), ["user/1"]);
    assert_eq!(keys(run(&["list", "us/"])), [""; 0]);
    assert!(failure(&["list", "--limit", "0"], 2).contains("--limit"));
    assert!(failure(&["watch", "--count", "0"], 2).contains("--count"));
    assert!(run(&["list", "user/2", "--json"]).contains("\"value\":\"b\""));
    assert_eq!(run(&["put", "user/1", "gone soon", "--for", "50ms"]), "");
    until(|| keys(run(&["list", "user/"])) == ["user/2"]);
    let last = run(&["transact", "--delete", "user/2", "--json"]);
    assert_eq!(run(&["list", "user/"]), "");
    let changes = run(&["watch", "user/", "--from", "2", "--count", "5"]);
    let kinds = |line: &str| -> String {
        let words: Vec<&str> = line.split('\t').collect();
        format!("{} {} {}", words[0], words[2], words[3])
    };
    let kinds: Vec<String> = changes.lines().map(kinds).collect();
    let expected = [
        "user/1 put a",
        "user/2 put b",
        "user/1 put gone soon",
        "user/1 expired ",
        "user/2 deleted ",
    ];
    assert_eq!(kinds, expected);
    let last: Value = serde_json::from_str(&last).unwrap();
    assert!(changes.contains(&format!("user/2\t{}\tdeleted", last["version"])));
}

/// The address in the greeting of a sequencer.
#[cfg(feature = "sequencer")]
fn greeting(child: &mut Child) -> String {
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.as_mut().unwrap());
    out.read_line(&mut line).unwrap();
    let greeting: Value = serde_json::from_str(&line).unwrap();
    greeting["listening"].as_str().unwrap().to_owned()
}

/// Sequencers whose reservations are in a cluster: one is killed, and another one takes over.
#[cfg(feature = "sequencer")]
#[test]
fn a_sequencer_keeps_its_reservations_in_a_cluster() {
    let cluster = Cluster::start(3);
    let all = cluster.addresses().join(",");
    let sequencer = |args: &[&str]| crate::program::dunlin(&[&["sequencer"], args].concat());
    let serve = |more: &[&str]| {
        let first = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--json",
            "--cluster",
            &all,
        ];
        let set = ["--set", "sequencer.lease=300ms"];
        let mut command = sequencer(&[&first, &set[..], more].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let next = |address: &str| -> u64 {
        let args = [
            "next",
            "orders",
            "--create",
            "--server",
            address,
            "--timeout",
            "30",
        ];
        let output = sequencer(&args).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    };
    let mut first = serve(&[]);
    let address = greeting(&mut first);
    assert_eq!([next(&address), next(&address)], [1, 2]);
    first.kill().unwrap();
    first.wait().unwrap();
    let refused = serve(&[]).wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        String::from_utf8(refused.stderr)
            .unwrap()
            .contains("--take-over")
    );
    let mut second = serve(&["--take-over"]);
    let address = greeting(&mut second);
    assert!(next(&address) > 2);
    // A third one deposes it while it lives.
    let mut third = serve(&["--take-over"]);
    let last = next(&greeting(&mut third));
    assert!(last > 3);
    let ended = second.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        String::from_utf8(ended.stderr)
            .unwrap()
            .contains("has taken over the cluster")
    );
    third.kill().unwrap();
    third.wait().unwrap();
}

#[test]
fn no_acknowledged_write_is_lost_when_leaders_are_killed() {
    let mut cluster = Cluster::start(5);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let options = ClientOptions {
        deadline: Nanos::from(PATIENCE),
        ..ClientOptions::DEFAULT
    };
    let endpoint = nexus.endpoint_builder::<Auto>();
    let mut client: Connection<Auto> =
        Connection::open(endpoint, cluster.addresses(), options).unwrap();
    let mut written = Vec::new();
    let mut write = |client: &mut Connection<Auto>, count: usize| {
        for _ in 0..count {
            let number = written.len().to_string();
            let version = client.put(number.as_bytes(), number.as_bytes()).unwrap();
            written.push((number, version));
        }
    };
    write(&mut client, 100);
    for _ in 0..2 {
        let leader = cluster.leader();
        // Writes are in flight when the leader dies.
        std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                cluster.0[leader].kill();
            });
            write(&mut client, 200);
            killer.join().unwrap();
        });
        // The next leader has taken writes too.
        write(&mut client, 100);
    }
    for (number, version) in written {
        let item = client.get(number.as_bytes()).unwrap();
        assert_eq!(item, Some((version, number.into_bytes())));
    }
}

/// The bytes of a heartbeat of a leader whose log is far ahead.
fn heartbeat(status: &Status, from: u64) -> Vec<u8> {
    let message = Message {
        msg_type: MessageType::MsgHeartbeat,
        term: status.term + 1,
        commit: 1 << 40,
        ..Message::default()
    };
    let names = Names {
        cluster: status.members.as_ref().unwrap().cluster(),
        from,
        to: status.id,
        life: 1,
    };
    let parcel = Parcel {
        names: Some(names),
        are_two: false,
        messages: vec![message],
    };
    parcel.to_bytes()
}

#[test]
fn a_message_that_contradicts_the_log_is_dropped_and_the_replica_goes_on() {
    let mut cluster = Cluster::start(3);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let connect = ConnectOptions {
        patience: PATIENCE,
        ..ConnectOptions::default()
    };
    let endpoint = nexus.endpoint_builder::<Auto>();
    let mut inquirer: Inquirer<Auto> = Inquirer::new(endpoint, connect).unwrap();
    let status = inquirer.status(&cluster.0[0].address).unwrap();
    let other = inquirer.status(&cluster.0[2].address).unwrap().id;
    // The message seems to come from the third replica, which has started again.
    cluster.0[2].kill();
    let endpoint = nexus.endpoint_builder::<Auto>();
    let mut liar: Rpc<Auto, Option<Done>> = endpoint.build(None).unwrap();
    liar.on_completion(|last, done, _| *last = Some(done));
    let session = liar
        .connect_blocking(cluster.0[0].address.as_str())
        .unwrap();
    let request = liar.cx().copy(&heartbeat(&status, other)).unwrap();
    let response = liar.buf(4096).unwrap();
    liar.call(session, PARCEL, request, response, Tag(0))
        .unwrap();
    until(|| {
        liar.run_once();
        liar.app().is_some()
    });
    // The replica has read the message, and has no answer to it.
    let done = liar.app_mut().take().unwrap();
    assert!(done.result.is_ok(), "{:?}", done.result);
    inquirer.status(&cluster.0[0].address).unwrap();
    // A majority needs the replica that got the message.
    let rest = cluster.addresses()[..2].join(",");
    text(&[
        "put",
        "name",
        "dunlin",
        "--cluster",
        &rest,
        "--timeout",
        "30",
    ]);
}
