//! The counters files of the processes of this host: memory files, found by their name among the
//! descriptors of a process. A file exists exactly as long as its process, so none is ever stale.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::source::read_head;
use crate::layout::{NAME, header};

/// A counters file.
#[derive(Debug)]
pub struct Found {
    /// The id of the process.
    pub pid: u32,
    /// The file, open for reading.
    pub file: File,
    /// Where it was found.
    pub path: PathBuf,
}

/// Why a process's counters cannot be read.
#[derive(Debug)]
pub enum FindError {
    /// There is no process with this id.
    NoProcess(u32),
    /// The process belongs to another user.
    Forbidden(u32),
    /// The process has no nexus, or hides its counters.
    Nothing(u32),
    /// Another error.
    Io {
        /// The process.
        pid: u32,
        /// The system's error.
        source: io::Error,
    },
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcess(value) => write!(f, "there is no process {value}"),
            Self::Forbidden(value) => write!(
                f,
                "process {value} belongs to another user, or has more rights than this one; try as \
                 root"
            ),
            Self::Nothing(value) => write!(
                f,
                "process {value} shows no counters: it has no nexus, or hides its counters"
            ),
            Self::Io { pid, source } => write!(
                f,
                "the descriptors of process {pid} cannot be listed: {source}"
            ),
        }
    }
}

impl std::error::Error for FindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The counters files of a process, one for each nexus that it has.
///
/// # Errors
/// There is no such process, this user may not read it, or it is hidden.
pub fn of_process(pid: u32) -> Result<Vec<Found>, FindError> {
    let files = files_of(pid).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => FindError::NoProcess(pid),
        io::ErrorKind::PermissionDenied => FindError::Forbidden(pid),
        _ => FindError::Io { pid, source },
    })?;
    match files.is_empty() {
        true => Err(FindError::Nothing(pid)),
        false => Ok(files),
    }
}

/// The counters files of all processes that this user may read, in order of process ids.
pub fn all() -> Vec<Found> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut pids: Vec<u32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    // A process that has ended, or belongs to another user, has no file.
    pids.into_iter()
        .flat_map(|pid| files_of(pid).unwrap_or_default())
        .collect()
}

fn files_of(pid: u32) -> io::Result<Vec<Found>> {
    let name = NAME.to_str().unwrap_or_default();
    let link = format!("/memfd:{name} (deleted)");
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let path = entry?.path();
        if is_link_to(&path, &link)
            && let Some(mut file) = open(&path, &link)
            && is_of(&mut file, pid)
        {
            found.push(Found { pid, file, path });
        }
    }
    Ok(found)
}

fn is_link_to(path: &Path, target: &str) -> bool {
    fs::read_link(path).is_ok_and(|found| found == Path::new(target))
}

/// Opens the file of another process's descriptor, if the descriptor still leads to `link`. That
/// process may have closed the descriptor, and now have a named pipe at its number. Without the
/// flag, opening that pipe would wait for a writer.
fn open(path: &Path, link: &str) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).ok()?;
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    is_link_to(Path::new(&own), link).then_some(file)
}

/// Returns false if another process made the file: a process that has only opened or inherited the
/// file, such as a reader, has it among its descriptors too. True if the file cannot be read.
fn is_of(file: &mut File, pid: u32) -> bool {
    match (read_head(file), own_number(pid)) {
        (Ok(head), Some(own)) => head[header::PID] == own,
        _ => true,
    }
}

/// The process id in its own namespace; in a container, it differs from the id outside.
fn own_number(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests;
