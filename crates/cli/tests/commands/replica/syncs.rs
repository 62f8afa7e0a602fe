//! Disks whose syncs fail or take long, with real processes: a library that is loaded before the
//! system's has an `fdatasync` and an `fsync` of its own.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Instant;

use dunlin_testkit::address::free_port;
use dunlin_testkit::folder::Folder;
use dunlin_testkit::skip;

use super::*;

/// While the file `fail` exists, a sync of either kind fails, and adds a byte to the file `failed`.
/// While the file `slow` exists, an `fdatasync` takes the time of [`SLOW`] longer.
const LIBRARY: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void path_of(char *path, size_t size, const char *name) {
    const char *folder = getenv("SYNCS");
    snprintf(path, size, "%s/%s", folder ? folder : ".", name);
}

static int exists(const char *name) {
    char path[4096];
    path_of(path, sizeof path, name);
    return access(path, F_OK) == 0;
}

static int fail(void) {
    char path[4096];
    path_of(path, sizeof path, "failed");
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0 || write(file, "x", 1) != 1)
        abort();
    close(file);
    errno = EIO;
    return -1;
}

int fdatasync(int file) {
    if (exists("fail"))
        return fail();
    if (exists("slow"))
        usleep(400000);
    return syscall(SYS_fdatasync, file);
}

int fsync(int file) {
    return exists("fail") ? fail() : syscall(SYS_fsync, file);
}
"#;

/// Longer than the election time-out of the replicas. An election takes two of them in turn, which
/// is longer than any time-out that a replica draws.
const SLOW: Duration = Duration::from_millis(400);

/// The longest time without a leader while syncs are slow: a few time-outs and syncs, and some
/// seconds for a busy machine.
const ELECTING: Duration = Duration::from_secs(12);

/// Replicas with disks whose syncs the test controls.
struct Stage {
    folder: Folder,
    library: PathBuf,
}

impl Stage {
    /// Builds the library; `None`, if there is no compiler of C.
    fn new(name: &str) -> Option<Self> {
        let folder = Folder::new(name);
        let (source, library) = (folder.join("syncs.c"), folder.join("syncs.so"));
        fs::write(&source, LIBRARY).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
        match compiler.arg(&library).arg(&source).status() {
            Ok(status) => assert!(status.success(), "the library does not compile"),
            Err(error) => {
                skip(&format!("cc: {error}"));
                return None;
            }
        }
        Some(Self { folder, library })
    }

    fn start(&self, place: usize, listen: &str) -> Replica {
        let (disk, syncs) = (self.path(place, "disk"), self.path(place, "syncs"));
        fs::create_dir_all(&syncs).unwrap();
        let errors = File::create(self.path(place, "errors")).unwrap();
        let mut command = dunlin(&serve(listen, &["--disk", &disk]));
        command.env("LD_PRELOAD", &self.library).env("SYNCS", syncs);
        Replica::greeted(command.stderr(Stdio::from(errors)))
    }

    fn cluster(&self) -> Cluster {
        Cluster::of((0..3).map(|place| self.start(place, &free_port())))
    }

    fn path(&self, place: usize, name: &str) -> String {
        self.folder.path(&format!("{name}-{place}"))
    }

    /// A file that changes the syncs of a replica, or that a sync has written.
    fn file(&self, place: usize, name: &str) -> PathBuf {
        self.folder.join(format!("syncs-{place}/{name}"))
    }

    fn switch(&self, place: usize, name: &str) {
        fs::write(self.file(place, name), b"").unwrap();
    }
}

fn status_of(address: &str) -> Value {
    let status = text(&["status", address, "--json", "--timeout", "30"]);
    serde_json::from_str(&status).unwrap()
}

#[test]
fn a_sync_that_fails_ends_the_process_and_is_not_repeated() {
    let Some(stage) = Stage::new("replica-sync-fails") else {
        return;
    };
    let mut cluster = stage.cluster();
    let (_nexus, mut client) = cluster.client(PATIENCE);
    client.put(b"before", b"value").unwrap();
    let old = cluster.leader();
    stage.switch(old, "fail");
    client.put(b"during", b"value").unwrap();
    until(|| cluster.0[old].child.try_wait().unwrap().is_some());
    let status = cluster.0[old].child.wait().unwrap();
    let errors = fs::read_to_string(stage.path(old, "errors")).unwrap();
    assert_eq!(status.code(), Some(101), "{status}: {errors}");
    let message = "the disk of this replica has failed, and what it has kept is not known, so the \
                   process ends";
    assert!(errors.contains(message), "{errors}");
    assert_eq!(fs::read(stage.file(old, "failed")).unwrap().len(), 1);
    // The others continue, and the replica rejoins them when its disk is in order.
    client.put(b"after", b"value").unwrap();
    fs::remove_file(stage.file(old, "fail")).unwrap();
    let address = cluster.0[old].address.clone();
    cluster.0[old] = stage.start(old, &address);
    until(|| {
        let status = status_of(&address);
        status["role"] == "follower" && status["applied"] == status["last"]
    });
    let other = (old + 1) % 3;
    cluster.0[other].kill();
    for key in ["before", "during", "after"] {
        let item = client.get(key.as_bytes()).unwrap();
        assert!(item.is_some_and(|it| it.1 == b"value"), "{key}");
    }
}

#[test]
fn a_sync_of_the_members_that_fails_ends_the_process_and_is_not_repeated() {
    let Some(stage) = Stage::new("replica-seat-fails") else {
        return;
    };
    let mut replica = stage.start(0, "127.0.0.1:0");
    let address = replica.address.clone();
    stage.switch(0, "fail");
    // A second request would find the process alive if an endpoint had caught the panic.
    let bootstrap = ["bootstrap", &address, "--timeout", "3"];
    failure(&bootstrap, 1);
    until(|| replica.child.try_wait().unwrap().is_some());
    let status = replica.child.wait().unwrap();
    let errors = fs::read_to_string(stage.path(0, "errors")).unwrap();
    assert_eq!(status.code(), Some(101), "{status}: {errors}");
    assert!(errors.contains("does not sync its members"), "{errors}");
    assert!(
        errors.contains("start it again with the same --disk"),
        "{errors}"
    );
    assert_eq!(fs::read(stage.file(0, "failed")).unwrap().len(), 1);
    // It has no seat, and takes one when the disk is in order.
    fs::remove_file(stage.file(0, "fail")).unwrap();
    let replica = stage.start(0, &address);
    assert_eq!(replica.cluster, Value::Null);
    text(&["bootstrap", &address, "--timeout", "30"]);
}

#[test]
fn reads_and_heartbeats_go_on_during_long_syncs() {
    let Some(stage) = Stage::new("replica-sync-slow") else {
        return;
    };
    let cluster = stage.cluster();
    let (_nexus, mut reader) = cluster.client(PATIENCE);
    reader.put(b"read", b"value").unwrap();
    let leader = cluster.leader();
    let term = |cluster: &Cluster| {
        let status = status_of(&cluster.0[leader].address);
        assert_eq!(status["role"], "leader", "{status}");
        status["term"].clone()
    };
    let before = term(&cluster);
    (0..3).for_each(|place| stage.switch(place, "slow"));
    let (writes, mut reads) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (_nexus, mut writer) = cluster.client(PATIENCE);
            [0; 6].map(|_| {
                let begin = Instant::now();
                writer.put(b"written", b"value").unwrap();
                begin.elapsed()
            })
        });
        let mut reads = Vec::new();
        while !writer.is_finished() {
            let begin = Instant::now();
            assert!(reader.get(b"read").unwrap().is_some());
            reads.push(begin.elapsed());
        }
        (writer.join().unwrap(), reads)
    });
    assert!(writes.iter().all(|time| *time >= SLOW), "{writes:?}");
    reads.sort_unstable();
    let median = reads[reads.len() / 2];
    assert!(
        median < SLOW / 4,
        "{} reads, median {median:?}",
        reads.len()
    );
    assert_eq!(term(&cluster), before);
}

#[test]
fn a_cluster_whose_syncs_are_longer_than_time_outs_elects_a_leader_and_goes_on() {
    let Some(stage) = Stage::new("replica-sync-elects") else {
        return;
    };
    let mut cluster = stage.cluster();
    let (_nexus, mut client) = cluster.client(PATIENCE);
    client.put(b"before", b"value").unwrap();
    let old = cluster.leader();
    (0..3).for_each(|place| stage.switch(place, "slow"));
    client.put(b"during", b"value").unwrap();
    cluster.0[old].kill();
    let begin = Instant::now();
    let others = [(old + 1) % 3, (old + 2) % 3];
    let leader = || {
        let mut states = others
            .map(|it| status_of(&cluster.0[it].address))
            .into_iter();
        states.find(|status| status["role"] == "leader")
    };
    until(|| leader().is_some());
    let time = begin.elapsed();
    assert!(time < ELECTING, "no replica has led for {time:?}");
    // A put needs both disks now. A busy machine may depose the leader: a process that does not run
    // for a time-out is like a process that is cut off. So the term may change, and its leader need
    // not be the first one.
    for put in 0..3_u8 {
        client.put(b"after", &[put]).unwrap();
        let item = client.get(b"after").unwrap();
        assert!(item.is_some_and(|it| it.1 == [put]), "{put}");
    }
    for key in ["before", "during"] {
        let item = client.get(key.as_bytes()).unwrap();
        assert!(item.is_some_and(|it| it.1 == b"value"), "{key}");
    }
}
