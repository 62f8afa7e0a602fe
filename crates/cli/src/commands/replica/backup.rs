//! `dunlin replica backup` and `restore`: the items of a stopped replica in a file, and directories
//! of a new cluster that begins with them.

use std::path::PathBuf;

use anyhow::Context;
use dunlin::replica::Backup;
use serde_json::json;

use crate::commands::random;
use crate::say::print;

const EXAMPLES: &str = "\
A cluster continues while one of its replicas is stopped for a backup:
  dunlin replica backup items.backup --disk data

A cluster that has lost its majority for good: take the backup from the survivor with the longest
log (`dunlin replica status`), copy it to three machines, and run on each:
  dunlin replica restore items.backup --disk new-data
  dunlin replica serve --listen 10.0.0.1:7101 --disk new-data
Then the three make a new cluster:
  dunlin replica bootstrap 10.0.0.1:7101 10.0.0.2:7101 10.0.0.3:7101

The new cluster has all writes whose entries the survivor had. Writes that the lost majority had
answered, but the survivor had not received, are lost. Never start replicas of the old cluster
again.

Exit codes: 0, it is done; 1, the directory or the file cannot be used; 2, the usage is wrong.";

/// The arguments of `dunlin replica backup`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct BackupArgs {
    /// The file, which must not exist
    file: PathBuf,
    /// The directory of a stopped replica
    #[arg(long, value_name = "DIR")]
    disk: PathBuf,
    /// Prints a JSON object
    #[arg(long)]
    json: bool,
}

/// The arguments of `dunlin replica restore`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RestoreArgs {
    /// The file of a backup
    file: PathBuf,
    /// The directory of the new replica, which is made if it does not exist
    #[arg(long, value_name = "DIR")]
    disk: PathBuf,
    /// Prints a JSON object
    #[arg(long)]
    json: bool,
}

/// Writes a backup.
///
/// # Errors
/// The directory cannot be used, or the file cannot be written.
pub(super) fn backup(args: &BackupArgs) -> anyhow::Result<()> {
    let backup = Backup::of_directory(&args.disk)?;
    let bytes = backup.to_bytes();
    let written = write(&args.file, &bytes);
    written.with_context(|| args.file.display().to_string())?;
    let (keys, entry) = (backup.keys(), backup.applied());
    match args.json {
        true => {
            let line = json!({ "keys": keys, "entry": entry, "bytes": bytes.len() });
            print(&format!("{line}\n"))
        }
        false => print(&format!(
            "{keys} keys after entry {entry}, {} bytes\n",
            bytes.len()
        )),
    }
}

/// Writes a file that does not exist yet, and syncs it.
fn write(path: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::File::create_new(path)?;
    std::io::Write::write_all(&mut file, bytes)?;
    file.sync_all()
}

/// Makes a directory from a backup.
///
/// # Errors
/// The file is not a backup, or the directory is not empty.
pub(super) fn restore(args: &RestoreArgs) -> anyhow::Result<()> {
    let bytes = std::fs::read(&args.file).with_context(|| args.file.display().to_string())?;
    let backup = Backup::decode(&bytes).with_context(|| args.file.display().to_string())?;
    let [word, _] = random::words()?;
    let id = word.max(1);
    backup.restore(&args.disk, id)?;
    let (id, keys) = (format!("{id:016x}"), backup.keys());
    match args.json {
        true => print(&format!("{}\n", json!({ "id": id, "keys": keys }))),
        false => print(&format!(
            "replica {id} with {keys} keys; once all are restored and serve, `dunlin replica \
             bootstrap` makes a cluster of them\n"
        )),
    }
}
