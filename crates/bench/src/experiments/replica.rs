//! `replica`: puts into a key-value store on three replicas in memory, with keys of 16 bytes and
//! values of 64 (eRPC §7.1, table 6). One thread runs all replicas, another one the client.
//!
//! In the same measurement, the same processes exchange echoes, which are as long as puts and wait
//! as long for their turn, and three `RawNode`s of TiKV's `raft` take the same puts on one thread.
//! A put that costs two round trips and the work of Raft takes the time of two echoes and of a put
//! through Raft alone.
//!
//! | file | what it owns |
//! |---|---|
//! | `replica/aims.rs` | aims of the rows |
//! | `replica/members.rs` | the process with the replicas |
//! | `replica/client.rs` | the process that puts and echoes |
//! | `replica/alone.rs` | Raft without network and codec |
//! | `replica/etcd.rs`, `replica/grpc.rs` | three members of etcd, and a client of them |
//! | `replica/apart.rs` | replicas in processes of their own |
//! | `replica/killed.rs` | leaders that are killed |
//! | `replica/disk.rs` | replicas with disks, and the disk alone |
//! | `replica/many.rs` | many puts in flight, and ten minutes of them |
//! | `replica/snapshot.rs` | puts while a snapshot is taken |
//! | `replica/folder.rs` | directories of a measurement |
//! | `replica/simulated.rs` | puts and killed leaders in the simulator |

mod aims;
mod alone;
mod apart;
mod client;
mod disk;
mod etcd;
mod folder;
mod grpc;
mod killed;
mod many;
mod members;
mod simulated;
mod snapshot;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe};
use crate::harness::resident::Resident;
use crate::harness::transport::Transport;
use crate::harness::{program, subject};
use crate::output::chart::{bar, bars, colour, word};
use crate::output::papers::{Beside, Param, Published};
use harness::draw::{Picture, zero_based};
use harness::row::Row;

use client::{Outcome, Step, WARM_UP};
use disk::OnDisk;
use etcd::Etcd;
use killed::Killed;
use many::{Calm, MANY, Many};
use members::Cluster;
use simulated::failover::{Failover, KILLS};
use simulated::latency::Latency;
use snapshot::Snapshot;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "replica",
    about: "Puts into three replicas, against echoes, Raft alone and etcd; not part of `all`",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: &[
        members::ROLE,
        client::ROLE,
        etcd::ROLE,
        program::ROLE,
        apart::ROLE,
        killed::CLIENT,
        snapshot::MEMBERS,
        snapshot::CLIENT,
    ],
    transports: &Transport::SIMULATED_TOO,
    allowed: &Transport::WITH_SIM,
    usual_time: Duration::from_secs(120),
    is_in_all: false,
    is_compared: false,
    section: Some(Section {
        title: "The replicated store",
        text: "Puts of 16-byte keys and 64-byte values, from one client, into three replicas in \
               memory. One thread runs all three in turn, another one the client. The baseline of \
               one put at a time is the time of two echoes of the same lengths between the same \
               processes and of a put through Raft alone, all nodes of which run on one thread. \
               The baseline of 32 puts in flight is etcd with the same number in flight: three \
               members with their files in memory, which run on all processors. With disks, \
               replicas and members of etcd are processes of their own with files in one directory \
               for temporary files; bound_ratio compares with three writers that only sync there, \
               times the puts that share a sync of the leader. Simulated rows have the paper's \
               network, where each step of Raft costs 300 ns. A killed leader's row shows the time \
               until the client's next acknowledged put.",
    }),
    charts,
    published: PUBLISHED,
    aims: aims::AIMS,
    ..Experiment::BASE
};

/// Figures of the paper.
const PUBLISHED: &[Published] = &[
    published("put_p50", 5_500.0, "eRPC, CX5, Raft"),
    published("put_p99", 6_300.0, "eRPC, CX5, Raft"),
    published("leader_p50", 3_100.0, "eRPC, CX5, Raft"),
    published("put_p50", 9_700.0, "NetChain, programmable switches"),
    published("leader_p50", 3_000.0, "ZabFPGA, FPGAs"),
    published("leader_p99", 3_000.0, "ZabFPGA, FPGAs"),
    Published {
        source: "eRPC, table 2",
        ..published("echo_p50", 2_300.0, "eRPC, CX5")
    },
];

/// Where etcd has its files: a file system in memory.
const IN_MEMORY: &str = "/dev/shm";

/// The values of [`One`]. The sum of two echoes and Raft alone follows them.
const ONE: [Metric; 7] = [
    Metric {
        name: "put_p50",
        unit: "ns",
        against: Against::Own {
            index: 7,
            name: "two echoes and Raft alone",
        },
    },
    Metric::alone("put_p99", "ns"),
    Metric::alone("leader_p50", "ns"),
    Metric::alone("leader_p99", "ns"),
    Metric::alone("echo_p50", "ns"),
    Metric::alone("raft_alone_p50", "ns"),
    Metric::alone("round_trips", ""),
];

/// One put at a time.
#[derive(Clone, Copy, Debug)]
struct One(Transport);

/// Puts to etcd, with the same number in flight; etcd has its files below a directory.
struct EtcdPuts {
    name: String,
    etcd: Resident<Etcd>,
    below: PathBuf,
    outstanding: usize,
}

fn cases(transports: &[Transport]) -> Vec<Case> {
    let (real, simulated) = Transport::split(transports);
    let mut cases = real_cases(&real);
    if simulated {
        cases.extend(simulated_cases());
    }
    cases
}

fn real_cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    let in_memory = Rival::new(IN_MEMORY.into(), MANY);
    let on_disk = Rival::new(disk::folder(), disk::OUTSTANDING);
    for &transport in transports {
        let name = transport.name();
        let many = Case::new("replica", name, &params(MANY), Many(transport));
        cases.push(Case::new("replica", name, &params(1), One(transport)));
        cases.push(in_memory.add_to(many));
        cases.push(on_disk.add_to(case_on_disk(transport)));
    }
    for &transport in transports {
        let name = transport.name();
        let [replicas, outstanding] = params(MANY);
        let minutes = [replicas.clone(), outstanding, ("minutes", many::minutes())];
        for kills in killed::KILLS {
            let params = [replicas.clone(), ("kills", kills.into())];
            cases.push(Case::new(
                "replica",
                name,
                &params,
                Killed(transport, kills),
            ));
        }
        cases.push(Case::new("replica", name, &minutes, Calm(transport)));
        let params = [replicas, ("snapshot_mib", snapshot::MIB.into())];
        cases.push(Case::new("replica", name, &params, Snapshot(transport)));
    }
    cases
}

fn simulated_cases() -> [Case; 2] {
    let fabric = ("fabric", Value::from("cx5"));
    let [replicas, outstanding] = params(1);
    let one = [replicas.clone(), outstanding, fabric.clone()];
    let kills = [replicas, fabric, ("kills", KILLS.into())];
    [
        Case::new("replica", "sim", &one, Latency::default()),
        Case::new("replica", "sim", &kills, Failover::default()),
    ]
}

/// Replicas with disks. A file system in memory is not a disk, so rows name the file system.
fn case_on_disk(transport: Transport) -> Case {
    let [replicas, outstanding] = params(disk::OUTSTANDING);
    let found = disk::file_system(&disk::folder()).unwrap_or_else(|_| "unknown".to_owned());
    let is_memory = found == "tmpfs";
    let params = [replicas, outstanding, ("disk", found.into())];
    let mut case = Case::new("replica", transport.name(), &params, OnDisk(transport));
    if is_memory {
        let wrong = "the directory for temporary files is in memory; TMPDIR names one on a disk";
        case.note(wrong.to_owned());
    }
    case
}

/// A cluster of etcd that is the baseline of several cases, if it is installed.
struct Rival {
    /// Its version and its members.
    etcd: Option<(String, Resident<Etcd>)>,
    below: PathBuf,
    outstanding: usize,
}

impl Rival {
    fn new(below: PathBuf, outstanding: usize) -> Self {
        Self {
            etcd: etcd::version().map(|version| (version, Resident::new())),
            below,
            outstanding,
        }
    }

    fn add_to(&self, mut case: Case) -> Case {
        let Some((version, etcd)) = &self.etcd else {
            let missing = "etcd is not installed here, so this row has no baseline; Debian's \
                           package etcd-server has it";
            case.note(missing.to_owned());
            return case;
        };
        let place = match self.below == Path::new(IN_MEMORY) {
            true => "in memory",
            false => "on a disk",
        };
        case.against(EtcdPuts {
            name: format!("etcd {version}, three members {place}"),
            etcd: etcd.clone(),
            below: self.below.clone(),
            outstanding: self.outstanding,
        })
    }
}

fn params(outstanding: usize) -> [(&'static str, Value); 2] {
    [("replicas", 3.into()), ("outstanding", outstanding.into())]
}

/// The outcomes of the client's steps, and the counts of both sides.
struct Run {
    outcomes: Vec<Outcome>,
    leader: [f64; 2],
    /// Terms that have begun since the first leader's.
    elections: u64,
    alone_p50: f64,
    measurement: Measurement,
}

/// Starts replicas and a client, and measures these steps.
fn run(
    transport: Transport,
    outstanding: usize,
    steps: &[Step],
    (span, alone): (Duration, Duration),
) -> anyhow::Result<Run> {
    let (setting, other) = subject::spinning_pair(transport);
    let mut cluster = Cluster::start(&members::Params {
        setting: other,
        alone,
        is_leader_often: outstanding == 1,
    })?;
    let params = client::Params {
        setting,
        replicas: cluster.found.addresses.clone(),
        leader: cluster.found.leader,
        outstanding,
        steps: steps.to_vec(),
        span,
    };
    let (outcomes, side) = client::run(&params)?;
    let seen = cluster.stop()?;
    let changed = (seen.elections > 0).then(|| "the leader has changed".to_owned());
    let alarms = [side.alarm("client"), seen.side.alarm("leader"), changed];
    Ok(Run {
        outcomes,
        leader: seen.leader,
        elections: seen.elections,
        alone_p50: cluster.found.alone_p50,
        measurement: Measurement {
            values: Vec::new(),
            alarms: alarms.into_iter().flatten().collect(),
            details: vec![side.line("client"), seen.side.line("leader")],
        },
    })
}

impl Probe for One {
    fn name(&self) -> &'static str {
        "replicated puts"
    }

    fn metrics(&self) -> &'static [Metric] {
        &ONE
    }

    fn overhead(&self) -> Duration {
        overhead()
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let steps = [Step::Echo, Step::Put, Step::Echo, Step::Put];
        let mut run = run(self.0, 1, &steps, (span / 5, span / 5))?;
        let middle = |from: usize, of: fn(&Outcome) -> f64| {
            f64::midpoint(of(&run.outcomes[from]), of(&run.outcomes[from + 2]))
        };
        let echo = middle(0, |it| it.p50);
        let (put, put_p99) = (middle(1, |it| it.p50), middle(1, |it| it.p99));
        run.measurement.values = vec![
            put,
            put_p99,
            run.leader[0],
            run.leader[1],
            echo,
            run.alone_p50,
            put / echo,
            2.0 * echo + run.alone_p50,
        ];
        Ok(run.measurement)
    }
}

/// The time of an election, and of starting the processes.
fn overhead() -> Duration {
    subject::SET_UP + 4 * WARM_UP + Duration::from_millis(400)
}

impl Probe for EtcdPuts {
    fn name(&self) -> &str {
        &self.name
    }

    fn metrics(&self) -> &'static [Metric] {
        &many::PUTS
    }

    fn overhead(&self) -> Duration {
        WARM_UP + subject::SET_UP
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let start = || Etcd::start(&self.below);
        let put = |etcd: &mut Etcd| etcd.put(self.outstanding, span);
        let outcome = self.etcd.with(start, put)?;
        Ok(vec![outcome.per_s, outcome.p99].into())
    }
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let of = |metric: &str, title: &str, (what, unit): (&str, &'static str), baseline: &str| {
        let wanted = rows.iter().filter(|row| row.metric == metric);
        let wanted = wanted.filter(|row| word(row, "snapshot_mib").is_none());
        let all = wanted.map(|row| {
            let outstanding = word(row, "outstanding").unwrap_or_default();
            let more = match (word(row, "disk"), word(row, "minutes")) {
                (Some(disk), _) => format!(", {disk}"),
                (_, Some(minutes)) => format!(", {minutes} minutes"),
                _ => String::new(),
            };
            let name = format!("{}, {outstanding} in flight{more}", row.transport);
            bar(row, name, colour(&row.transport))
        });
        bars(title, zero_based(what, unit), baseline, all.collect())
    };
    vec![
        of(
            "put_p50",
            "Time of a replicated put, median",
            ("time of a put", "ns"),
            "two echoes and Raft alone",
        ),
        of(
            "puts_per_s",
            "Rate of replicated puts",
            ("puts per second", "1/s"),
            "three members of etcd",
        ),
    ]
}

const fn published(metric: &'static str, ns: f64, what: &'static str) -> Published {
    Published {
        metric,
        params: [
            Some(("fabric", Param::Word("cx5"))),
            Some(("outstanding", Param::Number(1.0))),
            None,
            None,
        ],
        beside: Beside::Median,
        value: ns,
        what,
        source: "eRPC, §7.1, table 6",
    }
}
