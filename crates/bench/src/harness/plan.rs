//! Rounds. A round measures every case once, and the case's baseline right before it. Therefore a
//! disturbance of some seconds affects one round of many cases, not all rounds of one case, and
//! both sides of a ratio see the machine in the same state.

use std::time::{Duration, Instant};

use super::case::{Case, Pinger};
use harness::progress::Progress;
use harness::signal;

/// The shortest measurement: in a shorter one, start-up effects would count.
const SHORTEST: Duration = Duration::from_millis(20);

/// The number of rounds, and the time for them.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds.
    pub runs: u32,
    /// Approximate time of all rounds.
    pub budget: Duration,
    /// True to show the counts of each measurement.
    pub verbose: bool,
}

/// Removes the cases whose fixed costs alone would take longer than the available time, and returns
/// their names.
pub fn leave_out(cases: &mut Vec<Case>, plan: Plan) -> Vec<String> {
    let mut left_out = Vec::new();
    cases.retain(|case| {
        let least = case.overhead() * plan.runs;
        if least > plan.budget {
            let seconds = least.as_secs_f64();
            left_out.push(format!("{}: takes {seconds:.0} s", case.label()));
        }
        least <= plan.budget
    });
    left_out
}

/// Splits cases by experiment, so that an experiment's rows appear when it is done. All
/// measurements have the same span.
pub fn groups(cases: &mut [Case], plan: Plan) -> impl Iterator<Item = (&mut [Case], Plan)> {
    let overhead =
        move |cases: &[Case]| plan.runs * cases.iter().map(Case::overhead).sum::<Duration>();
    let measurements = |cases: &[Case]| cases.iter().map(Case::measurements).sum::<u32>();
    let left = plan.budget.saturating_sub(overhead(cases));
    let all = measurements(cases).max(1);
    let groups = cases.chunk_by_mut(|a, b| a.experiment() == b.experiment());
    groups.map(move |group| {
        let budget = overhead(group) + left * measurements(group) / all;
        (group, Plan { budget, ..plan })
    })
}

/// Measures every case in every round. If a case's figures depend on the machine's speed, a
/// ping-pong comes before and after each of its measurements. A round that fails is counted, and
/// the next one begins: [`Case::check`] reports whether a case has values. The cases keep their
/// values even if this ends early.
///
/// # Errors
/// [`signal::Interrupted`]; or a count or a simulation failed, which would fail in every round.
pub fn run(cases: &mut [Case], plan: Plan, ping: Pinger<'_>) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut left = plan.runs * cases.iter().map(Case::measurements).sum::<u32>();
    let mut overhead = plan.runs * cases.iter().map(Case::overhead).sum::<Duration>();
    let progress = Progress::start(u64::from(left), plan.runs);
    for round in 1..=plan.runs {
        for case in cases.iter_mut() {
            signal::check()?;
            progress.measuring(round, &case.label());
            let time = plan.budget.saturating_sub(begin.elapsed() + overhead);
            if !case.is_given_up() {
                match case.measure(round, span(time, left), ping) {
                    Ok(details) if plan.verbose && !details.is_empty() => {
                        progress.say(&format!("{}, round {round}", case.label()), &details);
                    }
                    Ok(_) => {}
                    Err(error) => progress.say(&case.on_failure(round, error)?, &[]),
                }
            }
            left -= case.measurements();
            overhead -= case.overhead();
            progress.advance(u64::from(case.measurements()));
        }
        progress.round_done(round);
    }
    Ok(())
}

/// The time of each of `left` measurements that share `time`, at least [`SHORTEST`].
fn span(time: Duration, left: u32) -> Duration {
    (time / left.max(1)).max(SHORTEST)
}

#[cfg(test)]
mod tests;
