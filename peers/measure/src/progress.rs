//! Progress on the standard error: a bar on a terminal, a line for each round elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

const TEMPLATE: &str = "{bar:30} {pos}/{len} eta {eta}  {msg}";

/// Progress of a run. Dropping it removes the bar.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    begin: Instant,
    rounds: u32,
}

impl Progress {
    pub(crate) fn start(turns: u64, rounds: u32) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(TEMPLATE).expect("the template is valid");
            let bar = ProgressBar::new(turns).with_style(style);
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
    pub(crate) fn measuring(&self, round: u32, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("round {round}: {what}"));
        }
    }

    /// Shows a line.
    pub(crate) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Notes that one more measurement of a round is done.
    pub(crate) fn advance(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    pub(crate) fn round_done(&self, round: u32) {
        if self.bar.is_none() {
            let elapsed = self.begin.elapsed();
            let left = elapsed / round * (self.rounds - round);
            eprintln!(
                "round {round} of {} done after {:.0} s, about {:.0} s to go",
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
