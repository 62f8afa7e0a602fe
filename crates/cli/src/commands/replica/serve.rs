//! `dunlin replica serve`: a replica on one thread, until Ctrl-C. The thread is the process's
//! first, so a panic of Raft ends the process.

mod farewell;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use dunlin::Settings;
use dunlin::replica::{Driver, Opened, Options, Replica};
use dunlin::settings::Configurable;
use dunlin::{Nanos, Nexus};
use harness::signal;
use serde_json::json;

use crate::commands::echo::{EndpointArgs, over, span};
use crate::commands::random;
use crate::say::print;
use farewell::Farewell;

const EXAMPLES: &str = "\
Examples:
  dunlin replica serve                                    at 127.0.0.1:31850
  dunlin replica serve --listen 10.0.0.1:7101 --idle spin
  dunlin replica serve --listen 127.0.0.1:0 --json        at a port that is free
  dunlin replica serve --election 500ms                   for a network with long delays
  dunlin replica serve --disk data                        with a log that survives the process

The replica belongs to no cluster until `dunlin replica bootstrap` gives it a seat in one. With
--disk, it keeps number, seat, log and items there, and resumes with them when it restarts; it must
then listen at the same address. Without --disk, a restarted process is a new replica.

Exit codes: 0, Ctrl-C ended it; 1, it cannot listen, or cannot use the directory; 2, an option or
the usage is wrong; 101, it has lost a part of its log, or its disk has failed, so it must not
continue.";

/// The arguments of `dunlin replica serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where to listen; by default, the address in `nexus.listen`
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// The shortest time without a leader after which the replica asks for votes; the longest is
    /// twice as long. All replicas of a cluster should have the same value. By default, the value
    /// of `replica.election`
    #[arg(long, value_name = "TIME", value_parser = election)]
    election: Option<Duration>,
    /// The directory for its log and items, which is made if it does not exist. A write is answered
    /// when the disks of a majority have it, the leader's among them
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// The cluster that the directory must hold, as `status` names it; the command refuses any
    /// other
    #[arg(long, value_name = "NAME", requires = "disk", value_parser = cluster)]
    of_cluster: Option<u64>,
    /// A leader answers gets without a majority while no other replica can lead. This assumes that
    /// no replica's clock runs more than an eighth faster than another's, and that no clock stands
    /// while others go on, as that of a suspended, moved or restored virtual machine may: its
    /// leader would answer with old values. All replicas of a cluster need the same --election
    #[arg(long)]
    lease_reads: bool,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// An election time-out: 10 ms at least, because a heartbeat comes every fifth of it.
fn election(text: &str) -> Result<Duration, String> {
    let least = Duration::from_millis(10);
    let time = span(text)?;
    match time >= least {
        true => Ok(time),
        false => Err("10 ms at least".to_owned()),
    }
}

/// The name of a cluster, in hexadecimal digits.
fn cluster(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|_| "up to 16 hexadecimal digits".to_owned())
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
    over!(args.endpoint.transport, serve(args, &settings, &nexus))
}

fn serve<T: Configurable>(args: &Args, settings: &Settings, nexus: &Nexus) -> anyhow::Result<()> {
    let begin = Instant::now();
    let [word, _] = random::words()?;
    let id = word.max(1);
    let options = options(args, settings);
    let address = nexus.address().to_string();
    let farewell = Rc::new(Farewell::new(&address, args.disk.as_deref()));
    let replica = match &args.disk {
        Some(path) => on_disk(path, id, args, options, &farewell)?,
        None => Replica::new(id, options),
    };
    let id = replica.id();
    farewell.name(id, replica.cluster());
    let endpoint = settings.endpoint::<T>(nexus).index(0);
    let driver = Driver::new(endpoint, replica, settings.connect_options())?;
    let words = Rc::clone(&farewell);
    let mut driver = driver.with_last_words(move || words.words());
    greet(args, nexus, driver.replica())?;
    while signal::check().is_ok() {
        driver.turn(Nanos::MAX);
        farewell.name(id, driver.replica().cluster());
        if driver.replica().has_twin() {
            bail!(
                "another process uses this replica's number: a directory was copied, and both \
                 copies are used. Both stop, because one may lack what the other has promised. \
                 Let the replica leave its cluster, and a process with an empty directory join"
            );
        }
    }
    driver.hand_over(options.election.times(2));
    report(args, driver.replica(), begin)
}

/// Resumes a replica from the data in its directory.
fn on_disk(
    path: &Path,
    fresh: u64,
    args: &Args,
    options: Options,
    farewell: &Farewell,
) -> anyhow::Result<Replica> {
    let Opened {
        id,
        seat,
        restored,
        disk,
    } = dunlin::replica::open(path, fresh)?;
    let found = seat.as_ref().map(|(roster, _)| roster.cluster());
    farewell.name(id, found);
    if let Some(wanted) = args.of_cluster
        && found != Some(wanted)
    {
        let found = found.map_or("no cluster".to_owned(), |name| {
            format!("cluster {name:016x}")
        });
        bail!(
            "{} holds data of {found}, not of cluster {wanted:016x}",
            path.display()
        );
    }
    let replica = Replica::with_disk(id, seat, disk, options);
    Ok(replica.begin_with(restored))
}

#[allow(
    clippy::needless_update,
    reason = "a build with planted bugs has one field more"
)]
fn options(args: &Args, settings: &Settings) -> Options {
    let set = settings.replica();
    let election = args.election.unwrap_or(set.election);
    Options {
        election: election.into(),
        heartbeat: (election / 5).into(),
        append_bytes: set.append_bytes,
        appends: set.appends,
        operations: set.operations,
        kept_entries: set.kept_entries,
        kept_bytes: set.kept_bytes,
        lease_reads: args.lease_reads || set.lease_reads,
        slice_bytes: set.slice_bytes,
        piece_bytes: set.piece_bytes,
        least_pause: set.least_pause.into(),
        most_pause: set.most_pause.into(),
        ..Options::DEFAULT
    }
}

fn greet(args: &Args, nexus: &Nexus, replica: &Replica) -> anyhow::Result<()> {
    let (address, over) = (nexus.address(), args.endpoint.transport.name());
    let (id, status) = (replica.id(), replica.status());
    let cluster = status.members.as_ref().map(super::cluster::name);
    if args.endpoint.json {
        let line = json!({
            "listening": address.to_string(),
            "transport": over,
            "id": format!("{id:016x}"),
            "cluster": cluster,
        });
        return print(&format!("{line}\n"));
    }
    if let Some(cluster) = cluster {
        return print(&format!(
            "replica {id:016x} of cluster {cluster} listens at {address} over {over}; it goes on \
             with {} keys and the log to entry {}; Ctrl-C ends it\n",
            status.keys, status.last
        ));
    }
    let begins = match status.items {
        0 => String::new(),
        _ => format!(" and begins with {} restored keys", status.keys),
    };
    print(&format!(
        "replica {id:016x} listens at {address} over {over}{begins}; Ctrl-C ends it\n\
         dunlin replica bootstrap {address} ADDRESS ADDRESS makes a cluster with two others\n"
    ))
}

fn report(args: &Args, replica: &Replica, begin: Instant) -> anyhow::Result<()> {
    let (seconds, status) = (begin.elapsed().as_secs_f64(), replica.status());
    let (disk, micros) = (replica.disk_figures(), |time: Nanos| time.0 / 1000);
    let mean = Nanos(disk.time.0 / disk.syncs.max(1));
    if args.endpoint.json {
        let line = json!({
            "seconds": seconds,
            "applied": status.applied,
            "keys": status.keys,
            "syncs": disk.syncs,
            "sync_mean_us": micros(mean),
            "sync_longest_us": micros(disk.longest),
        });
        return print(&format!("{line}\n"));
    }
    let syncs = match disk.syncs {
        0 => String::new(),
        syncs => format!(
            ", {syncs} syncs of {} us on average, {} us at most",
            micros(mean),
            micros(disk.longest)
        ),
    };
    print(&format!(
        "\nserved for {seconds:.1} s: {} keys, {} entries applied{syncs}\n",
        status.keys, status.applied
    ))
}
