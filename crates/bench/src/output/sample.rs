//! A row for tests, with a spread of 5 % around a median of 400 ns, twice the baseline.

use harness::row::{Row, Spread};
use serde_json::Map;

pub(crate) fn sample() -> Row {
    let spread = Spread {
        median: 400.0,
        min: 390.0,
        max: 410.0,
    };
    Row {
        transport: "shm".into(),
        params: Map::from_iter([("size".to_owned(), 32.into())]),
        runs: 5,
        ..Row::new("latency", ("rtt_p50", "ns"), spread).against(200.0, "raw")
    }
}
