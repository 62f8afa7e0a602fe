//! `dunlin memcached`: the same server as `dunlin kv serve`, with memcached's flags.

use std::path::PathBuf;

use dunlin::kv::store::Mode;

use super::serve::{self, FrontPlan, Plan};
use crate::commands::echo::EndpointArgs;
use crate::misuse::Misuse;

const EXAMPLES: &str = "\
Examples:
  dunlin memcached                            127.0.0.1:11211, 64 MiB, 1024 connections
  dunlin memcached -m 1024 -c 4096 -p 11212
  dunlin memcached -l 10.0.0.2 -l 127.0.0.1   at two addresses
  dunlin memcached -s /run/cache.sock         only at a UNIX socket
  dunlin memcached -Y users.txt               clients need a name and a password

It differs from memcached in these points: it listens at 127.0.0.1 unless -l names another address,
it takes its memory at the start, it has no binary protocol, no UDP and no TLS, and it also serves
`dunlin kv`, at the address that --listen names. Keys and values have memcached's limits.

Exit codes: 0, Ctrl-C ended it; 1, it cannot listen or serve; 2, an option or the usage is wrong;
130, Ctrl-C came before it served.";

/// The lowest limit of values, which is memcached's.
const SHORTEST: usize = 1024;

/// The longest value.
const LONGEST: usize = dunlin::kv::store::MAX_VALUE;

/// The arguments of `dunlin memcached`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Memory for all items, in megabytes
    #[arg(
        short = 'm',
        long = "memory-limit",
        value_name = "MEGABYTES",
        default_value = "64"
    )]
    memory: usize,
    /// Port of TCP
    #[arg(short = 'p', long, value_name = "PORT", default_value = "11211")]
    port: u16,
    /// Path of a UNIX socket; without -l, clients can then use only this socket
    #[arg(short = 's', long = "unix-socket", value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Addresses, with or without a port, separated by commas; may be repeated
    #[arg(
        short = 'l',
        long = "listen",
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    addresses: Vec<String>,
    /// The most connections at a time
    #[arg(short = 'c', long = "conn-limit", value_name = "N", default_value = "1024",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    connections: u64,
    /// Threads
    #[arg(short = 't', long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// The longest value that memcached's clients may write, such as `512k`; at most 1m
    #[arg(short = 'I', long = "max-item-size", value_name = "SIZE")]
    longest: Option<String>,
    /// Port of UDP; must be 0, which means no UDP
    #[arg(
        short = 'U',
        long = "udp-port",
        value_name = "PORT",
        default_value = "0"
    )]
    udp_port: u16,
    /// A file with lines of `name:password`
    #[arg(short = 'Y', long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    /// Refuses `flush_all`
    #[arg(short = 'F', long)]
    disable_flush_all: bool,
    /// Where `dunlin kv` connects; by default, a free port
    #[arg(
        long = "native",
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:0"
    )]
    native: String,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// Serves until a signal arrives.
///
/// # Errors
/// It cannot listen there, there is no memory, or an option is wrong.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    if args.udp_port != 0 {
        return Err(Misuse("-U: there is no UDP; 0 is the only port".into()).into());
    }
    let most_value = most_value(args.longest.as_deref())?;
    let too_much = || Misuse(format!("-m: {} megabytes are too many", args.memory));
    let memory = args.memory.checked_mul(1 << 20).ok_or_else(too_much)?;
    let settings = args.endpoint.settings()?;
    let plan = Plan {
        memory,
        mode: Mode::Cache,
        threads: args.threads,
        listen: Some(args.native.clone()),
        front: FrontPlan {
            places: places(&args)?,
            max_connections: args.connections,
            auth_file: args.auth_file,
            no_flush_all: args.disable_flush_all,
            most_value,
        },
        endpoint: args.endpoint,
    };
    serve::serve(&plan, settings)
}

/// The limit of values, if it is lower than the table's. A higher one, and one below memcached's
/// least, are refused.
fn most_value(size: Option<&str>) -> Result<Option<usize>, Misuse> {
    let Some(text) = size else { return Ok(None) };
    let size = serve::size(text).map_err(|why| Misuse(format!("-I {text}: {why}")))?;
    if size > LONGEST {
        let why = format!("-I {text}: values have at most {LONGEST} bytes here");
        return Err(Misuse(why));
    }
    if size < SHORTEST {
        let why = format!("-I {text}: the limit of values is at least {SHORTEST} bytes");
        return Err(Misuse(why));
    }
    Ok((size < LONGEST).then_some(size))
}

/// The places where clients connect.
fn places(args: &Args) -> Result<Vec<dunlin_front::DoorAddress>, Misuse> {
    let mut places = Vec::new();
    if let Some(path) = &args.socket {
        places.push(dunlin_front::DoorAddress::Unix(path.clone()));
    }
    let addresses = match (&args.addresses[..], &args.socket) {
        ([], None) => &["127.0.0.1".to_owned()][..],
        (addresses, _) => addresses,
    };
    for address in addresses {
        places.push(dunlin_front::DoorAddress::Tcp(with_port(
            address, args.port,
        )?));
    }
    Ok(places)
}

/// An address in the form of `-l`, with `port` unless it has its own.
fn with_port(address: &str, port: u16) -> Result<String, Misuse> {
    let is_ipv6 = address.parse::<std::net::Ipv6Addr>().is_ok();
    match address.rsplit_once(':') {
        _ if is_ipv6 => Ok(format!("[{address}]:{port}")),
        Some((_, own)) if own.parse::<u16>().is_ok() => Ok(address.to_owned()),
        Some(_) if !address.ends_with(']') => Err(Misuse(format!(
            "-l {address}: neither an address nor one with a port"
        ))),
        _ => Ok(format!("{address}:{port}")),
    }
}

#[cfg(test)]
mod tests;
