//! The disk of a server as a small trait, and the procedures on it: claiming an epoch, saving a
//! slot, and checking whether another server has taken over.
//!
//! A server owns the epoch whose file it has made. It makes the next epoch's file when it starts. A
//! server that finds a higher epoch than its own has been deposed. A file gets its name only when
//! its content is complete, so no file is half made.
//!
//! These procedures block. For a real server, the thread in `keeper.rs` runs them; the simulator
//! runs them in virtual time.

#[cfg(feature = "nexus")]
mod files;
#[cfg(feature = "replica")]
mod replicated;

use std::{fmt, io};

use crate::state::{Damage, State};

#[cfg(feature = "nexus")]
pub use files::Files;
#[cfg(feature = "replica")]
pub use replicated::{Replicated, StoreCalls};

/// The number of epochs for which a server tries to make the file. Other processes take a few at
/// most, but a disk may lie.
const MOST_ATTEMPTS: usize = 1000;

/// A directory with a file for each epoch.
pub trait Disk {
    /// The epochs that have a file, in any order.
    ///
    /// # Errors
    /// The directory cannot be read. The server tries again; after ten errors of the kind
    /// [`InvalidData`](io::ErrorKind::InvalidData) or [`BrokenPipe`](io::ErrorKind::BrokenPipe),
    /// which another attempt will not mend, it ends.
    fn epochs(&mut self) -> io::Result<Vec<u32>>;

    /// The content of an epoch's file.
    ///
    /// # Errors
    /// It cannot be read; see [`Self::epochs`].
    fn read(&mut self, epoch: u32) -> io::Result<Vec<u8>>;

    /// Locks an epoch's file until this process ends or claims an epoch. False: another process,
    /// which is alive, has locked it.
    ///
    /// # Errors
    /// It cannot be locked.
    fn lock(&mut self, epoch: u32) -> io::Result<bool>;

    /// Makes and locks an epoch's file with this content. The content is synced before the file
    /// gets its name, and the name is synced on return. False: the epoch has a file already.
    ///
    /// # Errors
    /// It cannot be made.
    fn make(&mut self, epoch: u32, content: &[u8]) -> io::Result<bool>;

    /// Writes a part of the file that this process has made.
    ///
    /// # Errors
    /// It cannot be written. If the error is [`Unchanged`], the server tries again; otherwise it
    /// ends. An [`Unchanged`] error of the kind [`TimedOut`](io::ErrorKind::TimedOut) leaves open
    /// whether the part is written. The server ends after a hundred of these in succession, too, if
    /// it could read the disk between them.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns when all written data is on the disk.
    ///
    /// # Errors
    /// The data may not be on the disk. A second attempt would prove nothing.
    fn sync(&mut self) -> io::Result<()>;

    /// Removes the file of an epoch that is over.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&mut self, epoch: u32) -> io::Result<()>;
}

/// The reason why a write does not count: an error that an [`io::Error`] contains. The part of the
/// file has its earlier bytes, or those of this write, and the disk finds out which before the next
/// write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unchanged(pub String);

/// Work for the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    pub(crate) kind: Kind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Looks for higher epochs.
    Check,
    /// Reads the limits of this epoch again, and the limits of earlier epochs that the server of
    /// this epoch has not read.
    Inherit(u32),
    /// Writes and syncs a slot, then looks for higher epochs. If there is none above `clears`,
    /// removes the files of lower epochs.
    Save {
        offset: u64,
        slot: Vec<u8>,
        clears: Option<u32>,
    },
}

/// The outcome of a [`Job`].
#[derive(Debug)]
pub struct Outcome {
    pub(crate) result: Result<Done, JobError>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Done {
    /// The highest epoch that has a file; 0 if none has.
    Checked(u32),
    Inherited(State),
    Saved(u32),
}

/// The reason why a job failed.
#[derive(Debug)]
pub(crate) enum JobError {
    /// The disk could not be read, and the job may be repeated.
    Read(io::Error),
    /// The slot is saved, but the epochs could not be read after that.
    Unseen(io::Error),
    /// The slot has its earlier state or the new one, and the job may be repeated.
    Unchanged(io::Error),
    /// It is unknown which data the disk has.
    Write(io::Error),
    /// The file of this epoch cannot be used.
    Damaged(u32, Damage),
}

/// An epoch that this process owns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    pub(crate) state: State,
    /// How long a server of an earlier epoch may continue to serve, by its own clock.
    pub(crate) wait_ns: u64,
}

/// How a server takes its directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taking {
    /// Only if no live process has the directory.
    Free,
    /// Even from a server that may be alive: that server is deposed, and stops when its lease ends.
    Over,
}

/// The reason why a server cannot have a directory.
#[derive(Debug)]
pub enum ClaimError {
    /// A live process has it: this one, if its file could be read.
    InUse(Option<u32>),
    /// The file of this epoch cannot be used.
    Damaged(u32, Damage),
    /// All epochs are used up.
    LastEpoch,
    /// The system returned an error.
    Io(io::Error),
}

/// The values that a server stores in its files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terms {
    pub(crate) process: u32,
    pub(crate) lease_ns: u64,
    pub(crate) raise: u64,
}

/// Claims the next epoch.
///
/// # Errors
/// [`ClaimError`].
pub(crate) fn claim(
    disk: &mut impl Disk,
    taking: Taking,
    terms: Terms,
) -> Result<Claim, ClaimError> {
    for _ in 0..MOST_ATTEMPTS {
        let last = disk.epochs()?.into_iter().max().unwrap_or(0);
        let before = match last {
            0 => None,
            epoch => Some(examine(disk, epoch, taking)?),
        };
        // A server that has not read the limits of the previous epoch has never served.
        let awaited = before
            .as_ref()
            .filter(|it| taking == Taking::Over || it.before != 0);
        let mut state = State {
            epoch: last.checked_add(1).ok_or(ClaimError::LastEpoch)?,
            generation: 0,
            process: terms.process,
            lease_ns: terms.lease_ns,
            raise: terms.raise,
            before: awaited.map_or(0, |it| it.epoch),
            sequences: Vec::new(),
        };
        let mut wait_ns = 0;
        if let Some(epoch) = awaited {
            let chain = chain(disk, epoch.epoch);
            wait_ns = chain.map_err(ClaimError::of_job)?.lease_ns;
        }
        if let Some(before) = &before {
            state.sequences.clone_from(&before.sequences);
        }
        // If another process was faster, this epoch already has a file, and the loop looks again.
        if disk.make(state.epoch, &state.encode_file())? {
            return Ok(Claim { state, wait_ns });
        }
    }
    let text = "each new epoch has a file already";
    Err(io::Error::new(io::ErrorKind::InvalidData, text).into())
}

/// The state of the last epoch, if this server may follow it.
fn examine(disk: &mut impl Disk, epoch: u32, taking: Taking) -> Result<State, ClaimError> {
    if taking == Taking::Free && !disk.lock(epoch)? {
        let state = disk.read(epoch).ok();
        let state = state.and_then(|bytes| State::recover(&bytes).ok());
        return Err(ClaimError::InUse(state.map(|it| it.process)));
    }
    let bytes = disk.read(epoch)?;
    State::recover_of(epoch, &bytes).map_err(|damage| ClaimError::Damaged(epoch, damage))
}

/// The state of an epoch, joined with the states of the epochs whose limits it has not read.
fn chain(disk: &mut impl Disk, epoch: u32) -> Result<State, JobError> {
    let mut state = read(disk, epoch)?;
    while state.before != 0 {
        let before = state.before;
        let epochs = disk.epochs().map_err(JobError::Read)?;
        if !epochs.contains(&before) {
            return Err(JobError::Damaged(state.epoch, Damage::Missing(before)));
        }
        let before = read(disk, before)?;
        state.join(&before);
    }
    Ok(state)
}

fn read(disk: &mut impl Disk, epoch: u32) -> Result<State, JobError> {
    let bytes = disk.read(epoch).map_err(JobError::Read)?;
    State::recover_of(epoch, &bytes).map_err(|damage| JobError::Damaged(epoch, damage))
}

/// Performs a job.
pub(crate) fn run(disk: &mut impl Disk, job: &Job) -> Outcome {
    let result = match &job.kind {
        Kind::Check => newest(disk).map(Done::Checked).map_err(JobError::Read),
        Kind::Inherit(epoch) => chain(disk, *epoch).map(Done::Inherited),
        Kind::Save {
            offset,
            slot,
            clears,
        } => save(disk, *offset, slot, *clears),
    };
    Outcome { result }
}

fn newest(disk: &mut impl Disk) -> io::Result<u32> {
    let epochs = disk.epochs()?;
    Ok(epochs.into_iter().max().unwrap_or(0))
}

fn save(
    disk: &mut impl Disk,
    offset: u64,
    slot: &[u8],
    clears: Option<u32>,
) -> Result<Done, JobError> {
    disk.write(offset, slot).map_err(JobError::of_write)?;
    disk.sync().map_err(JobError::Write)?;
    let newest = newest(disk).map_err(JobError::Unseen)?;
    if clears == Some(newest) {
        remove_before(disk, newest);
    }
    Ok(Done::Saved(newest))
}

/// Removes the files of lower epochs. A failure only costs some disk space, and the next save tries
/// again.
fn remove_before(disk: &mut impl Disk, own: u32) {
    for epoch in disk.epochs().unwrap_or_default() {
        if epoch < own {
            let _ = disk.remove(epoch);
        }
    }
}

#[cfg(feature = "nexus")]
impl Outcome {
    /// The outcome of a job whose thread has panicked: it is unknown which data the disk has.
    pub(crate) fn lost() -> Self {
        let error = io::Error::other("the thread for the disk has panicked");
        Self {
            result: Err(JobError::Write(error)),
        }
    }
}

impl JobError {
    fn of_write(error: io::Error) -> Self {
        match error.get_ref().is_some_and(|inner| inner.is::<Unchanged>()) {
            true => Self::Unchanged(error),
            false => Self::Write(error),
        }
    }
}

impl ClaimError {
    fn of_job(error: JobError) -> Self {
        match error {
            JobError::Read(error)
            | JobError::Unseen(error)
            | JobError::Unchanged(error)
            | JobError::Write(error) => Self::Io(error),
            JobError::Damaged(epoch, damage) => Self::Damaged(epoch, damage),
        }
    }
}

impl fmt::Display for Unchanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unchanged {}

impl From<io::Error> for ClaimError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(Some(process)) => {
                write!(f, "process {process} is alive and has it")
            }
            Self::InUse(None) => f.write_str("another process is alive and has it"),
            Self::Damaged(epoch, damage) => write!(f, "the file of epoch {epoch}: {damage}"),
            Self::LastEpoch => f.write_str("all of its 2^32 epochs are used up"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ClaimError {}
