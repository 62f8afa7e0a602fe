//! Replicas with disks: the end of all processes, directories that are refused, backups, and a
//! panic of Raft.

use std::fs::File;

use dunlin::replica::{LogWrite, Work};
use dunlin_testkit::address::free_port;
use dunlin_testkit::folder::Folder;

use super::*;

/// A cluster of three replicas with disks in a folder.
fn on_disks(folder: &Folder) -> Cluster {
    let start = |number: usize| {
        let path = folder.path(&number.to_string());
        Replica::start_with(&free_port(), &["--disk", &path])
    };
    Cluster::of((0..3).map(start))
}

impl Cluster {
    /// Restarts a killed replica.
    fn restart(&mut self, place: usize, folder: &Folder) {
        let path = folder.path(&place.to_string());
        let address = self.0[place].address.clone();
        self.0[place] = Replica::start_with(&address, &["--disk", &path]);
    }
}

#[test]
fn answered_writes_survive_the_end_of_all_processes() {
    let folder = Folder::new("replica-disks");
    let mut cluster = on_disks(&folder);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let options = ClientOptions {
        deadline: Nanos::from(PATIENCE),
        ..ClientOptions::DEFAULT
    };
    let endpoint = nexus.endpoint_builder::<Auto>();
    let mut client: Connection<Auto> =
        Connection::open(endpoint, cluster.addresses(), options).unwrap();
    let mut written = Vec::new();
    for round in 0..3 {
        let leader = cluster.leader();
        std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                cluster.0[leader].kill();
            });
            for number in 0..50 {
                let key = format!("{round}-{number}");
                written.push((client.put(key.as_bytes(), b"value").unwrap(), key));
            }
            killer.join().unwrap();
        });
        // In the last round, no process is left to remember anything.
        let killed = if round == 2 { 0..3 } else { leader..leader + 1 };
        killed.clone().for_each(|place| cluster.0[place].kill());
        killed.for_each(|place| cluster.restart(place, &folder));
    }
    for (version, key) in written {
        let item = client.get(key.as_bytes()).unwrap();
        assert_eq!(item, Some((version, b"value".to_vec())), "{key}");
    }
}

#[test]
fn a_directory_in_use_of_another_cluster_or_of_another_format_is_refused() {
    let folder = Folder::new("replica-refused");
    let mut cluster = on_disks(&folder);
    let path = folder.path("0");
    let fail = |more: &[&str]| {
        let more = [&["--disk", &path], more].concat();
        failure(&serve("127.0.0.1:0", &more), 1)
    };
    assert!(fail(&[]).contains("is in use by a running process"));
    cluster.0[0].kill();
    let Value::Null = cluster.0[0].cluster else {
        panic!("its first start was before the bootstrap");
    };
    cluster.restart(0, &folder);
    let name = cluster.0[0].cluster.as_str().unwrap().to_owned();
    cluster.0[0].kill();
    let wrong = fail(&["--of-cluster", "1"]);
    assert!(
        wrong.contains(&format!("holds data of cluster {name}")),
        "{wrong}"
    );
    let file = folder.join("0/replica");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[8] = 2;
    std::fs::write(&file, bytes).unwrap();
    assert!(fail(&[]).contains("data of format 2"));
}

#[test]
fn a_new_cluster_begins_with_the_backup_of_a_survivor() {
    let folder = Folder::new("replica-backup");
    let mut cluster = on_disks(&folder);
    let all = cluster.addresses().join(",");
    let put = |key: &str, all: &str| text(&["put", key, key, "--cluster", all, "--timeout", "30"]);
    let get = |key: &str, all: &str| text(&["get", key, "--cluster", all, "--timeout", "30"]);
    (0..20).for_each(|number| drop(put(&format!("key-{number}"), &all)));
    let leader = cluster.leader();
    // The log is shortened, so the backup has items and entries.
    text(&["snapshot", &cluster.0[leader].address, "--timeout", "30"]);
    put("after", &all);
    let (file, path) = (folder.path("items"), folder.path(&leader.to_string()));
    let backup = ["backup", &file, "--disk", &path];
    assert!(failure(&backup, 1).contains("in use by a running process"));
    cluster.0.iter_mut().for_each(Replica::kill);
    assert!(text(&backup).contains("21 keys"));
    assert!(
        failure(&backup, 1).contains("items"),
        "no file is overwritten"
    );

    let restored = |place: usize| folder.path(&format!("new-{place}"));
    let restore = |place: usize| {
        let path = restored(place);
        text(&["restore", &file, "--disk", &path])
    };
    let names: Vec<String> = (0..3).map(restore).collect();
    assert!(names.iter().all(|name| name.contains("21 keys")));
    let again = ["restore", &file, "--disk", &restored(0)];
    assert!(failure(&again, 1).contains("holds a replica already"));
    let start = |place: usize| Replica::start_with(&free_port(), &["--disk", &restored(place)]);
    let mut cluster = Cluster((0..3).map(start).collect());
    // A replica without the items would begin another cluster with them.
    let other = Replica::start_with(&free_port(), &["--disk", &folder.path("other")]);
    let [first, second] = [0, 1].map(|it| cluster.0[it].address.as_str());
    let mixed = [
        "bootstrap",
        "--timeout",
        "30",
        first,
        second,
        &other.address,
    ];
    assert!(failure(&mixed, 1).contains("begins with other items"));
    text(&cluster.bootstrap(3));
    assert!(
        text(&cluster.bootstrap(3)).contains("of 3 replicas"),
        "again"
    );
    let all = cluster.addresses().join(",");
    assert_eq!(get("key-7", &all), "key-7\n");
    assert_eq!(get("after", &all), "after\n");
    put("new", &all);
    assert_eq!(get("new", &all), "new\n");
    // A member that has lost its disk, and restores the backup again, is another replica.
    cluster.0[2].kill();
    std::fs::remove_dir_all(restored(2)).unwrap();
    restore(2);
    cluster.0[2] = start(2);
    assert!(text(&["status", &cluster.0[2].address]).contains("21 restored keys"));
    assert!(failure(&cluster.bootstrap(3), 1).contains("another cluster"));
    put("later", &all);
    assert_eq!(get("later", &all), "later\n");
}

/// Copies the directory of a stopped replica.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn two_processes_with_one_number_both_end_and_the_cluster_goes_on() {
    let folder = Folder::new("replica-twins");
    let mut cluster = on_disks(&folder);
    let all = cluster.addresses().join(",");
    let victim = (cluster.leader() + 1) % 3;
    cluster.0[victim].kill();
    copy(&folder.join(victim.to_string()), &folder.join("copy"));
    cluster.restart(victim, &folder);
    let path = folder.path("copy");
    let mut twin = Replica::start_with(&free_port(), &["--disk", &path]);
    for process in [&mut twin, &mut cluster.0[victim]] {
        until(|| process.child.try_wait().unwrap().is_some());
        assert_eq!(process.child.wait().unwrap().code(), Some(1));
    }
    text(&[
        "put",
        "name",
        "dunlin",
        "--cluster",
        &all,
        "--timeout",
        "30",
    ]);
}

/// Writes the largest term into a directory, so that Raft panics when it asks for votes.
fn promise_the_last_term(path: &std::path::Path) {
    let opened = dunlin::replica::open(path, 1).unwrap();
    let mut disk = opened.disk;
    let mut write = LogWrite {
        number: 1,
        promises: std::default::Default::default(),
        entries: Vec::new(),
        items: None,
    };
    write.promises.term = u64::MAX;
    disk.submit(Work::Write(write), Nanos::ZERO);
    until(|| disk.saved(Nanos::ZERO).number == 1);
}

#[test]
fn a_panic_of_raft_ends_the_process_with_advice() {
    let folder = Folder::new("replica-panics");
    let path = folder.path("0");
    let mut cluster =
        Cluster::of([Replica::start_with("127.0.0.1:0", &["--disk", &path])].into_iter());
    let address = cluster.0[0].address.clone();
    text(&[
        "put",
        "name",
        "dunlin",
        "--cluster",
        &address,
        "--timeout",
        "30",
    ]);
    let status = text(&["status", &address, "--json", "--timeout", "30"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    let name = status["cluster"].as_str().unwrap();
    cluster.0[0].kill();
    promise_the_last_term(&folder.join("0"));
    let file = folder.join("errors");
    let mut command = dunlin(&serve(&address, &["--disk", &path]));
    command.stderr(Stdio::from(File::create(&file).unwrap()));
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    until(|| child.try_wait().unwrap().is_some());
    let status = child.wait().unwrap();
    let errors = std::fs::read_to_string(file).unwrap();
    assert_eq!(status.code(), Some(101), "{status}: {errors}");
    assert!(
        errors.contains("raft"),
        "the panic does not come from Raft: {errors}"
    );
    let words = format!("of cluster {name} at {address} with the directory {path} ends because");
    assert!(errors.contains(&words), "{errors}");
    assert!(
        errors.contains(&format!("dunlin replica leave {address}")),
        "{errors}"
    );
}
