//! The commands that use a server: one operation each.

use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use dunlin::Settings;
use dunlin::kv::store::{Delta, Verb};
use dunlin::kv::{Connections, Item, ServerError, Store};
use dunlin::settings::Configurable;
use serde_json::{Value, json};

use super::server::ServerArgs;
use super::{dump, load, shell, show};
use crate::commands::echo::over;
use crate::say::{print, print_bytes};

const EXAMPLES: &str = "\
Examples:
  dunlin kv get name                         its value; several keys: a line each, after the key
  dunlin kv get name --json | jq .version
  dunlin kv set name dunlin --ttl 60 --flags 7
  dunlin kv set page - < page.html           the value from the standard input
  dunlin kv add lock me --ttl 10             only if there is no item with this key
  dunlin kv cas name 1042 other              only if the item still has this version
  dunlin kv incr visits 5                    adds 5; --down subtracts
  dunlin kv touch name 3600
  dunlin kv delete name page
  dunlin kv stats --server 10.0.0.2:31850
  dunlin kv stats --hot                      the keys that are read most
  dunlin kv get name --server 10.0.0.1,10.0.0.2,10.0.0.3    keys spread over three servers
  dunlin kv flush --after 30
  dunlin kv dump items.txt                   all items; --resume continues an interrupted dump
  dunlin kv load items.txt                   such a file, or lines with key, tab and value
  dunlin kv load --from 127.0.0.1:11211      the items of a running memcached;
                                             --skip-existing resumes it after an interruption
  dunlin kv shell                            these commands, one per line, over one connection

A value that begins with a dash comes after `--`. A write that fails has not happened, unless its
message says that it may have.

Exit codes: 0, it is done; 1, there is no such item, the server refuses, or no server answers;
2, an option or the usage is wrong.";

/// A command that uses a server.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Shows the values of keys
    #[command(after_help = EXAMPLES)]
    Get(GetArgs),
    /// Writes an item
    #[command(after_help = EXAMPLES)]
    Set(WriteArgs),
    /// Writes an item, if there is none
    #[command(after_help = EXAMPLES)]
    Add(WriteArgs),
    /// Writes an item, if it still has the given version
    #[command(after_help = EXAMPLES)]
    Cas(CasArgs),
    /// Deletes items
    #[command(after_help = EXAMPLES)]
    Delete(DeleteArgs),
    /// Adds to a counter, or subtracts with --down
    #[command(after_help = EXAMPLES)]
    Incr(IncrArgs),
    /// Changes when an item expires
    #[command(after_help = EXAMPLES)]
    Touch(TouchArgs),
    /// Shows the figures of a server
    #[command(after_help = EXAMPLES)]
    Stats(StatsArgs),
    /// Forgets all items
    #[command(after_help = EXAMPLES)]
    Flush(FlushArgs),
    /// Writes all items to a file
    #[command(after_help = EXAMPLES)]
    Dump(dump::Args),
    /// Writes the items of a file, or of a running memcached, to the server
    #[command(after_help = EXAMPLES)]
    Load(load::Args),
    /// Reads these commands from the standard input, one per line, and runs them
    #[command(after_help = shell::EXAMPLES)]
    Shell(ServerArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct GetArgs {
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct WriteArgs {
    key: String,
    #[command(flatten)]
    item: ItemArgs,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct CasArgs {
    key: String,
    /// The version that the item must have; `get --json` shows it
    version: u64,
    #[command(flatten)]
    item: ItemArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// The content of a write.
#[derive(Debug, clap::Args)]
pub(super) struct ItemArgs {
    /// The value; `-` reads it from the standard input
    #[arg(allow_negative_numbers = true)]
    value: String,
    /// A number that is kept with the item
    #[arg(long, value_name = "N", default_value = "0")]
    flags: u32,
    /// Seconds until the item expires; 0: never
    #[arg(long, value_name = "SECONDS", default_value = "0")]
    ttl: u32,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeleteArgs {
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct IncrArgs {
    key: String,
    /// The amount to add or subtract
    #[arg(default_value = "1")]
    by: u64,
    /// Subtracts, but not below 0
    #[arg(long)]
    down: bool,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct TouchArgs {
    key: String,
    /// Seconds until the item expires; 0: never
    ttl: u32,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct StatsArgs {
    /// Shows the keys that clients read most instead, each with its share of the gets
    #[arg(long)]
    hot: bool,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct FlushArgs {
    /// Seconds from now on; items that are written until then are forgotten too
    #[arg(long, value_name = "SECONDS", default_value = "0")]
    after: u32,
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
            Self::Get(args) => &args.server,
            Self::Set(args) | Self::Add(args) => &args.server,
            Self::Cas(args) => &args.server,
            Self::Delete(args) => &args.server,
            Self::Incr(args) => &args.server,
            Self::Touch(args) => &args.server,
            Self::Stats(args) => &args.server,
            Self::Shell(args) => args,
            Self::Flush(args) => &args.server,
            Self::Dump(args) => &args.server,
            Self::Load(args) => &args.server,
        }
    }
}

fn run_over<T: Configurable>(
    command: &Command,
    server: &ServerArgs,
    settings: &Settings,
) -> anyhow::Result<()> {
    let mut kv = server.connect::<T>(settings)?;
    let json = server.endpoint.json;
    let mut run = |command: &Command| {
        let json = json || command.server().endpoint.json;
        if matches!(command, Command::Dump(_)) {
            server.forbid_misses()?;
        }
        operate(command, &mut kv, json).map_err(|error| server.advise(error))
    };
    match command {
        Command::Shell(_) => shell::run(run),
        one => run(one),
    }
}

fn operate<T: Configurable>(
    command: &Command,
    kv: &mut Connections<T>,
    json: bool,
) -> anyhow::Result<()> {
    match command {
        Command::Get(args) => get(kv, &args.keys, json),
        Command::Set(args) => store(kv, &args.key, &args.item, (Verb::Set, None), json),
        Command::Add(args) => store(kv, &args.key, &args.item, (Verb::Add, None), json),
        Command::Cas(args) => {
            let when = (Verb::Set, Some(args.version));
            store(kv, &args.key, &args.item, when, json)
        }
        Command::Delete(args) => {
            for key in &args.keys {
                kv.delete(key.as_bytes(), None)
                    .map_err(|why| of(key, why))?;
            }
            done(json)
        }
        Command::Incr(args) => {
            let delta = match args.down {
                true => Delta::Down(args.by),
                false => Delta::Up(args.by),
            };
            let counted = kv.count(args.key.as_bytes(), delta);
            let (number, version) = counted.map_err(|why| of(&args.key, why))?;
            match json {
                true => line(&json!({ "number": number, "version": version })),
                false => print(&format!("{number}\n")),
            }
        }
        Command::Touch(args) => {
            let touched = kv.touch(args.key.as_bytes(), args.ttl);
            touched.map_err(|why| of(&args.key, why))?;
            done(json)
        }
        Command::Stats(args) if args.hot => hot(kv, json),
        Command::Stats(_) => stats(kv, json),
        Command::Flush(args) => {
            kv.flush(args.after)?;
            done(json)
        }
        Command::Dump(args) => dump::run(args, kv, json),
        Command::Load(args) => load::run(args, kv, json),
        Command::Shell(_) => Err(anyhow!("this is a shell already")),
    }
}

/// An error, with its key.
fn of(key: &str, error: ServerError) -> anyhow::Error {
    anyhow!(error).context(format!("`{key}`"))
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.unwrap_or_default().as_secs()
}

fn done(json: bool) -> anyhow::Result<()> {
    match json {
        true => line(&json!({ "done": true })),
        false => Ok(()),
    }
}

/// Prints a line for machines.
pub(super) fn line(value: &Value) -> anyhow::Result<()> {
    print(&format!("{value}\n"))
}

/// Shows items. A key without an item, or whose item cannot be read, is an error, reported after
/// all items are shown.
fn get<T: Configurable>(
    kv: &mut Connections<T>,
    keys: &[String],
    json: bool,
) -> anyhow::Result<()> {
    let bytes: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    let items = kv.get_many(&bytes)?;
    let (mut missing, mut failed) = (Vec::new(), Vec::new());
    for (key, item) in keys.iter().zip(items) {
        match (json, &item) {
            (true, Ok(item)) => line(&show::item(key, item.as_ref()))?,
            (true, Err(why)) => line(&json!({ "key": key, "error": why.to_string() }))?,
            (false, Ok(Some(item))) => write_value(key, item, keys.len() > 1)?,
            (false, _) => {}
        }
        match item {
            Ok(Some(_)) => {}
            Ok(None) => missing.push(format!("`{key}`")),
            Err(why) => failed.push(format!("the key `{key}`: {why}")),
        }
    }
    if !missing.is_empty() {
        failed.push(format!(
            "there is no item with the key {}",
            missing.join(", ")
        ));
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(anyhow!("{}", failed.join("; "))),
    }
}

/// Writes a value as it is, and a line feed.
fn write_value(key: &str, item: &Item, with_key: bool) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    if with_key {
        bytes.extend_from_slice(key.as_bytes());
        bytes.push(b'\t');
    }
    bytes.extend_from_slice(&item.value);
    bytes.push(b'\n');
    print_bytes(&bytes)
}

fn store<T: Configurable>(
    kv: &mut Connections<T>,
    key: &str,
    item: &ItemArgs,
    (verb, if_version): (Verb, Option<u64>),
    json: bool,
) -> anyhow::Result<()> {
    let mut value = Vec::new();
    match item.value.as_str() {
        "-" => {
            std::io::stdin().lock().read_to_end(&mut value)?;
        }
        text => value.extend_from_slice(text.as_bytes()),
    }
    let written = kv.store(&Store {
        verb,
        key: key.as_bytes(),
        value: &value,
        flags: item.flags,
        lifetime: item.ttl,
        if_version,
    });
    let version = written.map_err(|why| of(key, why))?;
    match json {
        true => line(&json!({ "version": version })),
        false => Ok(()),
    }
}

/// Shows the keys that clients read most, of all servers.
fn hot<T: Configurable>(kv: &mut Connections<T>, json: bool) -> anyhow::Result<()> {
    let mut shown = 0;
    for server in kv.servers() {
        let name = kv.name(server);
        for (partition, hot) in kv.hot_keys(server)?.iter().enumerate() {
            shown += hot.keys.len();
            for (key, samples) in &hot.keys {
                let (key, share) = (key.escape_ascii().to_string(), hot.share(*samples));
                if json {
                    line(&json!({
                        "server": name, "partition": partition, "key": key, "share": share,
                    }))?;
                } else {
                    print(&format!("{:>5.1} %  {key}\n", 100.0 * share))?;
                }
            }
        }
    }
    if shown == 0 && !json {
        print("no key yet: the servers sample one get in 64\n")?;
    }
    Ok(())
}

/// Shows the figures of each server. A server that does not answer is an error, reported after all
/// others are shown.
fn stats<T: Configurable>(kv: &mut Connections<T>, json: bool) -> anyhow::Result<()> {
    let servers = kv.servers();
    let mut silent = Vec::new();
    for server in &servers {
        let name = kv.name(*server);
        match kv.figures(*server) {
            Ok(figures) if json => {
                for (partition, figures) in figures.iter().enumerate() {
                    let mut object = show::object(figures);
                    object["server"] = json!(name);
                    object["partition"] = json!(partition);
                    line(&object)?;
                }
            }
            Ok(figures) => {
                let title = match servers.len() {
                    1 => String::new(),
                    _ => format!("server {name}\n"),
                };
                print(&format!("{title}{}", show::table(&figures)))?;
            }
            Err(error) if servers.len() == 1 => return Err(error.into()),
            Err(error) => silent.push(error.to_string()),
        }
    }
    match silent.is_empty() {
        true => Ok(()),
        false => Err(anyhow!("{}", silent.join("; "))),
    }
}
