//! Progress of a run on the standard error: a bar on a terminal, a line for each round elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

const TEMPLATE: &str = "{bar:30} {pos}/{len} {per_sec} eta {eta}  {msg}";

/// Progress of one run. Dropping it removes the bar.
pub struct Progress {
    bar: Option<ProgressBar>,
    begin: Instant,
    rounds: u32,
}

impl Progress {
    /// A run of `measurements` in `rounds`.
    pub fn start(measurements: u64, rounds: u32) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(TEMPLATE).expect("the template is valid");
            let bar = ProgressBar::new(measurements).with_style(style);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self {
            bar,
            begin: Instant::now(),
            rounds,
        }
    }

    /// Shows the measurement that runs now.
    pub fn measuring(&self, round: u32, label: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("round {round}: {label}"));
        }
    }

    /// Shows a line, and more lines below it.
    pub fn say(&self, line: &str, more: &[String]) {
        let mut text = line.to_owned();
        for detail in more {
            text += "\n    ";
            text += detail;
        }
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    /// Shows a line of progress if there is no bar.
    pub fn line(&self, text: &str) {
        if self.bar.is_none() {
            eprintln!("{text}");
        }
    }

    /// Counts further measurements as done.
    pub fn advance(&self, measurements: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(measurements);
        }
    }

    /// Notes that a round is done.
    pub fn round_done(&self, round: u32) {
        if self.bar.is_none() {
            let elapsed = self.begin.elapsed();
            let left = elapsed / round * (self.rounds - round);
            eprintln!(
                "round {round} of {} done after {:.1} s, about {:.1} s to go",
                self.rounds,
                elapsed.as_secs_f64(),
                left.as_secs_f64()
            );
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
