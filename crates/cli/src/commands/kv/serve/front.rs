//! The options and the listeners of the memcached front end.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use dunlin::kv::Partition;
use dunlin::kv::store::Mode;
use dunlin::settings::KvOptions;
use dunlin_front::{Desk, Door, DoorAddress, Front, Hall, Options};
use dunlin_memcached::Users;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Plan, memory};
use crate::misuse::Misuse;

/// Descriptors that a server needs in addition to its clients' descriptors.
const OTHER_DESCRIPTORS: u64 = 64;

/// The clients' incomplete commands may take this part of the memory.
const INCOMPLETE: usize = 16;

/// The least number of bytes that incomplete commands may take.
const LEAST_INCOMPLETE: usize = 8 << 20;

/// The flags of the front end.
#[derive(Clone, Default, Debug, clap::Args)]
pub(super) struct FrontArgs {
    /// Where memcached's clients connect: an address, or the path of a UNIX socket; may be
    /// repeated; by default nowhere, unless `kv.memcached` or `kv.memcached_socket` is set
    #[arg(long = "memcached", value_name = "HOST:PORT|PATH")]
    places: Vec<DoorAddress>,
    /// The most of memcached's clients at a time; by default, the value of `kv.max_connections`,
    /// 1024
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    max_connections: Option<u64>,
    /// A file with lines of `name:password`; by default, the value of `kv.auth_file`; without one,
    /// clients need no password
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    /// Refuses `flush_all`, as `kv.flush_all` = `off` does
    #[arg(long)]
    no_flush_all: bool,
}

/// The front end of a server before its start.
#[derive(Debug)]
pub(in crate::commands::kv) struct FrontPlan {
    /// Where memcached's clients connect; empty: there is no front end.
    pub(in crate::commands::kv) places: Vec<DoorAddress>,
    pub(in crate::commands::kv) max_connections: u64,
    pub(in crate::commands::kv) auth_file: Option<PathBuf>,
    pub(in crate::commands::kv) no_flush_all: bool,
    /// The longest value that clients may write, if that is shorter than the table's longest.
    pub(in crate::commands::kv) most_value: Option<usize>,
}

impl FrontArgs {
    /// The front end, with the options of the group `kv` where a flag is missing.
    ///
    /// # Errors
    /// There is a flag for memcached's clients, but no address where they connect.
    pub(super) fn plan(self, options: KvOptions) -> Result<FrontPlan, Misuse> {
        let mut places = self.places;
        if places.is_empty() {
            places.extend(options.memcached.map(DoorAddress::Tcp));
            let socket = options.memcached_socket;
            places.extend(socket.map(|path| DoorAddress::Unix(path.into())));
        }
        let is_given = [
            ("--max-connections", self.max_connections.is_some()),
            ("--auth-file", self.auth_file.is_some()),
            ("--no-flush-all", self.no_flush_all),
        ];
        if let Some((flag, _)) = is_given.iter().find(|(_, it)| *it && places.is_empty()) {
            return Err(Misuse(format!(
                "{flag} is for memcached's clients; --memcached names where they connect"
            )));
        }
        Ok(FrontPlan {
            places,
            max_connections: self.max_connections.unwrap_or(options.max_connections),
            auth_file: self.auth_file.or(options.auth_file.map(PathBuf::from)),
            no_flush_all: self.no_flush_all || !options.flush_all,
            most_value: None,
        })
    }
}

/// The listening sockets of a server, until one of its threads takes them.
pub(super) struct Doors {
    hall: Arc<Hall>,
    places: Vec<String>,
    doors: Mutex<Vec<Door>>,
}

impl Doors {
    /// The addresses at which clients connect.
    pub(super) fn places(&self) -> Vec<String> {
        self.places.clone()
    }

    /// The state of a thread's endpoint.
    pub(super) fn desk(&self, partition: Partition) -> Desk {
        Desk::new(partition, &self.hall)
    }

    /// The front end of a thread. The first thread that asks gets the listeners.
    pub(super) fn front(&self, thread: u16) -> anyhow::Result<Front> {
        let doors = std::mem::take(&mut *self.doors.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Front::new(Arc::clone(&self.hall), thread, doors)?)
    }
}

/// Opens the listeners; `None` if memcached's clients are not served.
///
/// # Errors
/// An option is wrong, or another server listens there.
pub(super) fn open(args: &Plan) -> anyhow::Result<Option<Doors>> {
    let front = &args.front;
    if front.places.is_empty() {
        return Ok(None);
    }
    raise_descriptors(front.max_connections + OTHER_DESCRIPTORS);
    let users = front.auth_file.as_ref().map(|path| {
        let file = std::fs::read(path).with_context(|| path.display().to_string())?;
        let users = Users::read(&file).with_context(|| path.display().to_string())?;
        anyhow::Ok(Arc::new(users))
    });
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = u32::try_from(now.unwrap_or_default().as_secs()).unwrap_or(u32::MAX);
    let doors: Vec<Door> = front
        .places
        .iter()
        .map(Door::open)
        .collect::<Result<_, _>>()?;
    let hall = Hall::new(Options {
        max_connections: front.max_connections,
        users: users.transpose()?,
        refuses_flush: front.no_flush_all,
        most_value: front.most_value,
        incomplete: (args.memory / INCOMPLETE).max(LEAST_INCOMPLETE) as u64,
        memory: memory::sum(args.memory, args.threads) as u64,
        threads: args.threads.into(),
        started: dunlin_front::Seconds(seconds),
        settings: settings(args, &doors),
        ..Options::default()
    });
    Ok(Some(Doors {
        hall: Arc::new(hall),
        places: doors.iter().map(|door| door.place().to_string()).collect(),
        doors: Mutex::new(doors),
    }))
}

/// Refuses a `max_message` that is too small for the bursts between the threads of a server.
///
/// # Errors
/// `max_message` is too small.
pub(super) fn check_room(max_message: u32) -> Result<(), Misuse> {
    if max_message as usize >= dunlin_front::LEAST_MESSAGE {
        return Ok(());
    }
    Err(Misuse(format!(
        "endpoint.max_message is {max_message}; with --memcached and several threads, which pass \
         commands to each other, it must be at least {}",
        dunlin_front::LEAST_MESSAGE
    )))
}

/// Lines of `stats settings`, with the names that memcached has for them.
fn settings(args: &Plan, doors: &[Door]) -> Vec<(&'static str, String)> {
    let places = || doors.iter().map(Door::place);
    let tcp = places().find_map(|place| match place {
        DoorAddress::Tcp(address) => address
            .rsplit_once(':')
            .map(|(host, port)| (host.to_owned(), port.to_owned())),
        DoorAddress::Unix(_) => None,
    });
    let unix = places().find_map(|place| match place {
        DoorAddress::Tcp(_) => None,
        DoorAddress::Unix(path) => Some(path.display().to_string()),
    });
    let (host, port) = tcp.unwrap_or(("NULL".into(), "0".into()));
    let on_off = |is_on: bool, [on, off]: [&str; 2]| if is_on { on } else { off }.to_owned();
    let evicts = args.mode == Mode::Cache;
    let has_users = args.front.auth_file.is_some();
    vec![
        ("tcpport", port),
        ("udpport", "0".into()),
        ("inter", host),
        ("domain_socket", unix.unwrap_or("NULL".into())),
        ("evictions", on_off(evicts, ["on", "off"])),
        ("auth_enabled_ascii", on_off(has_users, ["yes", "no"])),
    ]
}

/// Allows the process this many descriptors, or warns that it may not have them.
fn raise_descriptors(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return;
    }
    let current = match limit.maximum {
        Some(maximum) => needed.min(maximum),
        None => needed,
    };
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(current),
            maximum: limit.maximum,
        },
    );
    if raised.is_err() || current < needed {
        eprintln!(
            "dunlin: this process may have {current} descriptors, too few for all connections; \
             `ulimit -Hn {needed}` allows them"
        );
    }
}
