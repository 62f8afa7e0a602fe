//! Runs the client of a service through the steps of its experiment: for a while, or until nothing
//! is in flight.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use dunlin::Rpc;

use super::Medium;

/// A step fails if nothing is answered for this long.
pub(crate) const STUCK: Duration = Duration::from_secs(8);

/// Iterations between two looks at the clock.
const BLOCK: u32 = 64;

/// The state of a client that issues a new request for each answered one.
pub(crate) trait Stepping {
    /// The requests that were answered in all steps.
    fn answered(&self) -> u64;

    /// Takes out the description of a wrong answer, if there was one.
    fn take_wrong(&mut self) -> Option<String>;
}

/// Runs for `span`, or until `is_enough` returns true.
///
/// # Errors
/// An answer was wrong, or nothing was answered for [`STUCK`] after the span.
pub(crate) fn run_for<T: Medium, A: Stepping>(
    rpc: &mut Rpc<T, A>,
    span: Duration,
    is_enough: impl Fn(&A) -> bool,
) -> anyhow::Result<()> {
    let (begin, first) = (Instant::now(), rpc.app().answered());
    loop {
        for _ in 0..BLOCK {
            rpc.run_once();
        }
        let app = rpc.app_mut();
        if let Some(wrong) = app.take_wrong() {
            bail!(wrong);
        }
        // On a busy machine, the server may not have run at all during a short span.
        if is_enough(app) || (begin.elapsed() >= span && app.answered() > first) {
            return Ok(());
        }
        ensure!(
            begin.elapsed() < span + STUCK,
            "nothing was answered for {} s",
            STUCK.as_secs()
        );
    }
}
