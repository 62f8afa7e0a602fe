//! The disk of a simulated replica: the engine on a simulated disk, and the time that its work
//! takes.

use std::io;
use std::sync::Arc;
use std::task::Waker;

use dunlin_core::Nanos;
use dunlin_replica::{Disk, Full, Image, Limits, LogWrite, Remains, Roster, Saved, Store, Work};
use dunlin_sim::Rng;

use crate::platter::SimFiles;

/// Small, so that a run has many files.
const LIMITS: Limits = Limits {
    file_bytes: 8 << 10,
    purge_bytes: 24 << 10,
    part_bytes: 1 << 10,
};

/// A planted bug of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(
    not(feature = "mutants"),
    allow(dead_code, reason = "only runs with planted bugs make one")
)]
pub(crate) enum DiskBug {
    /// Nothing is synced.
    NoSync,
    /// A panic of the engine is caught, and the write is reported as saved.
    CaughtPanic,
}

/// The time that a batch of work takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// The time of good disks, with some syncs that take longer than an election timeout.
    Mixed,
    /// Between half of this time and this time.
    Slow(Nanos),
}

impl Pace {
    fn draw(self, rng: &mut Rng) -> Nanos {
        Nanos(match self {
            // A sync of 100 ms is longer than an election timeout.
            Self::Mixed if rng.one_in(300) => 100_000_000,
            Self::Mixed => rng.log_between(20_000, 2_000_000),
            Self::Slow(most) => rng.between(most.0 / 2, most.0),
        })
    }
}

/// A batch of work in progress.
#[derive(Debug)]
struct Busy {
    end: Nanos,
    result: Result<Option<u64>, Full>,
}

/// The disk of a running replica.
pub(crate) struct SimDisk {
    store: Store<SimFiles>,
    files: SimFiles,
    writes: Vec<LogWrite>,
    busy: Option<Busy>,
    saved: Saved,
    pace: Pace,
    rng: Rng,
    bug: Option<DiskBug>,
}

impl SimDisk {
    /// Opens a disk, and reads what it has kept.
    pub(crate) fn open(
        files: &SimFiles,
        bug: Option<DiskBug>,
        first: (u64, u64),
        pace: Pace,
        rng: Rng,
    ) -> (Self, Option<Remains>) {
        // A process cannot start on a full disk, so the disk has room now.
        files.fill(false);
        let opened = Store::open(files.folder(), Arc::new(files.clone()), LIMITS, first);
        let (store, remains) = opened.unwrap_or_else(|loss| panic!("a log is lost: {loss:?}"));
        files.settle();
        #[cfg(feature = "mutants")]
        let store = {
            let mut store = store;
            if bug == Some(DiskBug::NoSync) {
                store.never_sync();
            }
            store
        };
        let disk = Self {
            store,
            files: files.clone(),
            writes: Vec::new(),
            busy: None,
            saved: Saved::default(),
            pace,
            rng,
            bug,
        };
        (disk, remains)
    }

    /// Begins the next batch, if there is work.
    fn begin(&mut self, now: Nanos) {
        let number = self.writes.last().map(|write| write.number);
        if self.busy.is_some() {
            return;
        }
        self.store.do_chores();
        if number.is_none() && !self.store.has_part() {
            return;
        }
        let result = match self.bug {
            Some(DiskBug::CaughtPanic) => {
                let run = std::panic::AssertUnwindSafe(|| self.work());
                std::panic::catch_unwind(run).unwrap_or(Ok(()))
            }
            _ => self.work(),
        };
        let span = self.pace.draw(&mut self.rng);
        if result.is_ok() {
            self.writes.clear();
        }
        self.busy = Some(Busy {
            end: now + span,
            result: result.map(|()| number),
        });
    }

    fn work(&mut self) -> Result<(), Full> {
        self.store.save(&self.writes)
    }
}

impl std::fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimDisk")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Disk for SimDisk {
    fn take_seat(&mut self, _roster: &Roster) -> io::Result<()> {
        Ok(())
    }

    fn submit(&mut self, work: Work, now: Nanos) {
        match work {
            Work::Write(write) => self.writes.push(write),
            Work::Checkpoint(items) => self.store.begin(items),
        }
        self.begin(now);
    }

    fn saved(&mut self, now: Nanos) -> Saved {
        while let Some(busy) = self.busy.take_if(|busy| busy.end <= now) {
            self.files.settle();
            match busy.result {
                Ok(number) => {
                    self.store.acknowledge();
                    self.saved.number = number.unwrap_or(self.saved.number);
                    self.saved.is_full = false;
                }
                Err(Full) => self.saved.is_full = true,
            }
            self.saved.checkpoints = self.store.checkpoints();
            self.begin(now);
        }
        self.saved
    }

    fn has_news(&self, now: Nanos) -> bool {
        self.next_news() <= now
    }

    fn next_news(&self) -> Nanos {
        self.busy.as_ref().map_or(Nanos::MAX, |busy| busy.end)
    }

    fn wake_with(&mut self, _waker: Waker) {}
}

/// The seat of a replica that starts with the remains on its disk.
pub(crate) fn seat(roster: Roster, remains: Option<Remains>) -> (Roster, Image) {
    let image = match remains {
        Some(remains) => Image::resume(roster.clone(), remains),
        None => Ok(Image::of(roster.clone())),
    };
    (roster, image.expect("the items are of this version"))
}
