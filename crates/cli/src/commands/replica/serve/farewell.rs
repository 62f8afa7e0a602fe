//! The last words of a replica that a panic ends. A panic of Raft or of its log is never caught,
//! and its own text is for programmers; these words name the replica and how to continue. `serve`
//! prepares them before the replica starts, because its start reads the log, which may panic
//! already.

use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Prints the last words if a panic unwinds through `serve` and drops this value. After a panic in
/// a turn of the driver, nothing is unwound: the driver prints the words itself, and ends the
/// process.
pub(super) struct Farewell {
    address: String,
    disk: Option<PathBuf>,
    /// 0: it is not known yet.
    id: Cell<u64>,
    cluster: Cell<Option<u64>>,
}

impl Farewell {
    pub(super) fn new(address: &str, disk: Option<&Path>) -> Self {
        Self {
            address: address.to_owned(),
            disk: disk.map(Path::to_owned),
            id: Cell::new(0),
            cluster: Cell::new(None),
        }
    }

    /// Takes the replica's number and the name of its cluster.
    pub(super) fn name(&self, id: u64, cluster: Option<u64>) {
        self.id.set(id);
        self.cluster.set(cluster);
    }

    pub(super) fn words(&self) -> String {
        let id = match self.id.get() {
            0 => String::new(),
            id => format!(" {id:016x}"),
        };
        let cluster = self
            .cluster
            .get()
            .map_or(String::new(), |name| format!(" of cluster {name:016x}"));
        let disk = self.disk.as_ref().map_or(String::new(), |path| {
            format!(" with the directory {}", path.display())
        });
        format!(
            "the replica{id}{cluster} at {}{disk} ends because of the panic above: its disk, its \
             log or its promises are not as Raft needs them, so it must not go on. It answers \
             nothing more, and the other members go on without it. {}",
            self.address,
            self.advice()
        )
    }

    fn advice(&self) -> String {
        let leave = format!("`dunlin replica leave {} ADDRESS…`", self.address);
        match self.disk {
            Some(_) => format!(
                "Once the disk is in order, start it again with the same --disk; it goes on with \
                 what the disk has kept. If it ends again, move the directory away, let this \
                 replica leave ({leave}), and let a process with an empty directory join (`dunlin \
                 replica join`)"
            ),
            None => format!(
                "Let it leave ({leave}), and let a new process join (`dunlin replica join`)"
            ),
        }
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("dunlin: {}", self.words());
        }
    }
}
