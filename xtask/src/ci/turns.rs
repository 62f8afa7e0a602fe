//! Runs the steps in their order. Consecutive untimed steps run two at once; any other step has the
//! machine to itself. Called by `ci`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::step::{Outcome, Step};
use crate::workspaces;

/// Untimed steps that run at once.
const AT_ONCE: usize = 2;

/// A step that has run.
#[derive(Debug)]
pub(super) struct Ran<'a> {
    pub(super) step: &'a Step,
    pub(super) outcome: Outcome,
    pub(super) took: Duration,
}

/// Runs all steps; the result is in their order.
pub(super) fn run<'a>(root: &Path, steps: &'a [Step]) -> anyhow::Result<Vec<Ran<'a>>> {
    let mut all = Vec::new();
    for turn in steps.chunk_by(|one, next| one.is_untimed() && next.is_untimed()) {
        match turn {
            [step] => {
                title(step);
                all.push(time(step, |step| step.run(root))?);
            }
            _ => all.extend(together(root, turn)?),
        }
    }
    Ok(all)
}

/// Runs these steps, [`AT_ONCE`] at a time, and prints the output of each when it has ended.
fn together<'a>(root: &Path, steps: &'a [Step]) -> anyhow::Result<Vec<Ran<'a>>> {
    let logs = logs(root)?;
    let queue = Mutex::new(steps.iter().enumerate());
    let next = || queue.lock().expect("no step panics").next();
    let printing = Mutex::new(());
    let worker = || {
        let mut ran = Vec::new();
        while let Some((at, step)) = next() {
            let log = logs.join(format!("{at}.log"));
            let output = File::create(&log).context("cannot make a file for the output")?;
            let result = time(step, |step| step.run_into(root, output))?;
            let _printing = printing.lock().expect("no step panics");
            title(step);
            print!("{}", String::from_utf8_lossy(&std::fs::read(&log)?));
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

fn time<'a>(
    step: &'a Step,
    run: impl FnOnce(&Step) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Ran<'a>> {
    let begin = Instant::now();
    let outcome = run(step)?;
    let took = begin.elapsed();
    Ok(Ran {
        step,
        outcome,
        took,
    })
}

/// The folder for outputs of steps that run at once.
fn logs(root: &Path) -> anyhow::Result<PathBuf> {
    let metadata = workspaces::metadata(root, "")?;
    let target = metadata["target_directory"].as_str();
    let logs = Path::new(target.context("cargo metadata names no target directory")?).join("ci");
    std::fs::create_dir_all(&logs).context("cannot make a folder for the outputs of steps")?;
    Ok(logs)
}

#[cfg(test)]
mod tests;
