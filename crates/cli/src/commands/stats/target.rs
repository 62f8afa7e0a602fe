//! The process whose counters are shown, and the way to read them.

use std::fs::File;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, anyhow, bail};
use dunlin_insight::{Found, ReadError, Remote, Snapshot};

/// The process, as the user names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// A process of this host.
    Process(u32),
    /// A process anywhere, by the address of its nexus.
    Address(String),
    /// The saved snapshot.
    Saved(PathBuf),
}

/// A target that can be read again and again.
pub(crate) enum Opened {
    /// A process with its nexuses.
    Process {
        /// The process's number.
        pid: u32,
        /// A file for each nexus.
        files: Vec<Found>,
    },
    /// A process anywhere.
    Address {
        /// The address of the process's nexus.
        address: String,
        /// The process's number and start, once it has answered.
        known: Option<(u64, u64)>,
    },
    /// The saved snapshot.
    Saved {
        /// The path.
        path: PathBuf,
        /// The open file.
        file: File,
    },
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(pid) = text.parse() {
            return Ok(Self::Process(pid));
        }
        if text.contains('/') {
            return Ok(Self::Saved(text.into()));
        }
        match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                Ok(Self::Address(text.into()))
            }
            _ => Err(
                "it is not a process number (4711), address (host:31850) or path (./file)".into(),
            ),
        }
    }
}

impl Opened {
    /// # Errors
    /// It does not exist, or this user may not read it.
    pub(crate) fn open(target: &Target) -> anyhow::Result<Self> {
        Ok(match target {
            Target::Process(pid) => Self::Process {
                pid: *pid,
                files: dunlin_insight::of_process(*pid)?,
            },
            Target::Address(address) => Self::Address {
                address: address.clone(),
                known: None,
            },
            Target::Saved(path) => Self::Saved {
                path: path.clone(),
                file: File::open(path).with_context(|| path.display().to_string())?,
            },
        })
    }

    /// Reads the memory files now: one snapshot for each nexus.
    ///
    /// # Errors
    /// It cannot be read, or the process has ended.
    pub(crate) fn read(&mut self) -> anyhow::Result<Vec<Snapshot>> {
        match self {
            Self::Process { pid, files } => {
                // An open file outlives its process, so the path shows whether the process still
                // runs.
                files.retain(|found| found.path.exists());
                if files.is_empty() {
                    bail!("process {pid} has ended");
                }
                files
                    .iter_mut()
                    .map(|found| Snapshot::read(&mut found.file))
                    .collect::<Result<_, _>>()
                    .with_context(|| format!("the counters file of process {pid}"))
            }
            Self::Address { address, known } => Ok(vec![read_remote(address, known)?]),
            Self::Saved { path, file } => {
                // A path such as `/proc/PID/fd/7` vanishes when its process ends.
                if !path.exists() {
                    bail!("{} is gone", path.display());
                }
                let snapshot = Snapshot::read(file);
                Ok(vec![snapshot.with_context(|| path.display().to_string())?])
            }
        }
    }
}

/// Reads the counters of the process at an address. `known`: the process that answered there
/// before.
fn read_remote(address: &str, known: &mut Option<(u64, u64)>) -> anyhow::Result<Snapshot> {
    let mut remote = Remote::connect(address).with_context(|| match known {
        None => format!("no nexus answers at {address}"),
        Some((pid, _)) => format!("process {pid} at {address} has ended, or is out of reach"),
    })?;
    let snapshot = Snapshot::read(&mut remote).map_err(|error| match error {
        ReadError::Truncated { at: 0 } => anyhow!(
            "the process at {address} shows nothing over TCP: its option insight.tcp is off, the \
             default, or it hides (nexus.hidden)"
        ),
        error => anyhow!(error).context(format!("the process at {address}")),
    })?;
    let now = (snapshot.pid, snapshot.started_ns);
    match known.replace(now) {
        // This is another process, with counters from zero, so growth since the last reading has no
        // meaning.
        Some(before) if before != now => bail!(
            "process {} at {address} has ended; process {} listens there now",
            before.0,
            now.0
        ),
        _ => Ok(snapshot),
    }
}
