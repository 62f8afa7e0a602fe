//! The commands that use an index.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use dunlin::Settings;
use dunlin::index::{Connection, Direction, Error, MAX_LIMIT, Range, Start, Total, snapshot};
use dunlin::settings::Configurable;
use serde_json::json;

use crate::commands::echo::{EndpointArgs, over, span};
use crate::commands::form::Form;
use crate::commands::target::{bind_ip, resolve};
use crate::misuse::Misuse;
use crate::say::{print, print_bytes};

const EXAMPLES: &str = "\
Examples:
  dunlin index put name dunlin
  dunlin index get name
  dunlin index delete name
  dunlin index scan --from a --to b              keys from `a` on, below `b`, with their values
  dunlin index scan --backward --limit 5         the last five
  dunlin index scan --after name                 goes on after a key
  dunlin index scan --hex --after 6e616d65ff     keys and values that need not be text
  dunlin index count --from 'user:' --to 'user;'
  dunlin index sum --limit 128                   of the values' first eight bytes, little endian
  dunlin index dump items.index
  dunlin index load items.index

Keys are ordered by their bytes. A scan shows 100 items unless --limit says otherwise. If more items
follow, it says so on the standard error, with the option with which it goes on; with --json, the
field `more` of the last object is true, and its key is the one to go on after.

Exit codes: 0, it is done; 1, there is no such item, the server refuses, or no server answers;
2, an option or the usage is wrong.";

/// Items of one request of a dump.
const PART: u32 = 10_000;

/// A command that uses a server.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Shows the value of a key
    #[command(after_help = EXAMPLES)]
    Get(KeyArgs),
    /// Writes an item
    #[command(after_help = EXAMPLES)]
    Put(PutArgs),
    /// Deletes an item
    #[command(after_help = EXAMPLES)]
    Delete(KeyArgs),
    /// Shows the items of a range
    #[command(after_help = EXAMPLES)]
    Scan(ScanArgs),
    /// Counts the items of a range
    #[command(after_help = EXAMPLES)]
    Count(TotalArgs),
    /// Adds up the values of a range
    #[command(after_help = EXAMPLES)]
    Sum(TotalArgs),
    /// Writes the items of a snapshot to the server
    #[command(after_help = EXAMPLES)]
    Load(FileArgs),
    /// Writes all items to a snapshot
    #[command(after_help = EXAMPLES)]
    Dump(FileArgs),
}

/// The server, and how to reach it.
#[derive(Debug, clap::Args)]
pub(super) struct ServerArgs {
    /// The address of the server's nexus
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:31850")]
    server: String,
    /// How long to wait for the server and its answer
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = span)]
    timeout: Duration,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct KeyArgs {
    key: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct PutArgs {
    key: String,
    #[arg(allow_negative_numbers = true)]
    value: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct RangeArgs {
    /// The first key
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// The key after which the range begins
    #[arg(long, value_name = "KEY", conflicts_with = "from")]
    after: Option<String>,
    /// The key at which the range ends; it does not belong to the range
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ScanArgs {
    #[command(flatten)]
    range: RangeArgs,
    /// From the end to the start
    #[arg(long)]
    backward: bool,
    /// The most items; if more follow, the command says so on the standard error
    #[arg(long, value_name = "N", default_value = "100",
          value_parser = clap::value_parser!(u32).range(1..=MAX_LIMIT as i64))]
    limit: u32,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct TotalArgs {
    #[command(flatten)]
    range: RangeArgs,
    /// The most items; without it, all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct FileArgs {
    #[arg(value_name = "FILE")]
    path: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

/// Runs a command.
///
/// # Errors
/// The operation failed, or an option is wrong.
pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    let server = command.server();
    let settings = server.endpoint.settings()?;
    over!(
        server.endpoint.transport,
        run_over(command, server, &settings)
    )
}

impl Command {
    const fn server(&self) -> &ServerArgs {
        match self {
            Self::Get(args) | Self::Delete(args) => &args.server,
            Self::Put(args) => &args.server,
            Self::Scan(args) => &args.server,
            Self::Count(args) | Self::Sum(args) => &args.server,
            Self::Load(args) | Self::Dump(args) => &args.server,
        }
    }
}

/// A range that owns its keys.
struct Bounds {
    from: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
}

impl RangeArgs {
    fn bounds(&self, form: Form) -> anyhow::Result<Bounds> {
        let key = |text: &Option<String>| text.as_ref().map(|text| form.read(text)).transpose();
        Ok(Bounds {
            from: key(&self.from)?,
            after: key(&self.after)?,
            to: key(&self.to)?,
        })
    }
}

impl Bounds {
    fn range(&self) -> anyhow::Result<Range<'_>> {
        let range = Range {
            start: match (&self.from, &self.after) {
                (Some(key), _) => Start::At(key),
                (None, Some(key)) => Start::After(key),
                (None, None) => Start::First,
            },
            end: self.to.as_deref(),
        };
        match range.is_valid() {
            true => Ok(range),
            false => Err(Misuse("--to is below the start of the range".to_owned()).into()),
        }
    }
}

fn run_over<T: Configurable>(
    command: &Command,
    server: &ServerArgs,
    settings: &Settings,
) -> anyhow::Result<()> {
    let address = resolve(&server.server)?;
    // A client listens at a port that the system chooses.
    let nexus = settings.nexus().bind((bind_ip(address.ip()), 0))?;
    let endpoint = settings.endpoint::<T>(&nexus);
    let mut index = Connection::open(endpoint, address, server.timeout)?;
    let format = Format {
        form: server.form,
        json: server.endpoint.json,
    };
    operate(command, &mut index, format).map_err(|error| advise(error, server))
}

/// Adds advice to an error, if the user can do something about it.
fn advise(error: anyhow::Error, server: &ServerArgs) -> anyhow::Error {
    let at = &server.server;
    match error.downcast_ref::<Error>() {
        Some(Error::Unavailable) => anyhow!(
            "no server answers at {at} over {}; start one with `dunlin index serve --listen {at}`, \
             or wait longer with --timeout",
            server.endpoint.transport.name()
        ),
        Some(Error::DeadlinePassed) => error.context("wait longer with --timeout"),
        Some(Error::Incompatible) => error.context(format!("see which program listens at {at}")),
        _ => error,
    }
}

/// The format of keys on the command line and of the output.
#[derive(Clone, Copy)]
struct Format {
    form: Form,
    json: bool,
}

fn operate<T: Configurable>(
    command: &Command,
    index: &mut Connection<T>,
    format: Format,
) -> anyhow::Result<()> {
    let (form, json) = (format.form, format.json);
    match command {
        Command::Get(args) => {
            let key = form.read(&args.key)?;
            match index.get(&key)? {
                Some(value) => show(&key, &value, format, Listing::Alone),
                None => Err(anyhow!("there is no item with the key `{}`", args.key)),
            }
        }
        Command::Put(args) => {
            index.put(&form.read(&args.key)?, args.value.as_bytes())?;
            done(json)
        }
        Command::Delete(args) => match index.delete(&form.read(&args.key)?)? {
            true => done(json),
            false => Err(anyhow!("there is no item with the key `{}`", args.key)),
        },
        Command::Scan(args) => scan(args, index, format),
        Command::Count(args) => number("count", total(args, index, form)?.items, json),
        Command::Sum(args) => number("sum", total(args, index, form)?.sum, json),
        Command::Load(args) => load(args, index, json),
        Command::Dump(args) => dump(args, index, json),
    }
}

fn total<T: Configurable>(
    args: &TotalArgs,
    index: &mut Connection<T>,
    form: Form,
) -> anyhow::Result<Total> {
    let bounds = args.range.bounds(form)?;
    Ok(index.total(bounds.range()?, args.limit.unwrap_or(u32::MAX))?)
}

fn scan<T: Configurable>(
    args: &ScanArgs,
    index: &mut Connection<T>,
    format: Format,
) -> anyhow::Result<()> {
    let direction = match args.backward {
        true => Direction::Backward,
        false => Direction::Forward,
    };
    let bounds = args.range.bounds(format.form)?;
    let (mut shown, mut last) = (Ok(()), None::<[Vec<u8>; 2]>);
    let scanned = index.scan(bounds.range()?, direction, args.limit, |key, value| {
        let before = last.replace([key, value].map(<[u8]>::to_vec));
        if let Some([key, value]) = before.filter(|_| shown.is_ok()) {
            shown = show(&key, &value, format, Listing::Listed);
        }
    });
    shown?;
    let more = matches!(scanned, Ok(Some(_)));
    if let Some([key, value]) = last {
        let listing = if more {
            Listing::BeforeMore
        } else {
            Listing::Listed
        };
        show(&key, &value, format, listing)?;
        if more {
            // A scan from the end goes on before a key.
            let option = if args.backward { "--to" } else { "--after" };
            format.form.note_more(option, &key);
        }
    }
    scanned?;
    Ok(())
}

/// Writes all items to a file, part after part.
fn dump<T: Configurable>(
    args: &FileArgs,
    index: &mut Connection<T>,
    json: bool,
) -> anyhow::Result<()> {
    let count = snapshot::write_file(&args.path, |writer| -> anyhow::Result<()> {
        let mut last: Option<Vec<u8>> = None;
        loop {
            let range = match &last {
                Some(last) => Range::ALL.after(last, Direction::Forward),
                None => Range::ALL,
            };
            let mut written: io::Result<()> = Ok(());
            last = index.scan(range, Direction::Forward, PART, |key, value| {
                if written.is_ok() {
                    written = writer.add(key, value);
                }
            })?;
            written?;
            if last.is_none() {
                return Ok(());
            }
        }
    });
    let path = args.path.display();
    number("items", count.with_context(|| path.to_string())?, json)
}

fn load<T: Configurable>(
    args: &FileArgs,
    index: &mut Connection<T>,
    json: bool,
) -> anyhow::Result<()> {
    let mut failed = None;
    let count = snapshot::read_file(&args.path, |key, value| {
        if failed.is_none() {
            failed = index.put(key, value).err();
        }
    });
    let path = args.path.display();
    let count = count.with_context(|| path.to_string())?;
    match failed {
        Some(error) => Err(anyhow!(error)),
        None => number("items", count, json),
    }
}

/// Where an item is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// Alone, without its key.
    Alone,
    Listed,
    /// As the last one that the limit permits, although more items follow.
    BeforeMore,
}

fn show(
    key: &[u8],
    value: &[u8],
    Format { form, json }: Format,
    listing: Listing,
) -> anyhow::Result<()> {
    if json {
        let mut object = json!({});
        form.add(&mut object, "key", key);
        form.add(&mut object, "value", value);
        if listing == Listing::BeforeMore {
            object["more"] = true.into();
        }
        return print(&format!("{object}\n"));
    }
    let mut bytes = Vec::new();
    if listing != Listing::Alone {
        bytes.extend_from_slice(&form.show(key));
        bytes.push(b'\t');
    }
    bytes.extend_from_slice(&form.show(value));
    bytes.push(b'\n');
    print_bytes(&bytes)
}

fn done(json: bool) -> anyhow::Result<()> {
    match json {
        true => print(&format!("{}\n", json!({ "done": true }))),
        false => Ok(()),
    }
}

fn number(name: &str, number: u64, json: bool) -> anyhow::Result<()> {
    match json {
        true => print(&format!("{}\n", json!({ name: number }))),
        false => print(&format!("{number}\n")),
    }
}
