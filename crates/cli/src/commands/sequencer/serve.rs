//! `dunlin sequencer serve`: one endpoint, one thread for the disk, until Ctrl-C or until another
//! server takes over.

use std::fmt;
#[cfg(feature = "replica")]
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, anyhow};
#[cfg(feature = "replica")]
use dunlin::replica::Connection;
#[cfg(feature = "replica")]
use dunlin::sequencer::Replicated;
use dunlin::sequencer::{
    Claim, ClaimError, Desk, Disk, Ending, Files, Keeper, Options, Taking, serve, take_directory,
};
use dunlin::settings::Configurable;
use dunlin::{Nexus, Rpc, Settings};
use harness::signal;
use serde_json::json;

use crate::commands::echo::{EndpointArgs, over};
#[cfg(feature = "replica")]
use crate::commands::target::{bind_ip, resolve};
use crate::say::print;

const EXAMPLES: &str = "\
Examples:
  dunlin sequencer serve --dir numbers
  dunlin sequencer serve --dir numbers --listen 0.0.0.0:31850 --idle spin
  dunlin sequencer serve --dir numbers --take-over           from a server that hangs
  dunlin sequencer serve --dir numbers --set sequencer.block=10000000
  dunlin sequencer serve --cluster 10.0.0.1:7101,10.0.0.2:7101,10.0.0.3:7101 --take-over

The directory has a file for each start, named by its epoch. A new server begins above all numbers
that any earlier server may have given. With --take-over, it need not wait for the end of the
earlier server, which stops within `sequencer.lease`; the new one serves an eighth later. If the
earlier server's host or virtual machine was suspended, its clock may have stood meanwhile, so that
it serves for too long: end it first.

With --cluster, reservations are items of replicas (`dunlin replica`) in place of files, under keys
that begin with the value of --name. A cluster does not know which process is alive, so every server
but the first needs --take-over. If the cluster loses its items, numbers are given again: give a new
cluster another name only together with new sequences.

Exit codes: 0, Ctrl-C ended it; 1, it cannot listen or serve, the disk has failed, or another server
has taken over; 2, an option or the usage is wrong.";

/// The arguments of `dunlin sequencer serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    /// The name under which reservations are in the cluster
    #[cfg(feature = "replica")]
    #[arg(
        long,
        value_name = "NAME",
        default_value = "sequencer",
        requires = "cluster"
    )]
    name: String,
    /// Where to listen; by default, the address in `nexus.listen`
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Serves even if a live server has the directory: that server stops first
    #[arg(long)]
    take_over: bool,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// Where reservations are.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct PlaceArgs {
    /// The directory for reservations, which is made if it does not exist
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Addresses of the replicas that keep reservations
    #[cfg(feature = "replica")]
    #[arg(long, value_name = "HOST:PORT,…", value_delimiter = ',')]
    cluster: Vec<String>,
}

/// Serves until a signal arrives.
///
/// # Errors
/// It cannot listen there, the directory cannot be used, or an option is wrong.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    signal::watch()?;
    let mut settings = args.endpoint.settings()?;
    if let Some(address) = &args.listen {
        settings = settings.with_from("--listen", "nexus.listen", address)?;
    }
    let listen = settings.listen();
    let bound = settings.nexus().bind(listen.as_str());
    let nexus = bound.with_context(|| {
        format!("cannot serve at {listen}; --listen 127.0.0.1:0 takes a port that is free")
    })?;
    over!(args.endpoint.transport, serve_over(args, &settings, &nexus))
}

fn serve_over<T: Configurable>(
    args: &Args,
    settings: &Settings,
    nexus: &Nexus,
) -> anyhow::Result<()> {
    let set = settings.sequencer();
    let mut options = Options::DEFAULT;
    options.block = set.block;
    options.lease = set.lease.into();
    #[cfg(feature = "replica")]
    if !args.place.cluster.is_empty() {
        let store = replicated::<T>(args, settings)?;
        return serve_with::<T>(args, settings, nexus, options, store);
    }
    let dir = args.place.dir.as_deref().context("--dir is missing")?;
    let files = Files::open(dir);
    let files = files.with_context(|| format!("cannot use {}", args.place))?;
    serve_with::<T>(args, settings, nexus, options, files)
}

/// Connects to the cluster for reservations.
#[cfg(feature = "replica")]
fn replicated<T: Configurable>(
    args: &Args,
    settings: &Settings,
) -> anyhow::Result<Replicated<Connection<T>>> {
    let addresses = args.place.cluster.clone();
    let first = addresses
        .first()
        .context("--cluster: an address is missing")?;
    let own = SocketAddr::new(bind_ip(resolve(first)?.ip()), 0);
    // A client listens at a port that the system chooses.
    let nexus = settings.nexus().bind(own)?;
    let (settings, connect) = (settings.clone(), settings.connect_options());
    let store = Replicated::start(&args.name, move || {
        let endpoint = settings.endpoint::<T>(&nexus);
        let options = dunlin::replica::ClientOptions::DEFAULT;
        Connection::open_with(endpoint, addresses, options, connect)
    });
    store.with_context(|| format!("cannot use {}", args.place))
}

fn serve_with<T: Configurable>(
    args: &Args,
    settings: &Settings,
    nexus: &Nexus,
    options: Options,
    mut files: impl Disk + Send + 'static,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    let claim = claim(args, &options, &mut files)?;
    let desk = Desk::new(claim, options);
    let epoch = desk.epoch();
    let mut rpc: Rpc<T, Desk> = settings.endpoint::<T>(nexus).build(desk)?;
    serve(&mut rpc);
    let keeper = Keeper::start(files, rpc.waker())?;
    greet(args, nexus, epoch)?;
    let ending = keeper.drive(&mut rpc, || signal::check().is_err());
    report(args, &mut rpc, begin)?;
    judge(args, ending)
}

fn claim(args: &Args, options: &Options, files: &mut impl Disk) -> anyhow::Result<Claim> {
    let place = &args.place;
    let taking = match args.take_over {
        true => Taking::Over,
        false => Taking::Free,
    };
    match take_directory(files, taking, options, std::process::id()) {
        Ok(claim) => Ok(claim),
        Err(error @ ClaimError::InUse(_)) => Err(anyhow!(
            "{place} is in use: {error}; stop it, or let this one replace it with --take-over"
        )),
        Err(error) => Err(anyhow!(error).context(format!("cannot use {place}"))),
    }
}

impl fmt::Display for PlaceArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "replica")]
        if !self.cluster.is_empty() {
            return write!(f, "the cluster {}", self.cluster.join(","));
        }
        match &self.dir {
            Some(dir) => write!(f, "the directory {}", dir.display()),
            None => f.write_str("no directory"),
        }
    }
}

fn greet(args: &Args, nexus: &Nexus, epoch: u32) -> anyhow::Result<()> {
    let (address, over) = (nexus.address(), args.endpoint.transport.name());
    if args.endpoint.json {
        let line = json!({
            "listening": address.to_string(),
            "transport": over,
            "epoch": epoch,
        });
        return print(&format!("{line}\n"));
    }
    print(&format!(
        "a sequencer at {address} over {over}, epoch {epoch} of {}\n\
         to use it: dunlin sequencer next orders --create --server {address}\n\
         Ctrl-C ends it\n",
        args.place
    ))
}

fn report<T: Configurable>(
    args: &Args,
    rpc: &mut Rpc<T, Desk>,
    begin: Instant,
) -> anyhow::Result<()> {
    let now = rpc.now();
    let figures = rpc.app().figures(now);
    let seconds = begin.elapsed().as_secs_f64();
    if args.endpoint.json {
        let line = json!({
            "seconds": seconds,
            "requests": figures.requests,
            "numbers": figures.numbers,
            "saves": figures.saves,
            "waits": figures.waits,
        });
        return print(&format!("{line}\n"));
    }
    print(&format!(
        "\ngave {} numbers to {} requests in {seconds:.1} s; {} waited for the disk\n",
        figures.numbers, figures.requests, figures.waits
    ))
}

/// The error of a server that ended for a reason other than a signal.
fn judge(args: &Args, ending: Ending) -> anyhow::Result<()> {
    let place = &args.place;
    Err(match ending {
        Ending::Stopped => return Ok(()),
        Ending::Deposed(epoch) => {
            anyhow!("another server has taken over {place}, with epoch {epoch}")
        }
        Ending::Failed(error) => anyhow!(error).context(format!(
            "a write in {place} has failed, so it is unknown what is there; a restart skips the \
             numbers that may be lost"
        )),
        Ending::Damaged(epoch, damage) => {
            anyhow!(damage).context(format!("the file of epoch {epoch} in {place}"))
        }
        Ending::Gone => anyhow!("the file of this server in {place} is gone"),
        Ending::Unreadable(error) => anyhow!(error).context(format!(
            "{place} cannot be read, and further attempts would not help"
        )),
    })
}
