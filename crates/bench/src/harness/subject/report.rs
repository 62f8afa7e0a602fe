//! Reports of clients.

use serde::{Deserialize, Serialize};

use super::side::Side;
use crate::harness::probe::Measurement;

/// The report of a client.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) values: Vec<f64>,
    pub(crate) side: Side,
}

impl Report {
    /// The report as a measurement, with the counts of both sides.
    pub(crate) fn measurement(self, server: &Side) -> Measurement {
        let alarms = [self.side.alarm("client"), server.alarm("server")];
        Measurement {
            values: self.values,
            alarms: alarms.into_iter().flatten().collect(),
            details: vec![self.side.line("client"), server.line("server")],
        }
    }
}
