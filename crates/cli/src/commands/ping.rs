//! `dunlin ping`: round trips to a Dunlin server, one at a time, in the style of `ping`. It never
//! hangs if the server does not answer, dies, comes back, or is another program: each ping has a
//! deadline.

mod tally;
mod trip;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::bail;
use dunlin::settings::Configurable;
use dunlin::{ConnectOptions, Settings};

use crate::commands::echo::{EndpointArgs, over, span};
use crate::commands::target::resolve;
use harness::signal;
use tally::Tally;
use trip::{Outcome, Pinger};

const EXAMPLES: &str = "\
Examples:
  dunlin ping 127.0.0.1:31850                    one a second, until Ctrl-C
  dunlin ping -c 10 -i 0.1 -s 1024 HOST:31850    ten of 1024 bytes, ten a second
  dunlin ping -f -c 100000 HOST:31850            one after the other, then a histogram
  dunlin ping --transport udp --idle spin HOST:31850
  dunlin ping -c 3 --json HOST:31850 | jq .

The server is `dunlin echo-server`. Any other Dunlin program refuses the request type (0x7ec0);
the round trip of a refusal is shown as well. The time is from the call to its completion. At one
ping a second, both threads sleep in between, so the time includes two wake-ups; --idle spin avoids
the wake-up on this side. After a failure of the server, each further ping tries to reach it again.

Exit codes: 0, a ping was answered; 1, none was, or the server refuses pings; 2, an option or
the usage is wrong.";

/// The arguments of `dunlin ping`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The address of the server's nexus; the usual port is 31850
    #[arg(value_name = "HOST[:PORT]")]
    address: String,
    /// Stop after N pings; by default, at Ctrl-C
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Time between two pings
    #[arg(short, long, value_name = "TIME", default_value = "1", value_parser = span)]
    interval: Duration,
    /// Bytes of a request and its answer
    #[arg(short, long, value_name = "BYTES", default_value = "32",
          value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    size: u32,
    /// No pause between pings, and no line for each ping
    #[arg(short, long)]
    flood: bool,
    /// A ping without an answer after this time is lost
    #[arg(short, long, value_name = "TIME", default_value = "1", value_parser = deadline)]
    deadline: Duration,
    /// Index of the endpoint in its nexus
    #[arg(long, value_name = "N")]
    endpoint: Option<u16>,
    #[command(flatten)]
    options: EndpointArgs,
}

/// Pings until the count is reached or a signal comes.
///
/// # Errors
/// No ping was answered; an option is wrong.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.options.settings()?;
    signal::watch()?;
    let to = resolve(&args.address)?;
    over!(args.options.transport, ping(args, &settings, to))
}

fn ping<T: Configurable>(args: &Args, settings: &Settings, to: SocketAddr) -> anyhow::Result<()> {
    let mut connect = settings.connect_options();
    connect.endpoint = args.endpoint.or(connect.endpoint);
    let mut pinger = Pinger::<T>::open(settings, to, args.size)?;
    match pinger.connect(&connect) {
        Ok(()) => {}
        Err(error) if signal::check().is_err() => bail!("{error}; nothing has answered"),
        Err(error) => return Err(advise(error, args)),
    }
    let mut tally = Tally::new(args, to);
    tally.begin()?;
    let again = ConnectOptions {
        patience: args.deadline,
        ..connect
    };
    repeat(args, &mut pinger, &mut tally, &again)?;
    tally.finish()?;
    if tally.has_echoes() {
        return Ok(());
    }
    if tally.has_refusals() {
        bail!("the server at {to} is alive, but refuses pings; `dunlin echo-server` answers them")
    }
    bail!("nothing at {to} has answered within {:?}", args.deadline)
}

fn repeat<T: Configurable>(
    args: &Args,
    pinger: &mut Pinger<T>,
    tally: &mut Tally<'_>,
    again: &ConnectOptions,
) -> anyhow::Result<()> {
    let last = args.count.unwrap_or(u64::MAX);
    for seq in 1..=last {
        let next = Instant::now() + args.interval;
        match pinger.ping(seq, args.deadline, again)? {
            // An interrupted ping counts neither as answered nor as lost.
            Outcome::Interrupted => break,
            outcome => tally.add(seq, &outcome)?,
        }
        if seq != last && !args.flood {
            pinger.rest_until(next);
        }
        if signal::check().is_err() {
            break;
        }
    }
    Ok(())
}

/// Adds advice to the error about a server that cannot be reached.
fn advise(error: anyhow::Error, args: &Args) -> anyhow::Error {
    let address = &args.address;
    error.context(format!(
        "no Dunlin endpoint answers at {address} over {}; `dunlin echo-server {address}` there \
         would",
        args.options.transport.name()
    ))
}

fn deadline(text: &str) -> Result<Duration, String> {
    let span = span(text)?;
    if span < Duration::from_micros(1) {
        return Err("less than 1 us".to_owned());
    }
    Ok(span)
}

#[cfg(test)]
mod tests;
