//! The commands that use a sequencer.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::anyhow;
use dunlin::Settings;
use dunlin::sequencer::{
    ClientOptions, Connection, Error, Figures, MAX_COUNT, Name, Phase, figures,
};
use dunlin::settings::Configurable;
use serde_json::json;

use crate::commands::echo::{EndpointArgs, over, span};
use crate::commands::target::{bind_ip, resolve};
use crate::say::print;

const EXAMPLES: &str = "\
Examples:
  dunlin sequencer next orders --create           makes the sequence; its first number is 1
  dunlin sequencer next orders
  dunlin sequencer next orders --count 1000       the first and the last number of a range
  dunlin sequencer next orders --server 10.0.0.2:31850 --server 10.0.0.3:31850
  dunlin sequencer status --json

If you name several servers, the numbers come from the one that is active. If a command fails, the
numbers that it may have taken are never given again, so the sequence has a gap.

Exit codes: 0, success; 1, there is no such sequence, or no server answers; 2, an option or the
usage is wrong.";

/// The servers, and how to reach them.
#[derive(Debug, clap::Args)]
struct ServerArgs {
    /// The address of a server's nexus; can be repeated
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:31850")]
    server: Vec<String>,
    /// How long to wait for a server and its answer
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = span)]
    timeout: Duration,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The arguments of `dunlin sequencer next`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct NextArgs {
    /// The sequence: 1 to 64 visible ASCII characters
    name: Name,
    /// How many numbers
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=MAX_COUNT as i64))]
    count: u32,
    /// Makes the sequence if it does not exist
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// The arguments of `dunlin sequencer status`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    server: ServerArgs,
}

/// Takes numbers.
///
/// # Errors
/// No server gives them, or an option is wrong.
pub(super) fn next(args: &NextArgs) -> anyhow::Result<()> {
    let settings = args.server.endpoint.settings()?;
    over!(args.server.endpoint.transport, next_over(args, &settings))
}

/// Shows the state of each server.
///
/// # Errors
/// A server does not answer, or an option is wrong.
pub(super) fn status(args: &StatusArgs) -> anyhow::Result<()> {
    let server = &args.server;
    let settings = server.endpoint.settings()?;
    for address in &server.server {
        let address = resolve(address)?;
        over!(
            server.endpoint.transport,
            status_over(server, address, &settings)
        )?;
    }
    Ok(())
}

fn next_over<T: Configurable>(args: &NextArgs, settings: &Settings) -> anyhow::Result<()> {
    let server = &args.server;
    let servers = server.server.iter().map(|it| resolve(it));
    let servers: Vec<SocketAddr> = servers.collect::<anyhow::Result<_>>()?;
    let nexus = bind(settings, servers[0])?;
    let options = ClientOptions {
        create: args.create,
        deadline: server.timeout.into(),
        ..ClientOptions::DEFAULT
    };
    let endpoint = settings.endpoint::<T>(&nexus);
    let name = args.name.clone();
    let mut connection = Connection::open(endpoint, &servers, name, options)?;
    let taken = connection.take(args.count);
    let numbers = taken.map_err(|error| advise(error, args))?;
    let (first, last) = (numbers.start, numbers.end - 1);
    print(&match (server.endpoint.json, args.count) {
        (true, count) => format!(
            "{}\n",
            json!({ "first": first, "last": last, "count": count })
        ),
        (false, 1) => format!("{first}\n"),
        (false, _) => format!("{first} {last}\n"),
    })
}

/// Adds advice to an error, if the user can do something about it.
fn advise(error: Error, args: &NextArgs) -> anyhow::Error {
    let at = args.server.server.join(" or ");
    match error {
        Error::NoSequence => anyhow!("{error}: {}; --create makes it", args.name),
        Error::DeadlinePassed => anyhow!(
            "{error}; start a server with `dunlin sequencer serve --dir DIR --listen {at}`, see \
             what `dunlin sequencer status --server {at}` shows, or wait longer with --timeout"
        ),
        Error::Incompatible => anyhow!("{error}; see which program listens at {at}"),
        error => anyhow!(error),
    }
}

/// Makes the client's nexus, at a port that the system chooses.
fn bind(settings: &Settings, server: SocketAddr) -> anyhow::Result<dunlin::Nexus> {
    let own = SocketAddr::new(bind_ip(server.ip()), 0);
    Ok(settings.nexus().bind(own)?)
}

fn status_over<T: Configurable>(
    server: &ServerArgs,
    address: SocketAddr,
    settings: &Settings,
) -> anyhow::Result<()> {
    let nexus = bind(settings, address)?;
    let connect = settings.connect_options();
    let endpoint = settings.endpoint::<T>(&nexus);
    let asked = figures(endpoint, address, &connect, server.timeout);
    let figures = asked.map_err(|error| anyhow!(error).context(address.to_string()))?;
    print(&match server.endpoint.json {
        true => object(address, &figures),
        false => table(address, &figures),
    })
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Serving => "serving",
        Phase::TakingOver => "taking over",
        Phase::Uncertain => "uncertain",
        Phase::Ended => "ended",
    }
}

fn object(address: SocketAddr, figures: &Figures) -> String {
    let sequences = figures
        .sequences
        .iter()
        .map(|it| json!({ "name": it.name.as_str(), "next": it.next, "reserved_below": it.limit }));
    let object = json!({
        "server": address.to_string(),
        "phase": phase(figures.phase),
        "epoch": figures.epoch,
        "requests": figures.requests,
        "numbers": figures.numbers,
        "saves": figures.saves,
        "waits": figures.waits,
        "sequences": sequences.collect::<Vec<_>>(),
    });
    format!("{object}\n")
}

fn table(address: SocketAddr, figures: &Figures) -> String {
    let mut text = format!(
        "{address}: {}, epoch {}\n{} numbers to {} requests, of which {} waited for the disk; {} \
         saves\n",
        phase(figures.phase),
        figures.epoch,
        figures.numbers,
        figures.requests,
        figures.waits,
        figures.saves
    );
    let longest = figures.sequences.iter().map(|it| it.name.as_str().len());
    let width = longest.max().unwrap_or(0).max("sequence".len());
    if !figures.sequences.is_empty() {
        text += &format!(
            "\n{:width$}  {:>20}  {:>20}\n",
            "sequence", "next", "reserved below"
        );
    }
    for it in &figures.sequences {
        text += &format!(
            "{:width$}  {:>20}  {:>20}\n",
            it.name.as_str(),
            it.next,
            it.limit
        );
    }
    text
}
