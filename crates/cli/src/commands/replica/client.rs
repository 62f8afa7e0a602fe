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
use crate::commands::form::Form;
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
  dunlin replica put lock me --for 10s        expires after ten seconds
  dunlin replica list user/ --limit 10        keys that begin with user/, with versions and values
  dunlin replica list --hex --after 757372ff  keys and values that need not be text
  dunlin replica transact --if a=7 --if b=0 --delete a --put b=dunlin
                                              all writes, if all keys have these versions
  dunlin replica watch user/                  changes of these keys from now on, until Ctrl-C
  dunlin replica watch user/ --from 12        changes by log entries from 12 on
  dunlin replica delete name

A write that fails has not happened, unless its message says that it may have.
`list` shows 1000 items unless --limit says otherwise. If more follow, it says on the standard error
how to go on; with --json, the field `more` of the last object is then true.
The time of --for passes only while the cluster has a leader, so an item may stay longer, but never
leaves early.

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
    form: Form,
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
    /// The time after which the item expires; without it, the item stays
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
    /// The most items; if more follow, the command says so on the standard error
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u32).range(1..))]
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
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
    /// The time after which the written items expire; without it, they stay
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

/// Reads `KEY=VALUE`, split at the last `=`: a key may contain one, a value may not.
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
    let format = Format {
        form: cluster.form,
        json: cluster.endpoint.json,
    };
    operate(command, &mut connection, format)
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
    // Addresses stay as they were given, because the replicas name each other in the same form.
    let addresses = cluster.cluster.iter().cloned();
    let connect = settings.connect_options();
    Ok(Connection::open_with(
        endpoint, addresses, options, connect,
    )?)
}

/// The format of keys on the command line and of the output.
#[derive(Clone, Copy)]
struct Format {
    form: Form,
    json: bool,
}

fn operate<T: Configurable>(
    command: &Command,
    connection: &mut Connection<T>,
    format: Format,
) -> anyhow::Result<()> {
    let (form, json) = (format.form, format.json);
    match command {
        Command::Get(args) => match connection.get(&form.read(&args.key)?)? {
            Some((version, value)) if json => {
                let mut object = json!({ "version": version });
                form.add(&mut object, "value", &value);
                line(&object)
            }
            Some((_, value)) => print_bytes(&[&form.show(&value)[..], b"\n"].concat()),
            None => Err(anyhow!("there is no item with the key `{}`", args.key)),
        },
        Command::Put(args) => {
            let (key, value) = (form.read(&args.key)?, value(&args.value)?);
            let version = match args.lifetime {
                Some(time) => connection.put_for(&key, &value, time)?,
                None => connection.put(&key, &value)?,
            };
            done(json, version)
        }
        Command::List(args) => list(args, connection, format),
        Command::Transact(args) => transact(args, connection, format),
        Command::Watch(args) => watch(args, connection, format),
        Command::Delete(args) => match connection.delete(&form.read(&args.key)?)? {
            0 => Err(anyhow!("there is no item with the key `{}`", args.key)),
            version => done(json, version),
        },
        Command::Cas(args) => {
            let (key, value) = (form.read(&args.key)?, value(&args.value)?);
            match connection.compare_and_set(&key, args.version, &value)? {
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
    format: Format,
) -> anyhow::Result<()> {
    let prefix = format.form.read(&args.prefix)?;
    let (mut after, mut left) = (format.form.read(&args.after)?, args.limit);
    loop {
        let (mut items, more) = connection.range(&prefix, &after, left.min(MAX_ITEMS))?;
        left -= u32::try_from(items.len())?.min(left);
        let Some(last) = items.pop() else {
            return Ok(());
        };
        items
            .iter()
            .try_for_each(|item| show(item, format, false))?;
        let is_cut = more && left == 0;
        show(&last, format, is_cut)?;
        if is_cut {
            format.form.note_more("--after", &last.key);
        }
        if !more || is_cut {
            return Ok(());
        }
        after = last.key;
    }
}

/// Shows an item; `more`, if it is the last one that the limit permits, and others follow.
fn show(item: &Found, Format { form, json }: Format, more: bool) -> anyhow::Result<()> {
    if json {
        let mut object = json!({ "version": item.version });
        form.add(&mut object, "key", &item.key);
        form.add(&mut object, "value", &item.value);
        if more {
            object["more"] = true.into();
        }
        return line(&object);
    }
    let version = item.version.to_string();
    print_words([
        &form.show(&item.key),
        version.as_bytes(),
        &form.show(&item.value),
    ])
}

/// Prints a line of words with tabs between them.
fn print_words<const N: usize>(words: [&[u8]; N]) -> anyhow::Result<()> {
    let mut bytes = words.join(&b'\t');
    bytes.push(b'\n');
    print_bytes(&bytes)
}

/// Shows changes until a signal arrives, or until it has shown as many as the user wants.
fn watch<T: Configurable>(
    args: &WatchArgs,
    connection: &mut Connection<T>,
    format: Format,
) -> anyhow::Result<()> {
    signal::watch()?;
    let prefix = format.form.read(&args.prefix)?;
    let (mut from, mut left) = (args.from, args.count.unwrap_or(u64::MAX));
    let mut is_gone = false;
    while left > 0 && signal::check().is_ok() {
        let watched = connection.watch(&prefix, from);
        // The watch continues with the next leader.
        let waits = from > 0 && matches!(watched, Err(Error::Unavailable));
        if waits != is_gone {
            is_gone = waits;
            eprintln!("dunlin: {}", news(is_gone, from));
        }
        let (events, next) = match watched {
            Err(_) if waits => continue,
            Ok(Ok(watched)) => watched,
            Ok(Err(first)) => {
                return Err(anyhow!(
                    "the cluster no longer has the changes from {from} on; it has the changes from \
                     {first} on, and `dunlin replica list` shows the result of the earlier ones"
                ));
            }
            Err(error) => return Err(error.into()),
        };
        for event in events
            .iter()
            .take(usize::try_from(left).unwrap_or(usize::MAX))
        {
            show_event(event, format)?;
            left -= 1;
        }
        from = next;
    }
    Ok(())
}

/// The line that reports that no leader answers (`is_gone`), or that a leader answers again.
fn news(is_gone: bool, from: u64) -> String {
    match is_gone {
        true => format!(
            "no leader answers; this command waits for one, and then goes on from entry {from}; \
             Ctrl-C ends it"
        ),
        false => "a leader answers again".to_owned(),
    }
}

fn show_event(event: &Event, Format { form, json }: Format) -> anyhow::Result<()> {
    let (kind, value) = match &event.kind {
        EventKind::Put(value) => ("put", Some(value)),
        EventKind::Deleted => ("deleted", None),
        EventKind::Expired => ("expired", None),
    };
    if json {
        let mut object = json!({ "index": event.index, "change": kind });
        form.add(&mut object, "key", &event.key);
        match value {
            Some(value) => form.add(&mut object, "value", value),
            None => object["value"] = Value::Null,
        }
        return line(&object);
    }
    let index = event.index.to_string();
    print_words([
        &form.show(&event.key),
        index.as_bytes(),
        kind.as_bytes(),
        &form.show(value.map_or(b"", |value| value)),
    ])
}

fn transact<T: Configurable>(
    args: &TransactArgs,
    connection: &mut Connection<T>,
    Format { form, json }: Format,
) -> anyhow::Result<()> {
    let keys = |keys: &mut dyn Iterator<Item = &String>| -> anyhow::Result<Vec<Vec<u8>>> {
        keys.map(|key| form.read(key)).collect()
    };
    let compared = keys(&mut args.compares.iter().map(|(key, _)| key))?;
    let put = keys(&mut args.puts.iter().map(|(key, _)| key))?;
    let deleted = keys(&mut args.deletes.iter())?;
    let compares = compared.iter().zip(&args.compares);
    let compares = compares.map(|(key, (_, version))| Compare {
        key,
        version: *version,
    });
    let compares: Vec<Compare<'_>> = compares.collect();
    let lifetime = args.lifetime.map_or(0, |time| time.as_millis());
    let lifetime = u64::try_from(lifetime)?;
    let puts = put
        .iter()
        .zip(&args.puts)
        .map(|(key, (_, value))| Write::Put {
            key,
            value: value.as_bytes(),
            lifetime,
        });
    let deletes = deleted.iter().map(|key| Write::Delete { key });
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
