//! The counted situations: for each, a name in `budget.toml` and the arguments with which the
//! program runs it.

use super::builds::Build;

/// Number of RPCs or iterations that are counted: enough for the counts to include events that
/// happen once in many RPCs.
const COUNT: u64 = 6000;

/// Requests in flight of the rows `batch`.
const BATCH: u32 = 32;

/// One situation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    size: u32,
    /// Requests in flight; 0 if the endpoints are idle.
    in_flight: u32,
    sessions: u32,
    has_deadline: bool,
}

impl Row {
    /// Arguments of the example.
    pub(super) fn args(&self) -> Vec<String> {
        let numbers = [
            u64::from(self.size),
            self.in_flight.into(),
            self.sessions.into(),
            COUNT,
        ];
        let deadline = self.has_deadline.then(|| "deadline".to_owned());
        let numbers = numbers.iter().map(u64::to_string);
        numbers.chain(deadline).collect()
    }

    /// The unit of work that its numbers refer to: an RPC or an iteration.
    pub(super) fn per(&self) -> &'static str {
        if self.in_flight == 0 {
            "iteration"
        } else {
            "RPC"
        }
    }
}

/// The rows of a section, in the order of the file.
pub(super) fn of(build: Build) -> Vec<Row> {
    match build {
        Build::Measured | Build::Plain => over_shm(),
        Build::Dpdk => {
            let mut rows = over_shm();
            rows.retain(|row| row.name == "batch-32");
            rows
        }
    }
}

fn over_shm() -> Vec<Row> {
    let row = |name: String, size, in_flight, sessions| Row {
        name,
        size,
        in_flight,
        sessions,
        has_deadline: false,
    };
    let mut rows = Vec::new();
    for (mode, in_flight) in [("batch", BATCH), ("one", 1)] {
        for size in [8, 32, 56, 200, 1000] {
            rows.push(row(format!("{mode}-{size}"), size, in_flight, 4));
        }
        rows.push(Row {
            has_deadline: true,
            ..row(format!("{mode}-deadline"), 32, in_flight, 4)
        });
    }
    for sessions in [1, 2, 8] {
        rows.push(row(format!("sessions-{sessions}"), 32, BATCH, sessions));
    }
    rows.push(row("idle".to_owned(), 32, 0, 4));
    rows
}

#[cfg(test)]
mod tests;
