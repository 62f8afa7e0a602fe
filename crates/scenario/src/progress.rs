//! Progress of a run on the standard error: a bar on a terminal, a line from time to time
//! elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use dunlin_sim::scenario::Nanos;
use indicatif::{ProgressBar, ProgressStyle};

const TEMPLATE: &str = "{msg}  {bar:30} {pos}/{len} µs  eta {eta}";
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Progress of one run; the bar goes when it is dropped.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    title: String,
    end: Nanos,
    told: Instant,
}

impl Progress {
    pub(crate) fn start(title: &str, end: Nanos) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(TEMPLATE).expect("the template is valid");
            let bar = ProgressBar::new(end.0 / 1000).with_style(style);
            bar.set_message(title.to_owned());
            bar
        });
        Self {
            bar,
            title: title.to_owned(),
            end,
            told: Instant::now(),
        }
    }

    /// Shows that the run has reached this virtual time.
    pub(crate) fn reached(&mut self, at: Nanos) {
        if let Some(bar) = &self.bar {
            bar.set_position(at.0 / 1000);
        } else if self.told.elapsed() >= BETWEEN_LINES {
            self.told = Instant::now();
            let (at, end) = (at.0 / 1000, self.end.0 / 1000);
            eprintln!("{}: {at} of {end} µs", self.title);
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
