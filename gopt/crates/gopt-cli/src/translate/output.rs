//! Writes all of the output or nothing. Called by `translate.rs`.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};

pub(super) fn to_stdout(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}

/// Replaces an ordinary file as a whole, or writes to a pipe or a device.
pub(super) fn to_file(input: &Path, path: &Path, text: &str) -> anyhow::Result<()> {
    let name = path.display();
    if let (Ok(from), Ok(to)) = (fs::canonicalize(input), fs::canonicalize(path)) {
        if from == to {
            bail!("{name} is the input; it would be lost");
        }
        if !to.is_file() {
            return fs::write(path, text).with_context(|| format!("cannot write {name}"));
        }
        // If the path is a link, the file that it names is replaced, and the link stays.
        return replace(&to, text).with_context(|| format!("cannot write {name}"));
    }
    replace(path, text).with_context(|| format!("cannot write {name}"))
}

fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let file = path.file_name().context("this is not the name of a file")?;
    let mut beside = std::ffi::OsString::from(".");
    beside.push(file);
    beside.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(beside);
    let written = write_whole(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        drop(fs::remove_file(&beside));
    }
    written.map_err(Into::into)
}

fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
