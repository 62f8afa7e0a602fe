//! Progress of a run on the standard error: a bar on a terminal, a line from time to time
//! elsewhere. [`Progress`] is for measurements in rounds, [`Timeline`] for a simulation through its
//! virtual time.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar, if the standard error is a terminal. Dropping it removes the bar.
struct Bar(Option<ProgressBar>);

impl Bar {
    fn new(template: &str, len: u64) -> Self {
        Self(std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(template).expect("the template is valid");
            ProgressBar::new(len).with_style(style)
        }))
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Progress of measurements.
pub struct Progress {
    bar: Bar,
    begin: Instant,
    rounds: u32,
}

impl Progress {
    /// A run of `measurements` in `rounds`.
    pub fn start(measurements: u64, rounds: u32) -> Self {
        const TEMPLATE: &str = "{bar:30} {pos}/{len} {per_sec} eta {eta}  {msg}";
        let bar = Bar::new(TEMPLATE, measurements);
        if let Some(bar) = &bar.0 {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self {
            bar,
            begin: Instant::now(),
            rounds,
        }
    }

    /// Shows the measurement that runs now.
    pub fn measuring(&self, round: u32, label: &str) {
        if let Some(bar) = &self.bar.0 {
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
        match &self.bar.0 {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    /// Shows a line of progress if there is no bar.
    pub fn line(&self, text: &str) {
        if self.bar.0.is_none() {
            eprintln!("{text}");
        }
    }

    /// Counts further measurements as done.
    pub fn advance(&self, measurements: u64) {
        if let Some(bar) = &self.bar.0 {
            bar.inc(measurements);
        }
    }

    /// Notes that a round is done.
    pub fn round_done(&self, round: u32) {
        if self.bar.0.is_none() {
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

/// Time between two lines about a simulation.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Progress of a simulation, in microseconds of its virtual time.
pub struct Timeline {
    bar: Bar,
    title: String,
    end_us: u64,
    last_line: Instant,
}

impl Timeline {
    /// A simulation that ends at this time.
    pub fn start(title: &str, end_us: u64) -> Self {
        let bar = Bar::new("{msg}  {bar:30} {pos}/{len} µs  eta {eta}", end_us);
        if let Some(bar) = &bar.0 {
            bar.set_message(title.to_owned());
        }
        Self {
            bar,
            title: title.to_owned(),
            end_us,
            last_line: Instant::now(),
        }
    }

    /// Shows that the simulation has reached this time.
    pub fn reached(&mut self, at_us: u64) {
        if let Some(bar) = &self.bar.0 {
            bar.set_position(at_us);
        } else if self.last_line.elapsed() >= BETWEEN_LINES {
            self.last_line = Instant::now();
            eprintln!("{}: {at_us} of {} µs", self.title, self.end_us);
        }
    }
}
