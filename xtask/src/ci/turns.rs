//! Runs the steps in order. Consecutive untimed steps run two at a time; any other step has the
//! machine to itself. Called by `ci`.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::step::{Outcome, Step};
use crate::workspaces;

/// Number of untimed steps that run at a time.
const AT_ONCE: usize = 2;

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
    /// The last lines that the step printed.
    pub(super) fn last_lines(&self, count: usize) -> anyhow::Result<String> {
        let text = std::fs::read(&self.log)
            .with_context(|| format!("cannot read {}", self.log.display()))?;
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        Ok(lines[lines.len().saturating_sub(count)..].join("\n"))
    }
}

/// Runs all steps; the result is in their order.
pub(super) fn run<'a>(root: &Path, steps: &'a [Step]) -> anyhow::Result<Vec<Ran<'a>>> {
    let logs = logs(root)?;
    let mut all = Vec::new();
    for turn in steps.chunk_by(|one, next| one.is_untimed() && next.is_untimed()) {
        match turn {
            [step] => {
                title(step);
                let log = logs.join(format!("{}.log", all.len()));
                let mut shown = 0;
                let show = |log: &Path| shown += show_from(log, shown);
                all.push(time(root, step, log, show)?);
            }
            _ => all.extend(together(root, turn, &logs, all.len())?),
        }
    }
    Ok(all)
}

/// Runs these steps, [`AT_ONCE`] at a time, and prints the output of each when it has ended.
/// `first` is the number of the first one among all steps.
fn together<'a>(
    root: &Path,
    steps: &'a [Step],
    logs: &Path,
    first: usize,
) -> anyhow::Result<Vec<Ran<'a>>> {
    let queue = Mutex::new(steps.iter().enumerate());
    let next = || queue.lock().expect("no step panics").next();
    let printing = Mutex::new(());
    let worker = || {
        let mut ran = Vec::new();
        while let Some((at, step)) = next() {
            let log = logs.join(format!("{}.log", first + at));
            let result = time(root, step, log, |_| ())?;
            let _printing = printing.lock().expect("no step panics");
            title(step);
            print!("{}", String::from_utf8_lossy(&std::fs::read(&result.log)?));
            ran.push((at, result));
        }
        anyhow::Ok(ran)
    };
    let mut ran = Vec::new();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            ran.extend(worker.join().expect("no step panics")?);
        }
        anyhow::Ok(())
    })?;
    ran.sort_by_key(|(at, _)| *at);
    Ok(ran.into_iter().map(|(_, ran)| ran).collect())
}

fn title(step: &Step) {
    println!("\n=== {}: {}", step.name, step.script);
}

/// Runs a step and calls `meanwhile` with its log repeatedly.
fn time<'a>(
    root: &Path,
    step: &'a Step,
    log: PathBuf,
    mut meanwhile: impl FnMut(&Path),
) -> anyhow::Result<Ran<'a>> {
    let output = File::create(&log).context("cannot make a file for the output")?;
    let begin = Instant::now();
    let (outcome, cpu) = step.run_into(root, output, &mut || meanwhile(&log))?;
    let took = begin.elapsed();
    Ok(Ran {
        step,
        outcome,
        took,
        cpu,
        log,
    })
}

/// Prints the bytes of a log from `at` on, and returns their number. Bytes that cannot be read now
/// are printed later, or only stay in the log.
fn show_from(log: &Path, at: u64) -> u64 {
    let show = || {
        let mut log = File::open(log)?;
        log.seek(SeekFrom::Start(at))?;
        let count = io::copy(&mut log, &mut io::stdout())?;
        io::stdout().flush()?;
        io::Result::Ok(count)
    };
    show().unwrap_or(0)
}

/// The folder for outputs of steps.
fn logs(root: &Path) -> anyhow::Result<PathBuf> {
    let logs = workspaces::target_folder(root)?.join("ci");
    std::fs::create_dir_all(&logs).context("cannot make a folder for the outputs of steps")?;
    Ok(logs)
}

#[cfg(test)]
mod tests;
