//! The commands that use a cluster: one operation each.

use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, anyhow};
use dunlin::Settings;
use dunlin::replica::{ClientOptions, Connection};
use dunlin::settings::Configurable;
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
  dunlin replica cas name 12 other            only if the item has still version 12
  dunlin replica cas lock 0 me                only if the key has no item
  dunlin replica delete name

A write that fails has not happened, unless its message says that it may have.

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
    /// Writes a key, if its item has still the given version
    #[command(after_help = EXAMPLES)]
    Cas(CasArgs),
}

/// The cluster, and how to reach it.
#[derive(Debug, clap::Args)]
pub(super) struct ClusterArgs {
    /// Addresses of its replicas; some are enough while the leader is one of them
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
        }
    }
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
            let version = connection.put(args.key.as_bytes(), &value(&args.value)?)?;
            done(json, version)
        }
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
