//! `dunlin kv dump`: writes all items of a server to a file, with a mark after each scan, so that
//! an interrupted dump can resume from its last mark.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use dunlin::kv::dump::{Item, MAX_LINE, Mark, Reader, Sum};
use dunlin::kv::{Connections, Error, Figures, ServerId};
use dunlin::settings::Configurable;
use harness::progress::Progress;
use harness::signal;
use serde_json::json;

use super::client::{line, now};
use super::server::ServerArgs;
use crate::misuse::Misuse;
use crate::say::print;

/// The arguments of `dunlin kv dump`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The file; it must not exist, unless --resume is given
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Resumes an interrupted dump
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}

/// Keys whose items are read and written at once. A scan may return a thousand keys. A value has up
/// to 1 MiB, and takes up to four times as much in the file.
const AT_ONCE: usize = 64;

/// The number of left-out items whose keys the command prints.
const NAMED: u64 = 10;

/// A dump that is being written.
struct Dump {
    out: BufWriter<File>,
    sum: Sum,
    at: Mark,
}

/// A file that was opened to resume its dump.
enum Reopened {
    Begun(Dump),
    /// It has all items, except for this number of items that are left out.
    Complete(u64),
}

/// Writes the file.
///
/// # Errors
/// The server or the file system refuses, or a signal has arrived.
pub(super) fn run<T: Configurable>(
    args: &Args,
    kv: &mut Connections<T>,
    is_json: bool,
) -> anyhow::Result<()> {
    signal::watch()?;
    let [server] = kv.servers()[..] else {
        let text = "--server: a dump has the items of one server; dump each of them by itself";
        return Err(Misuse(text.to_owned()).into());
    };
    let map = kv.map(server)?;
    let name = args.path.display().to_string();
    let opened = match args.resume {
        false => Dump::create(&args.path, map.tag()).map(Reopened::Begun),
        true => Dump::reopen(&args.path, map.tag()),
    };
    let mut dump = match opened.with_context(|| name.clone())? {
        Reopened::Begun(dump) => dump,
        Reopened::Complete(0) => return print(&format!("{name} is complete already\n")),
        Reopened::Complete(left_out) => {
            bail!("{name} is complete already; {left_out} items are left out")
        }
    };
    let all = kv
        .figures(server)?
        .iter()
        .fold(Figures::default(), |sum, it| sum.plus(*it));
    let progress = Progress::start(all.items, 1);
    progress.advance(dump.sum.items());
    while dump.at.partition < map.partitions() {
        let before = dump.sum.items();
        dump.write_next(server, kv).with_context(|| name.clone())?;
        progress.advance(dump.sum.items() - before);
        if signal::check().is_err() {
            dump.out.flush().with_context(|| name.clone())?;
            bail!(
                "{name} has {} items so far; `dunlin kv dump --resume {name}` continues it",
                dump.sum.items()
            );
        }
    }
    let (items, left_out) = (dump.sum.items(), dump.at.left_out);
    dump.end().with_context(|| name.clone())?;
    if left_out > 0 {
        bail!("{name} has {items} items; {left_out} are left out");
    }
    match is_json {
        true => line(&json!({ "file": name, "items": items })),
        false => print(&format!("{items} items are in {name}\n")),
    }
}

impl Dump {
    fn create(path: &Path, tag: u32) -> anyhow::Result<Self> {
        let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("it exists; --resume continues a dump, and another name begins one")
            }
            other => other?,
        };
        let mut first = Vec::new();
        Mark::write_first(tag, &mut first);
        file.write_all(&first)?;
        Ok(Self::at(file, Sum::default(), Mark::start(tag)))
    }

    /// Opens a file to resume after its last mark, and cuts off the lines after that mark.
    fn reopen(path: &Path, tag: u32) -> anyhow::Result<Reopened> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let (mut lines, mut reader) = (Lines::new(BufReader::new(&file)), Reader::default());
        let (mut last, mut is_good) = (None, true);
        while is_good && let Some(line) = lines.next()? {
            is_good = reader.on_line(line).is_ok();
            // The end mark is not counted: a resumed dump writes a new one.
            let is_mark = line.starts_with(b"\t") && !reader.may_end();
            if is_good && is_mark && lines.is_whole {
                let at = reader.mark().or(reader.tag().map(Mark::start));
                last = at.map(|at| (lines.bytes, reader.sum(), at));
            }
        }
        let (end, sum, at) = last.ok_or_else(|| anyhow!("it is not a dump"))?;
        if is_good && reader.may_end() {
            return Ok(Reopened::Complete(reader.left_out()));
        }
        if at.tag != tag {
            bail!("the server has restarted since, and its items have changed; begin another dump");
        }
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        Ok(Reopened::Begun(Self::at(file, sum, at)))
    }

    fn at(file: File, sum: Sum, at: Mark) -> Self {
        let out = BufWriter::new(file);
        Self { out, sum, at }
    }

    /// Writes the items of the next scan, and a mark.
    fn write_next<T: Configurable>(
        &mut self,
        server: ServerId,
        kv: &mut Connections<T>,
    ) -> anyhow::Result<()> {
        let (keys, next) = kv.scan(server, self.at.partition, self.at.place)?;
        for keys in keys.chunks(AT_ONCE) {
            self.write_items(keys, kv)?;
        }
        // If the server has restarted, these keys may belong to another table, or gets may have
        // found nothing.
        if kv.map(server)?.tag() != self.at.tag {
            bail!("the server has restarted meanwhile; begin another dump");
        }
        self.at = match next {
            Some(place) => Mark { place, ..self.at },
            None => Mark {
                partition: self.at.partition + 1,
                place: 0,
                ..self.at
            },
        };
        let mut mark = Vec::new();
        self.at.write(self.sum, &mut mark);
        Ok(self.out.write_all(&mark)?)
    }

    /// Counts an item that cannot be read, and names the first ten.
    fn leave_out(&mut self, key: &[u8], why: &Error) {
        self.at.left_out += 1;
        if self.at.left_out <= NAMED {
            eprintln!(
                "dunlin: the key `{}` is left out: {why}",
                key.escape_ascii()
            );
        }
    }

    /// Writes the items of these keys.
    fn write_items<T: Configurable>(
        &mut self,
        keys: &[Vec<u8>],
        kv: &mut Connections<T>,
    ) -> anyhow::Result<()> {
        let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let items = kv.get_many(&asked)?;
        let mut bytes = Vec::new();
        // If a key has no item, the item has left the table since the scan.
        for (key, item) in keys.iter().zip(items) {
            let item = match item {
                Ok(item) => item,
                Err(error) => {
                    self.leave_out(key, &error);
                    continue;
                }
            };
            let Some(item) = item else { continue };
            let start = bytes.len();
            let expires = match item.lifetime {
                0 => 0,
                seconds => now() + u64::from(seconds),
            };
            let (value, flags) = (item.value, item.flags);
            Item {
                key: key.clone(),
                value,
                flags,
                expires,
            }
            .write(&mut bytes);
            self.sum.on_line(&bytes[start..bytes.len() - 1]);
        }
        Ok(self.out.write_all(&bytes)?)
    }

    fn end(mut self) -> std::io::Result<()> {
        let mut last = Vec::new();
        self.at.write_end(self.sum, &mut last);
        self.out.write_all(&last)?;
        self.out.into_inner()?.sync_all()
    }
}

/// The lines of a file, of limited length.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    /// Bytes up to the end of the last line.
    bytes: u64,
    /// The last line has ended with a line feed.
    is_whole: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
            bytes: 0,
            is_whole: true,
        }
    }

    /// The next line without its end. A line that is too long is cut, but stays longer than the
    /// limit, so that the reader refuses it.
    pub(super) fn next(&mut self) -> std::io::Result<Option<&[u8]>> {
        self.line.clear();
        let most = MAX_LINE as u64 + 2;
        let mut limited = std::io::Read::take(&mut self.input, most);
        let len = limited.read_until(b'\n', &mut self.line)?;
        self.bytes += len as u64;
        self.is_whole = self.line.last() == Some(&b'\n');
        if len as u64 == most && !self.is_whole {
            // Its rest is not a line of its own.
            self.bytes += self.input.skip_until(b'\n')? as u64;
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        Ok((len > 0).then_some(line))
    }
}
