//! `dunlin kv serve`: one thread, endpoint and table for each partition, until Ctrl-C. With
//! `--memcached`, the thread also serves memcached's clients (`serve/front.rs`).

mod front;
mod memory;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;
use dunlin::kv::store::{Config, Mode, Pages, Region, Seed, Table};
use dunlin::kv::{COUNTERS, Figures, GAUGES, MAX_PARTITIONS, Map, Partition};
use dunlin::settings::{Configurable, KvMode};
use dunlin::{Auto, HealthEndpoint, Nexus, Pulse, Rpc, Settings};
use dunlin_front::Desk;
use harness::progress::Progress;
use harness::signal::{self, Interrupted};
use serde_json::json;

use super::show;
use crate::commands::echo::{EndpointArgs, over};
use crate::commands::random;
use crate::say::print;

pub(super) use front::FrontPlan;
use front::{Doors, FrontArgs};

const EXAMPLES: &str = "\
Examples:
  dunlin kv serve                                     a cache of 1 GiB, one thread, 127.0.0.1:31850
  dunlin kv serve --memory 16GiB --threads 4 --idle spin
  dunlin kv serve --mode store --listen 0.0.0.0:31850
  dunlin kv serve --listen 127.0.0.1:0 --json         at a port that is free
  dunlin kv serve --memcached 127.0.0.1:11211         for memcached's clients too
  dunlin kv serve --memcached /run/cache.sock         at a UNIX socket

Options of the group `kv` stand in for missing flags: `dunlin config kv` lists them.

A cache never refuses a write: its oldest items leave. A store keeps all items, and refuses writes
when its memory is full. Threads share nothing: each has its part of the memory and of the keys.

Exit codes: 0, Ctrl-C ended it; 1, it cannot listen or serve; 2, an option or the usage is wrong;
130, Ctrl-C came before it served.";

/// The arguments of `dunlin kv serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Memory for all items, such as `512MiB`, which the server takes at its start; by default, the
    /// value of `kv.memory`, 1 GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<usize>,
    /// Whether items leave when the memory is full, or writes fail; by default, the value of
    /// `kv.mode`, `cache`
    #[arg(long, value_enum)]
    mode: Option<ModeArg>,
    /// Threads, each with a partition of the keys; by default, the value of `kv.threads`, 1
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=MAX_PARTITIONS as i64))]
    threads: Option<u16>,
    /// Where to listen; by default, the address in `nexus.listen`
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    #[command(flatten)]
    front: FrontArgs,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The parameters of a server before its start.
#[derive(Debug)]
pub(super) struct Plan {
    /// Bytes for all items.
    pub(super) memory: usize,
    pub(super) mode: Mode,
    pub(super) threads: u16,
    /// Where to listen; by default, the address in `nexus.listen`.
    pub(super) listen: Option<String>,
    pub(super) front: FrontPlan,
    pub(super) endpoint: EndpointArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModeArg {
    /// The oldest items leave
    Cache,
    /// Nothing leaves
    Store,
}

/// The name of the service, for `dunlin health ADDRESS NAME`.
const SERVICE: &str = "Kv";

/// Events of a partition's thread while it starts.
enum Event {
    /// The thread has touched further bytes of its memory.
    Touched(usize),
    /// The thread serves from memory with these pages, or cannot serve.
    Ready(anyhow::Result<(Pulse, Pages)>),
}

/// The threads of a server that has started.
struct Threads {
    pulses: Vec<Pulse>,
    /// The number of threads whose memory has huge pages.
    huge: u16,
}

/// The parts of a server that its threads share.
struct Server<'a> {
    nexus: &'a Nexus,
    settings: &'a Settings,
    map: &'a Map,
    bytes: usize,
    first_version: u64,
    doors: Option<Doors>,
}

/// Serves until a signal arrives.
///
/// # Errors
/// It cannot listen there, there is no memory, or an option is wrong.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.endpoint.settings()?;
    serve(&args.plan(&settings)?, settings)
}

impl Args {
    /// The server, with the options of the group `kv` where a flag is missing.
    ///
    /// # Errors
    /// An option is wrong.
    fn plan(&self, settings: &Settings) -> anyhow::Result<Plan> {
        let options = settings.kv();
        let memory = match self.memory {
            Some(bytes) => bytes,
            None => usize::try_from(options.memory)?,
        };
        let mode = match (self.mode, options.mode) {
            (Some(ModeArg::Cache), _) | (None, KvMode::Cache) => Mode::Cache,
            (Some(ModeArg::Store), _) | (None, KvMode::Store) => Mode::Store,
        };
        Ok(Plan {
            memory,
            mode,
            threads: self.threads.unwrap_or(options.threads),
            listen: self.listen.clone(),
            front: self.front.clone().plan(options)?,
            endpoint: self.endpoint.clone(),
        })
    }
}

/// Starts a server, which serves until a signal arrives.
///
/// # Errors
/// It cannot listen there, there is no memory, or an option is wrong.
pub(super) fn serve(args: &Plan, mut settings: Settings) -> anyhow::Result<()> {
    signal::watch()?;
    if let Some(address) = &args.listen {
        settings = settings.with_from("--listen", "nexus.listen", address)?;
    }
    memory::check(args)?;
    let doors = front::open(args)?;
    let listen = settings.listen();
    let bound = settings.nexus().own_figures(&COUNTERS, &GAUGES);
    let bound = bound.bind(listen.as_str());
    let nexus = bound.with_context(|| {
        format!("cannot serve at {listen}; --listen 127.0.0.1:0 takes a port that is free")
    })?;
    over!(
        args.endpoint.transport,
        serve_all(args, doors, &settings, &nexus)
    )
}

fn serve_all<T: Configurable>(
    args: &Plan,
    doors: Option<Doors>,
    settings: &Settings,
    nexus: &Nexus,
) -> anyhow::Result<()> {
    if doors.is_some() && args.threads > 1 {
        let mut largest = 0;
        let _ = settings
            .endpoint::<T>(nexus)
            .config(|config| largest = config.max_message);
        front::check_room(largest)?;
    }
    let begin = Instant::now();
    let [tag, ..] = random::words()?;
    #[expect(clippy::cast_possible_truncation, reason = "any 32 bits will do")]
    let map = Map::new(tag as u32, args.mode, 0..args.threads)?;
    let server = Server {
        nexus,
        settings,
        map: &map,
        bytes: memory::share(args.memory, args.threads),
        first_version: first_version()?,
        doors,
    };
    let mut all = Vec::new();
    thread::scope(|scope| {
        let (tell, events) = channel();
        let server = &server;
        let threads: Vec<_> = (0..args.threads)
            .map(|number| {
                let tell = tell.clone();
                scope.spawn(move || serve_one::<T>(server, number, &tell))
            })
            .collect();
        drop(tell);
        let ready = wait_ready(server.bytes, args.threads, &events);
        let health = ready.and_then(|Threads { pulses, huge }| {
            let health = answer_health(server, pulses)?;
            Ok((health, huge))
        });
        let greeted = match &health {
            Ok((_, huge)) => greet(args, server, *huge),
            Err(_) => Ok(()),
        };
        if health.is_err() || greeted.is_err() {
            signal::stop();
        }
        for thread in threads {
            all.extend(
                thread
                    .join()
                    .map_err(|_| anyhow!("a thread has panicked"))?,
            );
        }
        health?;
        greeted
    })?;
    report(args, &all, begin)
}

/// A version that no earlier process at this address has used: the time in nanoseconds. No table
/// makes more than one write per nanosecond.
fn first_version() -> anyhow::Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(now.as_nanos())?)
}

/// Runs a partition until a signal arrives, and returns its figures.
fn serve_one<T: Configurable>(
    server: &Server<'_>,
    number: u16,
    tell: &Sender<Event>,
) -> Option<Figures> {
    let outcome = match &server.doors {
        None => make::<T, Partition>(server, number, tell, |it| it).map(|(mut rpc, pages)| {
            dunlin::kv::serve(&mut rpc);
            rpc.publish_own(|partition, out| out.extend(partition.published()));
            let _ = tell.send(Event::Ready(Ok((rpc.pulse(), pages))));
            drive(&mut rpc, || signal::check().is_err());
            rpc.app().figures()
        }),
        Some(doors) => make::<T, Desk>(server, number, tell, |it| doors.desk(it)).and_then(
            |(mut rpc, pages)| {
                dunlin_front::serve(&mut rpc);
                rpc.publish_own(|desk, out| out.extend(desk.published()));
                let mut front = doors.front(number)?;
                let _ = tell.send(Event::Ready(Ok((rpc.pulse(), pages))));
                front.drive(&mut rpc, || signal::check().is_err())?;
                Ok(rpc.app().figures())
            },
        ),
    };
    match outcome {
        Ok(figures) => Some(figures),
        Err(error) => {
            let context = format!("partition {number}");
            // The receiver is gone if another thread has already failed.
            let _ = tell.send(Event::Ready(Err(error.context(context))));
            None
        }
    }
}

/// Serves until `is_done`. A server without requests sweeps its table here.
fn drive<T: Configurable>(rpc: &mut Rpc<T, Partition>, is_done: impl Fn() -> bool) {
    while !is_done() {
        if rpc.run_once().frames == 0 {
            let now = rpc.last_now();
            rpc.app_mut().on_time(now);
        }
    }
}

/// Makes the endpoint and the table. Making the table in this thread puts its memory near the
/// thread's processor.
fn make<T: Configurable, App>(
    server: &Server<'_>,
    number: u16,
    tell: &Sender<Event>,
    app: impl FnOnce(Partition) -> App,
) -> anyhow::Result<(Rpc<T, App>, Pages)> {
    let mut region = Region::new(server.bytes)
        .with_context(|| format!("cannot get {} bytes of memory", server.bytes))?;
    let pages = region.pages();
    let mut before = 0;
    let touched = region.touch(|done| {
        let _ = tell.send(Event::Touched(done - before));
        before = done;
        signal::check().is_ok()
    });
    if !touched {
        return Err(Interrupted.into());
    }
    let config = Config {
        mode: server.map.mode(),
        seed: Seed::new(random::words()?),
        first_version: server.first_version,
    };
    let partition = Partition::new(Table::new(region, config)?, server.map.clone(), number);
    let builder = server.settings.endpoint::<T>(server.nexus).index(number);
    Ok((builder.build(app(partition))?, pages))
}

/// Waits until each partition serves, and shows how much memory is touched.
fn wait_ready(share: usize, threads: u16, events: &Receiver<Event>) -> anyhow::Result<Threads> {
    const MIB: usize = 1 << 20;
    let threads = usize::from(threads);
    let memory = share * threads;
    let total = memory / MIB;
    let progress = Progress::start(total as u64, 1);
    let (mut touched, mut shown) = (0, 0);
    let (mut pulses, mut huge) = (Vec::new(), 0);
    while pulses.len() < threads {
        match events.recv() {
            Ok(Event::Touched(bytes)) => {
                let before = touched / MIB;
                touched += bytes;
                progress.advance((touched / MIB - before) as u64);
                // On a terminal there is a bar; elsewhere a line for each quarter.
                if touched * 4 / memory > shown {
                    shown = touched * 4 / memory;
                    progress.line(&format!("{} of {total} MiB touched", touched / MIB));
                }
            }
            Ok(Event::Ready(result)) => {
                let (pulse, pages) = result?;
                pulses.push(pulse);
                huge += u16::from(pages == Pages::Huge);
            }
            Err(_) => bail!("a partition's thread has ended"),
        }
    }
    Ok(Threads { pulses, huge })
}

/// Answers `dunlin health`, unless `server.health` is off.
fn answer_health(
    server: &Server<'_>,
    threads: Vec<Pulse>,
) -> anyhow::Result<Option<HealthEndpoint>> {
    let Some(stuck) = server.settings.health() else {
        return Ok(None);
    };
    let (nexus, settings) = (server.nexus, server.settings);
    let builder = settings
        .endpoint::<Auto>(nexus)
        .index(server.map.partitions());
    let health = HealthEndpoint::start(nexus, builder, threads, vec![SERVICE], stuck)?;
    Ok(Some(health))
}

fn greet(args: &Plan, server: &Server<'_>, huge: u16) -> anyhow::Result<()> {
    let address = server.nexus.address();
    let doors = server.doors.as_ref().map(Doors::places).unwrap_or_default();
    let over = args.endpoint.transport.name();
    let threads = args.threads;
    let memory = server.bytes * usize::from(threads);
    let mode = show::mode(args.mode);
    if args.endpoint.json {
        let line = json!({
            "listening": address.to_string(),
            "transport": over,
            "partitions": threads,
            "memory": memory,
            "huge_pages": huge == threads,
            "mode": mode,
            "memcached": doors,
        });
        return print(&format!("{line}\n"));
    }
    let s = if threads == 1 { "" } else { "s" };
    let pages = memory::named(huge, threads);
    let doors: String = doors
        .iter()
        .map(|place| format!("for memcached's clients: {place}\n"))
        .collect();
    print(&format!(
        "a {mode} of {memory} bytes in {pages} at {address}, {threads} partition{s} over {over}\n\
         to use it: dunlin kv set name dunlin --server {address}\n\
         {doors}Ctrl-C ends it\n"
    ))
}

fn report(args: &Plan, all: &[Figures], begin: Instant) -> anyhow::Result<()> {
    let sum = all.iter().fold(Figures::default(), |sum, it| sum.plus(*it));
    let seconds = begin.elapsed().as_secs_f64();
    if args.endpoint.json {
        let line = json!({ "seconds": seconds, "figures": show::object(&sum) });
        return print(&format!("{line}\n"));
    }
    print(&format!(
        "\nserved {} requests in {seconds:.1} s: {} of {} gets have found an item, {} writes\n",
        sum.requests, sum.hits, sum.gets, sum.writes
    ))
}

/// A size in a flag: a number of bytes, or a number with a unit.
///
/// # Errors
/// It is not a size.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let start = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(start);
    let shift = match unit.trim() {
        "" | "B" => 0,
        "KiB" | "K" | "k" => 10,
        "MiB" | "M" | "m" => 20,
        "GiB" | "G" | "g" => 30,
        "TiB" | "T" => 40,
        _ => return Err(format!("`{unit}` is not a unit; use KiB, MiB, GiB or TiB")),
    };
    let number: usize = number
        .trim()
        .parse()
        .map_err(|_| "not a number of bytes".to_owned())?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "more than any machine has".to_owned())
}

#[cfg(test)]
mod tests;
