//! `dunlin kv load`: writes the items of a file, or of a running memcached, to a server.
//!
//! A file is read twice. The first time, each line is checked and nothing is written, so a dump
//! that is truncated or changed is refused as a whole; in a list, bad lines are named and skipped.
//!
//! The list of a memcached has no stable order, so no place in it could be noted for later. With
//! `--skip-existing`, each item is added, and those that the server already has stay as they are.

use std::fmt::Display;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use dunlin::kv::dump::{Item, Reader};
use dunlin::kv::store::Verb;
use dunlin::kv::{Connections, Error, Store};
use dunlin::settings::Configurable;
use harness::progress::Progress;
use harness::signal;
use serde_json::json;

use super::client::{line, now};
use super::dump::Lines;
use super::server::ServerArgs;
use super::source::Source;
use crate::say::print;

/// The most bad lines or items that are named; further ones are only counted.
const NAMED: u64 = 10;

/// The marks of a dump. A list has none, so a file with one of them is a dump even if its first
/// line is damaged.
const MARKS: [&[u8]; 3] = [b"\tdunlin-kv-dump\t", b"\tmark\t", b"\tend\t"];

/// The arguments of `dunlin kv load`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file of `dunlin kv dump`, or lines with key, tab and value
    #[arg(value_name = "FILE", required_unless_present = "from")]
    path: Option<PathBuf>,
    /// Copies the items of the memcached that runs there
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "path")]
    from: Option<String>,
    /// A file with the line `name:password`, for a memcached that wants one (`-Y`)
    #[arg(long, value_name = "FILE", requires = "from")]
    from_auth: Option<PathBuf>,
    /// Resumes from this line of the file
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "from")]
    from_line: u64,
    /// Leaves the items as they are that the server already has; resumes a copy with --from
    #[arg(long)]
    skip_existing: bool,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}

/// Items so far.
#[derive(Clone, Copy, Default)]
struct Counts {
    loaded: u64,
    expired: u64,
    /// Items that the server already had.
    kept: u64,
    /// Bad lines, and items that the server can never have.
    bad: u64,
    /// Items that left memcached before they were read.
    gone: u64,
}

impl Counts {
    fn leave_out(&mut self, key: &[u8], why: impl Display) {
        self.bad += 1;
        if self.bad <= NAMED {
            eprintln!("dunlin: `{}`: {why}", key.escape_ascii());
        }
    }
}

/// Loads the items.
///
/// # Errors
/// The source cannot be read, the server refuses, lines are bad, or a signal has arrived.
pub(super) fn run<T: Configurable>(
    args: &Args,
    kv: &mut Connections<T>,
    is_json: bool,
) -> anyhow::Result<()> {
    signal::watch()?;
    let verb = match args.skip_existing {
        true => Verb::Add,
        false => Verb::Set,
    };
    let counts = match (&args.path, &args.from) {
        (Some(file), _) => load_file(file, args.from_line, verb, kv)?,
        (None, Some(from)) => {
            let login = args.from_auth.as_deref().map(read_login).transpose()?;
            copy((from, login.as_deref()), verb, kv).with_context(|| from.clone())?
        }
        (None, None) => bail!("a file or --from is needed"),
    };
    let Counts {
        loaded,
        expired,
        kept,
        bad,
        gone,
    } = counts;
    match is_json {
        true => line(&json!({
            "loaded": loaded, "expired": expired, "kept": kept, "bad": bad, "gone": gone,
        }))?,
        false => {
            let others = [
                (kept, "were there already"),
                (expired, "have expired"),
                (gone, "were gone"),
            ];
            let others: String = others
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!(", {count} {what}"))
                .collect();
            print(&format!("{loaded} items are loaded{others}\n"))?;
        }
    }
    match bad {
        0 => Ok(()),
        bad => Err(anyhow!("{bad} bad lines or items were left out")),
    }
}

fn load_file<T: Configurable>(
    path: &Path,
    from_line: u64,
    verb: Verb,
    kv: &mut Connections<T>,
) -> anyhow::Result<Counts> {
    let name = path.display().to_string();
    let (items, bad) = check(path).with_context(|| name.clone())?;
    let progress = Progress::start(items, 1);
    let mut lines = Lines::new(BufReader::new(File::open(path)?));
    let mut counts = Counts {
        bad,
        ..Counts::default()
    };
    let (mut number, mut reader) = (0, Reader::default());
    while let Some(line) = lines.next()? {
        number += 1;
        let Ok(Some(item)) = reader.on_line(line) else {
            continue;
        };
        progress.advance(1);
        if number < from_line {
            continue;
        }
        let go_on = || format!("{name}:{number}: --from-line {number} resumes here");
        if let Err(stopped) = signal::check() {
            // The program shows no error after a signal, because the user has sent it.
            eprintln!("dunlin: {}", go_on());
            return Err(stopped.into());
        }
        store(&item, verb, kv, &mut counts).with_context(go_on)?;
    }
    Ok(counts)
}

/// Reads a whole file. Returns the numbers of items and of bad lines, which it names.
fn check(path: &Path) -> anyhow::Result<(u64, u64)> {
    let mut lines = Lines::new(BufReader::new(File::open(path)?));
    let (mut reader, mut number, mut bad) = (Reader::default(), 0_u64, 0);
    while let Some(line) = lines.next()? {
        number += 1;
        let Err(error) = reader.on_line(line) else {
            continue;
        };
        let is_mark = MARKS.iter().any(|mark| line.starts_with(mark));
        if is_mark || reader.tag().is_some() {
            bail!("line {number}: {error}; the dump is damaged, and nothing was loaded");
        }
        bad += 1;
        if bad <= NAMED {
            eprintln!("dunlin: {}:{number}: {error}", path.display());
        }
    }
    if !reader.may_end() {
        bail!(
            "the dump is cut off after {} items, and nothing was loaded; \
             `dunlin kv dump --resume` completes it",
            reader.sum().items()
        );
    }
    if reader.left_out() > 0 {
        eprintln!(
            "dunlin: {}: the dump has left out {} items",
            path.display(),
            reader.left_out()
        );
    }
    Ok((reader.sum().items(), bad))
}

/// The first line of a file with names and passwords.
fn read_login(path: &Path) -> anyhow::Result<String> {
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(name)?;
    let login = text.lines().next().filter(|line| line.contains(':'));
    let login = login.ok_or_else(|| anyhow!("{}: line 1 is not `name:password`", name()))?;
    Ok(login.to_owned())
}

/// Copies the items of a memcached, as the user in `from` if it names one. If that ends too early,
/// says how to resume it.
fn copy<T: Configurable>(
    from: (&str, Option<&str>),
    verb: Verb,
    kv: &mut Connections<T>,
) -> anyhow::Result<Counts> {
    let mut counts = Counts::default();
    let copied = copy_items(from, verb, kv, &mut counts);
    if copied.is_err() && counts.loaded + counts.kept > 0 {
        // The program shows no error after a signal, because the user has sent it.
        eprintln!(
            "dunlin: {} items are loaded; `--skip-existing` loads those that the server lacks",
            counts.loaded
        );
    }
    copied.map(|()| counts)
}

fn copy_items<T: Configurable>(
    (from, login): (&str, Option<&str>),
    verb: Verb,
    kv: &mut Connections<T>,
    counts: &mut Counts,
) -> anyhow::Result<()> {
    let mut source = Source::open(from, login)?;
    let progress = Progress::start(source.items()?, 1);
    while let Some(read) = source.next_items()? {
        progress.advance(read.items.len() as u64);
        counts.gone += read.gone;
        for key in &read.nameless {
            counts.leave_out(key, "this memcached does not take the key in base64");
        }
        for item in &read.items {
            signal::check()?;
            store(item, verb, kv, counts)?;
        }
    }
    Ok(())
}

/// Writes an item, unless it has expired.
fn store<T: Configurable>(
    item: &Item,
    verb: Verb,
    kv: &mut Connections<T>,
    counts: &mut Counts,
) -> anyhow::Result<()> {
    let lifetime = match item.expires {
        0 => 0,
        at if at <= now() => {
            counts.expired += 1;
            return Ok(());
        }
        at => u32::try_from(at - now()).unwrap_or(u32::MAX),
    };
    let written = kv.store(&Store {
        verb,
        key: &item.key,
        value: &item.value,
        flags: item.flags,
        lifetime,
        if_version: None,
    });
    match written {
        Err(refused) if refused.error() == Error::Present => counts.kept += 1,
        // Such an item would stop the next attempt, too.
        Err(refused) if matches!(refused.error(), Error::TooLong | Error::BadKey) => {
            counts.leave_out(&item.key, refused);
        }
        written => {
            written.with_context(|| format!("`{}`", item.key.escape_ascii()))?;
            counts.loaded += 1;
        }
    }
    Ok(())
}
