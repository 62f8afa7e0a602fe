//! The counted situations: for each, a name in `budget.toml` and the arguments with which the
//! program runs it.

use super::builds::Build;

/// Number of RPCs or iterations that are counted: enough for the counts to include events that
/// happen once in many RPCs.
const COUNT: u64 = 6000;

/// Requests in flight of the rows `batch`.
const BATCH: u32 = 32;

/// Operations in flight of the rows of the key-value service, as in `dunlin bench kv`.
const KV_IN_FLIGHT: u32 = 60;

/// Operations in flight in those rows of the replicated store that have several, as in `dunlin
/// bench replica`.
const PUTS: u32 = 32;

/// The most keys of metadata that the typed program adds to a call.
const KEYS: u32 = 2;

/// One situation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    load: Load,
}

/// The work of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Load {
    /// Messages of one length.
    Plain {
        size: u32,
        /// Requests in flight; 0 if the endpoints are idle.
        in_flight: u32,
        sessions: u32,
        has_deadline: bool,
    },
    /// Messages of 32 bytes, this number in flight over four sessions. Packets share datagrams.
    Packed { in_flight: u32 },
    /// Messages of 32 bytes, whose calls a collection of futures polls.
    Joined { in_flight: u32 },
    /// Typed calls with this number of keys of metadata.
    Typed { keys: u32 },
    /// Typed RPCs of a face of the program.
    Layered { face: &'static str },
    /// Operations of the key-value service: `gets` of a hundred are gets, the others sets.
    Kv { gets: u32, in_flight: u32 },
    /// A part or a kind of operations of another service, as its program numbers them; or packets
    /// of large requests.
    Service { kind: Option<u32>, in_flight: u32 },
}

impl Row {
    /// Arguments of the example.
    pub(super) fn args(&self) -> Vec<String> {
        if let Load::Layered { face } = self.load {
            return vec![face.to_owned(), COUNT.to_string()];
        }
        let (numbers, word) = match self.load {
            Load::Plain {
                size,
                in_flight,
                sessions,
                has_deadline,
            } => {
                let word = has_deadline.then_some("deadline");
                (vec![size, in_flight, sessions], word)
            }
            Load::Packed { in_flight } => (vec![32, in_flight, 4], Some("packed")),
            Load::Joined { in_flight } => (vec![32, in_flight, 4], Some("joined")),
            Load::Typed { keys } => (vec![keys], None),
            Load::Kv { gets, in_flight } => (vec![gets, in_flight], None),
            Load::Service { kind, in_flight } => {
                (kind.into_iter().chain([in_flight]).collect(), None)
            }
            Load::Layered { .. } => (Vec::new(), None),
        };
        let numbers = numbers.into_iter().map(u64::from).chain([COUNT]);
        let numbers = numbers.map(|it| it.to_string());
        numbers.chain(word.map(str::to_owned)).collect()
    }

    /// The unit of work that its numbers refer to.
    pub(super) fn per(&self) -> &'static str {
        match self.load {
            Load::Plain { in_flight: 0, .. } => "iteration",
            Load::Plain { .. }
            | Load::Packed { .. }
            | Load::Joined { .. }
            | Load::Typed { .. }
            | Load::Layered { .. } => "RPC",
            Load::Kv { .. } | Load::Service { .. } => "operation",
        }
    }
}

/// The rows of a section, in the order of the file.
pub(super) fn of(build: Build) -> Vec<Row> {
    match build {
        Build::Measured | Build::Plain => over_shm(),
        Build::Typed => (0..=KEYS).map(with_metadata).collect(),
        Build::Faces => {
            let joined = Row {
                name: "joined-32".to_owned(),
                load: Load::Joined { in_flight: BATCH },
            };
            let mut rows = of_32_bytes();
            rows.push(joined);
            rows
        }
        Build::Xdp | Build::Dpdk => {
            let mut rows = of_32_bytes();
            rows.push(Row {
                name: "packed-32".to_owned(),
                load: Load::Packed { in_flight: BATCH },
            });
            rows
        }
        Build::Layer => ["plain", "layer", "channel", "channel-layer"]
            .map(of_face)
            .into(),
        Build::Kv => of_kv(),
        Build::Replica => vec![
            of_service("one-put", Some(0), 1),
            of_service("one-follow", Some(1), 1),
            of_service("puts", Some(0), PUTS),
            of_service("puts-follow", Some(1), PUTS),
        ],
        Build::Index => vec![
            of_service("gets", None, KV_IN_FLIGHT),
            of_service("one-get", None, 1),
        ],
        Build::Sequencer => vec![
            of_service("echoes", Some(0), KV_IN_FLIGHT),
            of_service("numbers", Some(1), KV_IN_FLIGHT),
            of_service("next", Some(2), KV_IN_FLIGHT),
            of_service("one-next", Some(2), 1),
        ],
        Build::Large => vec![of_service("request", None, 1)],
    }
}

fn of_32_bytes() -> Vec<Row> {
    let mut rows = over_shm();
    rows.retain(|row| matches!(&*row.name, "batch-32" | "one-32"));
    rows
}

fn with_metadata(keys: u32) -> Row {
    Row {
        name: format!("meta-{keys}"),
        load: Load::Typed { keys },
    }
}

fn of_face(face: &'static str) -> Row {
    Row {
        name: face.to_owned(),
        load: Load::Layered { face },
    }
}

fn of_kv() -> Vec<Row> {
    let row = |name: &str, gets, in_flight| Row {
        name: name.to_owned(),
        load: Load::Kv { gets, in_flight },
    };
    vec![
        row("gets", 100, KV_IN_FLIGHT),
        row("mixed", 95, KV_IN_FLIGHT),
        row("sets", 0, KV_IN_FLIGHT),
        row("one-get", 100, 1),
    ]
}

fn of_service(name: &str, kind: Option<u32>, in_flight: u32) -> Row {
    Row {
        name: name.to_owned(),
        load: Load::Service { kind, in_flight },
    }
}

fn over_shm() -> Vec<Row> {
    let row = |name: String, (size, in_flight, sessions), has_deadline| Row {
        name,
        load: Load::Plain {
            size,
            in_flight,
            sessions,
            has_deadline,
        },
    };
    let mut rows = Vec::new();
    for (mode, in_flight) in [("batch", BATCH), ("one", 1)] {
        for size in [8, 32, 56, 200, 1000] {
            rows.push(row(format!("{mode}-{size}"), (size, in_flight, 4), false));
        }
        rows.push(row(format!("{mode}-deadline"), (32, in_flight, 4), true));
    }
    for sessions in [1, 2, 8] {
        let name = format!("sessions-{sessions}");
        rows.push(row(name, (32, BATCH, sessions), false));
    }
    rows.push(row("idle".to_owned(), (32, 0, 4), false));
    rows
}

#[cfg(test)]
mod tests;
