//! The cross-check of the load generator: `memcaslap`, of libmemcached's tools, asks both servers
//! for items of the same lengths. It writes its own items, and 5 % of its operations are sets.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::harness::items::{KEY, VALUE};
use harness::process::{Parent, Role};
use harness::sys;

/// Runs `memcaslap`.
pub(super) const ROLE: Role = Role::new("memcached-slap", slap);

/// The share of gets.
const GETS: f64 = 0.95;

/// The work of a run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Params {
    pub(super) server: SocketAddr,
    /// The id of the server's process, whose processor time is read.
    pub(super) process: u32,
    pub(super) connections: u32,
    pub(super) span: Duration,
}

/// The result: operations per second, and for each second of the server's processor time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) per_s: f64,
    pub(super) per_cpu_s: f64,
}

/// True if a folder of `PATH` has a `memcaslap`.
pub(super) fn is_installed() -> bool {
    let version = Command::new("memcaslap")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

/// Time of a run: `memcaslap` counts whole seconds.
pub(super) fn takes(span: Duration) -> Duration {
    Duration::from_secs(span.as_secs().max(1))
}

/// # Errors
/// `memcaslap` fails, or a get finds nothing.
fn slap(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let lengths = Lengths::write()?;
    let before = sys::processor_time_of(params.process)?;
    let output = Command::new("memcaslap")
        .arg(format!("--servers={}", params.server))
        .args(["--threads=1", "--win_size=1k"])
        .arg(format!("--concurrency={}", params.connections))
        .arg(format!("--time={}s", takes(params.span).as_secs()))
        .arg(format!("--cfg_cmd={}", lengths.0.display()))
        .stdin(Stdio::null())
        .output()
        .context("cannot start memcaslap")?;
    let used = sys::processor_time_of(params.process)?.saturating_sub(before);
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!(
            "memcaslap fails: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let misses: u64 = after(&text, "get_misses:")?;
    ensure!(misses == 0, "{misses} gets of memcaslap found nothing");
    let operations: f64 = after(&text, "Ops:")?;
    parent.say(&Report {
        per_s: after(&text, "TPS:")?,
        per_cpu_s: operations / used.as_secs_f64(),
    })
}

/// The number after a word in the output of `memcaslap`.
fn after<T: FromStr>(text: &str, word: &str) -> anyhow::Result<T> {
    let mut words = text.split_whitespace();
    let number = words.find(|it| *it == word).and_then(|_| words.next());
    let number = number.and_then(|number| number.parse().ok());
    number.with_context(|| format!("memcaslap shows no {word} in: {text}"))
}

/// A file with the lengths of keys and values and the share of gets, as `memcaslap` reads it.
struct Lengths(PathBuf);

impl Lengths {
    fn write() -> anyhow::Result<Self> {
        let name = format!("dunlin-memcaslap-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let text = format!(
            "key\n{KEY} {KEY} 1\nvalue\n{VALUE} {VALUE} 1\ncmd\n0 {:.2}\n1 {GETS:.2}\n",
            1.0 - GETS
        );
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Lengths {
    fn drop(&mut self) {
        // If this fails, the file stays in the folder for temporary files, which the system
        // empties.
        let _ = std::fs::remove_file(&self.0);
    }
}
