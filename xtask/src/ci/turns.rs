//! Runs the steps in order, in two lanes. Called by `ci`.
//!
//! A step that allows no company has the machine to itself. The others run in two lanes. The first
//! lane begins with the steps of [`Company::Leftovers`] (the tests), in order. Meanwhile the second
//! lane runs the other steps, on the processor time that the first one leaves over: many tests
//! wait, or keep only one processor busy. After that both lanes share the rest, as equals.
//!
//! If only a few tests of a step fail, they run again. If they then pass, the run goes on, and the
//! summary names them with their faults: a test that depends on the scheduler must be mended, but
//! is no evidence against the change under test.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::step::{Company, Outcome, Share, Step};
use crate::workspaces;

/// If more tests than this fail in a step, they do not run again.
const MOST_AGAIN: usize = 3;

/// A step that has run.
#[derive(Debug)]
pub(super) struct Ran<'a> {
    pub(super) step: &'a Step,
    pub(super) outcome: Outcome,
    pub(super) took: Duration,
    /// Processor time of the step and of the processes that it waited for.
    pub(super) cpu: Duration,
    /// The file with the step's output.
    log: PathBuf,
}

impl Ran<'_> {
    /// The names of the failed tests in the step's output.
    fn failed_tests(&self) -> anyhow::Result<Vec<String>> {
        let text = std::fs::read(&self.log).context("cannot read the output of a step")?;
        let text = String::from_utf8_lossy(&text);
        let failed = text.lines().filter_map(|line| {
            let line = line.strip_prefix("test ")?;
            line.strip_suffix(" ... FAILED")
        });
        Ok(failed.map(str::to_owned).collect())
    }

    /// The lines of the step's output that tell most about its failure: lines that explain failed
    /// tests, then the last lines; at most `count` of each kind.
    pub(super) fn telling_lines(&self, count: usize) -> anyhow::Result<String> {
        let text = std::fs::read(&self.log)
            .with_context(|| format!("cannot read {}", self.log.display()))?;
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(count)..];
        let failures = failures(&lines).take(count);
        Ok(failures
            .chain(last.iter().copied())
            .collect::<Vec<_>>()
            .join("\n"))
    }
}

/// The lines about failed tests: in the output of each test program, from `failures:` to its
/// result.
fn failures<'a>(lines: &[&'a str]) -> impl Iterator<Item = &'a str> {
    lines
        .iter()
        .copied()
        .scan(false, |is_inside, line| {
            *is_inside |= line == "failures:";
            let is_told = *is_inside;
            *is_inside &= !line.starts_with("test result:");
            Some(is_told.then_some(line))
        })
        .flatten()
}

/// Receives the output of steps.
pub(super) type Show<'s> = &'s (dyn Fn(&[u8]) + Sync);

/// Runs all steps and shows their output; the result is in their order.
pub(super) fn run<'a>(
    root: &Path,
    steps: &'a [Step],
    show: Show<'_>,
) -> anyhow::Result<Vec<Ran<'a>>> {
    let logs = logs(root)?;
    let mut all = Vec::new();
    let is_alone = |step: &Step| step.company() == Company::Nothing;
    for turn in steps.chunk_by(|one, next| !is_alone(one) && !is_alone(next)) {
        match turn {
            [step] => {
                show(title(step).as_bytes());
                let log = logs.join(format!("{}.log", all.len()));
                let mut shown = 0;
                let go_on = |log: &Path| shown += show_from(log, shown, show);
                all.push(time(root, step, log, Share::Fair, go_on)?);
            }
            _ => all.extend(together(root, turn, &logs, all.len(), show)?),
        }
    }
    Ok(all)
}

/// The lanes in which steps run at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lane {
    First,
    Second,
}

/// Steps that have not begun.
struct Queue<'a> {
    /// They run in the first lane, in order, before the others.
    preferred: VecDeque<(usize, &'a Step)>,
    others: VecDeque<(usize, &'a Step)>,
    /// The first lane has not taken one of the others yet.
    is_preferring: bool,
}

impl<'a> Queue<'a> {
    fn new(steps: &'a [Step]) -> Self {
        let (preferred, others): (VecDeque<_>, _) = steps
            .iter()
            .enumerate()
            .partition(|(_, step)| step.company() == Company::Leftovers);
        Self {
            is_preferring: !preferred.is_empty(),
            preferred,
            others,
        }
    }

    /// The next step of a lane, with its number and its share of the processors.
    fn next(&mut self, lane: Lane) -> Option<(usize, &'a Step, Share)> {
        if lane == Lane::First {
            if let Some((at, step)) = self.preferred.pop_front() {
                return Some((at, step, Share::Fair));
            }
            self.is_preferring = false;
        }
        let (at, step) = self.others.pop_front()?;
        let share = match self.is_preferring {
            true => Share::Leftovers,
            false => Share::Fair,
        };
        Some((at, step, share))
    }
}

/// Runs these steps in two lanes, and prints the output of each when it has ended. `first` is the
/// number of the first one among all steps.
fn together<'a>(
    root: &Path,
    steps: &'a [Step],
    logs: &Path,
    first: usize,
    show: Show<'_>,
) -> anyhow::Result<Vec<Ran<'a>>> {
    let queue = Mutex::new(Queue::new(steps));
    let next = |lane| queue.lock().expect("no step panics").next(lane);
    let printing = Mutex::new(());
    let worker = |lane| {
        let mut ran = Vec::new();
        while let Some((at, step, share)) = next(lane) {
            let log = logs.join(format!("{}.log", first + at));
            show(format!("--- {} begins\n", step.name).as_bytes());
            let result = time(root, step, log, share, |_| ())?;
            let _printing = printing.lock().expect("no step panics");
            show(title(step).as_bytes());
            show(&std::fs::read(&result.log)?);
            ran.push((at, result));
        }
        anyhow::Ok(ran)
    };
    let mut ran = Vec::new();
    thread::scope(|scope| {
        let lanes = [Lane::First, Lane::Second];
        let workers = lanes.map(|lane| scope.spawn(move || worker(lane)));
        for worker in workers {
            ran.extend(worker.join().expect("no step panics")?);
        }
        anyhow::Ok(())
    })?;
    ran.sort_by_key(|(at, _)| *at);
    Ok(ran.into_iter().map(|(_, ran)| ran).collect())
}

fn title(step: &Step) -> String {
    format!("\n=== {}: {}\n", step.name, step.script)
}

/// Runs a step and calls `meanwhile` with its log repeatedly. If few tests fail, they run again.
fn time<'a>(
    root: &Path,
    step: &'a Step,
    log: PathBuf,
    share: Share,
    mut meanwhile: impl FnMut(&Path),
) -> anyhow::Result<Ran<'a>> {
    let mut ran = run_once(root, step, log, share, &mut meanwhile)?;
    let failed = match ran.outcome {
        Outcome::Failed(_) => ran.failed_tests()?,
        _ => Vec::new(),
    };
    let again = step.again(&failed);
    if let Some(again) = again.filter(|_| (1..=MOST_AGAIN).contains(&failed.len())) {
        let log = ran.log.with_extension("again.log");
        let second = run_once(root, &again, log, share, |_| ())?;
        ran.took += second.took;
        ran.cpu += second.cpu;
        if second.outcome == Outcome::Passed {
            ran.outcome = Outcome::Unsteady(failed);
        }
    }
    Ok(ran)
}

/// Runs a step and calls `meanwhile` with its log repeatedly.
fn run_once<'a>(
    root: &Path,
    step: &'a Step,
    log: PathBuf,
    share: Share,
    mut meanwhile: impl FnMut(&Path),
) -> anyhow::Result<Ran<'a>> {
    let output = File::create(&log).context("cannot make a file for the output")?;
    let begin = Instant::now();
    let (outcome, cpu) = step.run_into(root, output, share, &mut || meanwhile(&log))?;
    let took = begin.elapsed();
    Ok(Ran {
        step,
        outcome,
        took,
        cpu,
        log,
    })
}

/// Shows the bytes of a log from `at` on, and returns their number. Bytes that cannot be read now
/// are shown later, or only stay in the log.
fn show_from(log: &Path, at: u64, show: Show<'_>) -> u64 {
    let mut rest = Vec::new();
    let mut read = || {
        let mut log = File::open(log)?;
        log.seek(SeekFrom::Start(at))?;
        log.read_to_end(&mut rest)
    };
    match read() {
        Ok(count) => {
            show(&rest);
            count as u64
        }
        Err(_) => 0,
    }
}

/// The folder for outputs of steps.
fn logs(root: &Path) -> anyhow::Result<PathBuf> {
    let logs = workspaces::target_folder(root)?.join("ci");
    std::fs::create_dir_all(&logs).context("cannot make a folder for the outputs of steps")?;
    Ok(logs)
}

#[cfg(test)]
mod tests;
