//! The commands that use a cluster: one operation each.

use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, anyhow};
use dunlin::Settings;
use dunlin::replica::{
    ClientOptions, Compare, Connection, Error, Event, EventKind, Found, MAX_ITEMS, Write,
};
use dunlin::settings::Configurable;
use harness::signal;
use serde_json::{Value, json};

use crate::commands::echo::{EndpointArgs, over, span};
use crate::commands::target::{bind_ip, resolve};
use crate::say::{print, print_bytes};

const EXAMPLES: &str = "\
Examples:
  dunlin replica get name                     from a cluster of one replica, at 127.0.0.1:31850
  dunlin replica put name dunlin --cluster 10.0.0.1:7101,10.0.0.2:7101,10.0.0.3:7101
  dunlin replica put page - < page.html       the value from the standard input
  dunlin replica get name --json              with its version
  dunlin replica cas name 12 other            only if the item still has version 12
  dunlin replica cas lock 0 me                only if the key has no item
  dunlin replica put lock me --for 10s        goes after ten seconds
  dunlin replica list user/ --limit 10        keys that begin with user/, with versions and values
  dunlin replica list user/ --after user/7    those after user/7
  dunlin replica transact --if a=7 --if b=0 --delete a --put b=dunlin
                                              all writes, if all keys have these versions
  dunlin replica watch user/                  changes of these keys from now on, until Ctrl-C
  dunlin replica watch user/ --from 12        those by log entries from 12 on
  dunlin replica delete name

A write that fails has not happened, unless its message says that it may have.

The time of --for is the log's: it passes while the cluster has a leader, so an item may stay
longer, but never goes early.

Exit codes: 0, it is done; 1, there is no such item, it has another version, or no leader answers;
2, an option or the usage is wrong.";

/// A command that uses a cluster.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Shows the value of a key
    #[command(after_help = EXAMPLES)]
    Get(KeyArgs),
    /// Writes a key
    #[command(after_help = EXAMPLES)]
    Put(PutArgs),
    /// Removes a key
    #[command(after_help = EXAMPLES)]
    Delete(KeyArgs),
    /// Writes a key, if its item still has the given version
    #[command(after_help = EXAMPLES)]
    Cas(CasArgs),
    /// Shows the items whose keys begin with a prefix, in the order of their keys
    #[command(after_help = EXAMPLES)]
    List(ListArgs),
    /// Makes several writes together, if all keys have the given versions
    #[command(after_help = EXAMPLES)]
    Transact(TransactArgs),
    /// Shows changes of the keys that begin with a prefix, until Ctrl-C
    #[command(after_help = EXAMPLES)]
    Watch(WatchArgs),
}

/// The cluster, and how to reach it.
#[derive(Debug, clap::Args)]
pub(super) struct ClusterArgs {
    /// Addresses of its replicas; a few are enough if the leader is among them
    #[arg(
        long,
        value_name = "HOST:PORT,…",
        default_value = "127.0.0.1:31850",
        value_delimiter = ','
    )]
    cluster: Vec<String>,
    /// How long to wait for a leader and its answer
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = span)]
    timeout: Duration,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct KeyArgs {
    key: String,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct PutArgs {
    key: String,
    /// The value; `-` reads it from the standard input
    #[arg(allow_negative_numbers = true)]
    value: String,
    /// The time after which the item goes; without it, the item stays
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    lifetime: Option<Duration>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// The beginning of the keys; without it, all keys
    #[arg(default_value = "")]
    prefix: String,
    /// Begin after this key
    #[arg(long, value_name = "KEY", default_value = "")]
    after: String,
    /// The most items
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u32,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct WatchArgs {
    /// The beginning of the keys; without it, all keys
    #[arg(default_value = "")]
    prefix: String,
    /// The index of the first log entry whose changes are shown: one more than the version of the
    /// last known change. Without it, shows changes from now on
    #[arg(long, value_name = "INDEX", default_value_t = 0)]
    from: u64,
    /// End after this number of changes
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct TransactArgs {
    /// A key and the version that its item must have; 0: there must be none. Can be repeated
    #[arg(long = "if", value_name = "KEY=VERSION", value_parser = versioned)]
    compares: Vec<(String, u64)>,
    /// A key to write, and its value. Can be repeated
    #[arg(long = "put", value_name = "KEY=VALUE", value_parser = valued)]
    puts: Vec<(String, String)>,
    /// A key to remove. Can be repeated
    #[arg(long = "delete", value_name = "KEY")]
    deletes: Vec<String>,
    /// The time after which the written items go; without it, they stay
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    lifetime: Option<Duration>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct CasArgs {
    key: String,
    /// The version that the item must have; 0: there must be none
    version: u64,
    /// The value; `-` reads it from the standard input
    #[arg(allow_negative_numbers = true)]
    value: String,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs a command.
///
/// # Errors
/// The operation failed, or an option is wrong.
pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    let cluster = command.cluster();
    let settings = cluster.endpoint.settings()?;
    over!(
        cluster.endpoint.transport,
        run_over(command, cluster, &settings)
    )
}

impl Command {
    const fn cluster(&self) -> &ClusterArgs {
        match self {
            Self::Get(args) | Self::Delete(args) => &args.cluster,
            Self::Put(args) => &args.cluster,
            Self::Cas(args) => &args.cluster,
            Self::List(args) => &args.cluster,
            Self::Transact(args) => &args.cluster,
            Self::Watch(args) => &args.cluster,
        }
    }
}

/// Reads `KEY=VALUE`. A key may have a `=`, which a value then may not.
fn valued(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err("a key and a value, as KEY=VALUE".to_owned()),
    }
}

/// Reads `KEY=VERSION`.
fn versioned(text: &str) -> Result<(String, u64), String> {
    let (key, version) = valued(text)?;
    let version = version.parse();
    let version = version.map_err(|_| "a version is a number; 0: there is no item".to_owned())?;
    Ok((key, version))
}

fn run_over<T: Configurable>(
    command: &Command,
    cluster: &ClusterArgs,
    settings: &Settings,
) -> anyhow::Result<()> {
    let mut connection = connect::<T>(cluster, settings)?;
    operate(command, &mut connection, cluster.endpoint.json)
}

fn connect<T: Configurable>(
    cluster: &ClusterArgs,
    settings: &Settings,
) -> anyhow::Result<Connection<T>> {
    let mut addresses = Vec::new();
    for address in &cluster.cluster {
        addresses.push(resolve(address)?);
    }
    let first = addresses
        .first()
        .context("--cluster: an address is missing")?;
    // A client listens at a port that the system chooses.
    let nexus = settings
        .nexus()
        .bind(SocketAddr::new(bind_ip(first.ip()), 0))?;
    let options = ClientOptions {
        deadline: cluster.timeout.into(),
        ..ClientOptions::DEFAULT
    };
    let endpoint = settings.endpoint::<T>(&nexus);
    // As they were given: so do the replicas name each other.
    let addresses = cluster.cluster.iter().cloned();
    let connect = settings.connect_options();
    Ok(Connection::open_with(
        endpoint, addresses, options, connect,
    )?)
}

fn operate<T: Configurable>(
    command: &Command,
    connection: &mut Connection<T>,
    json: bool,
) -> anyhow::Result<()> {
    match command {
        Command::Get(args) => match connection.get(args.key.as_bytes())? {
            Some((version, value)) if json => {
                let value = String::from_utf8_lossy(&value);
                line(&json!({ "version": version, "value": value }))
            }
            Some((_, mut value)) => {
                value.push(b'\n');
                print_bytes(&value)
            }
            None => Err(anyhow!("there is no item with the key `{}`", args.key)),
        },
        Command::Put(args) => {
            let (key, value) = (args.key.as_bytes(), value(&args.value)?);
            let version = match args.lifetime {
                Some(time) => connection.put_for(key, &value, time)?,
                None => connection.put(key, &value)?,
            };
            done(json, version)
        }
        Command::List(args) => list(args, connection, json),
        Command::Transact(args) => transact(args, connection, json),
        Command::Watch(args) => watch(args, connection, json),
        Command::Delete(args) => match connection.delete(args.key.as_bytes())? {
            0 => Err(anyhow!("there is no item with the key `{}`", args.key)),
            version => done(json, version),
        },
        Command::Cas(args) => {
            let (key, value) = (args.key.as_bytes(), value(&args.value)?);
            match connection.compare_and_set(key, args.version, &value)? {
                Ok(version) => done(json, version),
                Err(0) => Err(anyhow!("there is no item with the key `{}`", args.key)),
                Err(version) => Err(anyhow!("`{}` has the version {version}", args.key)),
            }
        }
    }
}

/// Shows items in pages, until the limit is reached or there are no more.
fn list<T: Configurable>(
    args: &ListArgs,
    connection: &mut Connection<T>,
    json: bool,
) -> anyhow::Result<()> {
    let (mut after, mut left) = (args.after.clone().into_bytes(), args.limit);
    while left > 0 {
        let most = left.min(MAX_ITEMS);
        let (items, more) = connection.range(args.prefix.as_bytes(), &after, most)?;
        for item in &items {
            show(item, json)?;
        }
        left -= u32::try_from(items.len())?.min(left);
        match items.into_iter().next_back() {
            Some(last) if more => after = last.key,
            _ => break,
        }
    }
    Ok(())
}

fn show(item: &Found, json: bool) -> anyhow::Result<()> {
    let [key, value] = [&item.key, &item.value].map(|it| String::from_utf8_lossy(it));
    if json {
        return line(&json!({ "key": key, "version": item.version, "value": value }));
    }
    print(&format!("{key}\t{}\t{value}\n", item.version))
}

/// Shows changes until a signal comes, or until there were as many as the user wants.
fn watch<T: Configurable>(
    args: &WatchArgs,
    connection: &mut Connection<T>,
    json: bool,
) -> anyhow::Result<()> {
    signal::watch()?;
    let (mut from, mut left) = (args.from, args.count.unwrap_or(u64::MAX));
    while left > 0 && signal::check().is_ok() {
        let (events, next) = match connection.watch(args.prefix.as_bytes(), from) {
            Ok(Ok(watched)) => watched,
            Ok(Err(first)) => {
                return Err(anyhow!(
                    "the cluster has forgotten changes from {from} on; it knows those from {first} \
                     on, and `dunlin replica list` shows what the earlier ones have left"
                ));
            }
            // The next leader goes on.
            Err(Error::Unavailable) if from > 0 => continue,
            Err(error) => return Err(error.into()),
        };
        for event in events
            .iter()
            .take(usize::try_from(left).unwrap_or(usize::MAX))
        {
            show_event(event, json)?;
            left -= 1;
        }
        from = next;
    }
    Ok(())
}

fn show_event(event: &Event, json: bool) -> anyhow::Result<()> {
    let key = String::from_utf8_lossy(&event.key);
    let (kind, value) = match &event.kind {
        EventKind::Put(value) => ("put", Some(String::from_utf8_lossy(value))),
        EventKind::Deleted => ("deleted", None),
        EventKind::Expired => ("expired", None),
    };
    if json {
        let object = json!({ "index": event.index, "key": key, "change": kind, "value": value });
        return line(&object);
    }
    let value = value.unwrap_or_default();
    print(&format!("{key}\t{}\t{kind}\t{value}\n", event.index))
}

fn transact<T: Configurable>(
    args: &TransactArgs,
    connection: &mut Connection<T>,
    json: bool,
) -> anyhow::Result<()> {
    let compares = args.compares.iter().map(|(key, version)| Compare {
        key: key.as_bytes(),
        version: *version,
    });
    let compares: Vec<Compare<'_>> = compares.collect();
    let lifetime = args.lifetime.map_or(0, |time| time.as_millis());
    let lifetime = u64::try_from(lifetime)?;
    let puts = args.puts.iter().map(|(key, value)| Write::Put {
        key: key.as_bytes(),
        value: value.as_bytes(),
        lifetime,
    });
    let deletes = args.deletes.iter().map(|key| Write::Delete {
        key: key.as_bytes(),
    });
    let writes: Vec<Write<'_>> = puts.chain(deletes).collect();
    match connection.transact(&compares, &writes)? {
        Ok(version) => done(json, version),
        Err(place) => {
            let key = usize::try_from(place)
                .ok()
                .and_then(|it| args.compares.get(it));
            let key = key.map_or("?", |(key, _)| key);
            Err(anyhow!("nothing is written: `{key}` has another version"))
        }
    }
}

fn value(text: &str) -> anyhow::Result<Vec<u8>> {
    let mut value = Vec::new();
    match text {
        "-" => {
            std::io::stdin().lock().read_to_end(&mut value)?;
        }
        text => value.extend_from_slice(text.as_bytes()),
    }
    Ok(value)
}

fn done(json: bool, version: u64) -> anyhow::Result<()> {
    match json {
        true => line(&json!({ "version": version })),
        false => Ok(()),
    }
}

fn line(value: &Value) -> anyhow::Result<()> {
    print(&format!("{value}\n"))
}
