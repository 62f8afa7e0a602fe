//! The results of pings, as lines while they run and as a histogram at the end.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::Args;
use super::trip::Outcome;
use crate::commands::echo::micros;
use crate::say::print;

/// Widest bar of the histogram.
const BAR: u64 = 40;

/// Time between two progress lines of a flood, on a terminal.
const PROGRESS: Duration = Duration::from_millis(500);

const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p999", 0.999),
    ("max", 1.0),
];

/// Counts and times.
pub(super) struct Tally<'a> {
    args: &'a Args,
    to: SocketAddr,
    begin: Instant,
    /// In ns.
    times: Histogram<u64>,
    sum: Duration,
    least: Duration,
    most: Duration,
    answered: u64,
    refused: u64,
    wrong: u64,
    lost: u64,
    shown: Instant,
}

/// The number of round trips that took between `from` and `to`.
struct Bucket {
    from: Duration,
    to: Duration,
    count: u64,
}

impl<'a> Tally<'a> {
    pub(super) fn new(args: &'a Args, to: SocketAddr) -> Self {
        let now = Instant::now();
        Self {
            args,
            to,
            begin: now,
            times: Histogram::new_with_bounds(1, 1 << 40, 3).expect("the bounds are in order"),
            sum: Duration::ZERO,
            least: Duration::MAX,
            most: Duration::ZERO,
            answered: 0,
            refused: 0,
            wrong: 0,
            lost: 0,
            shown: now,
        }
    }

    /// Names the server.
    ///
    /// # Errors
    /// The output is closed.
    pub(super) fn begin(&self) -> anyhow::Result<()> {
        if self.args.options.json {
            return Ok(());
        }
        let (bytes, over) = (self.args.size, self.args.options.transport.name());
        say(&format!(
            "PING {} over {over}: {bytes} bytes of data",
            self.to
        ))
    }

    /// Counts a ping and prints its line. In a flood, answered pings get no line, and only the
    /// first refusal gets one.
    ///
    /// # Errors
    /// The output is closed.
    pub(super) fn add(&mut self, seq: u64, outcome: &Outcome) -> anyhow::Result<()> {
        let bytes = self.args.size;
        let (line, object) = match outcome {
            Outcome::Answered(span) => {
                self.answered += 1;
                self.record(*span);
                if self.args.flood {
                    return self.progress();
                }
                let line = format!(
                    "{bytes} bytes from {}: seq={seq} time={} us",
                    self.to,
                    micros(*span)
                );
                (line, json!({"seq": seq, "bytes": bytes, "us": us(*span)}))
            }
            Outcome::Refused(span, code) => {
                self.refused += 1;
                self.record(*span);
                if self.args.flood && self.refused > 1 {
                    return self.progress();
                }
                let to = self.to;
                let line = format!(
                    "refused by {to}: seq={seq} time={} us ({code})",
                    micros(*span)
                );
                (
                    line,
                    json!({"seq": seq, "refused": code.to_string(), "us": us(*span)}),
                )
            }
            Outcome::Wrong => {
                self.wrong += 1;
                let what = "the answer is not what was sent";
                (
                    format!("wrong: seq={seq} ({what})"),
                    json!({"seq": seq, "wrong": what}),
                )
            }
            Outcome::Lost(why) => {
                self.lost += 1;
                (
                    format!("lost: seq={seq} ({why})"),
                    json!({"seq": seq, "lost": why}),
                )
            }
            Outcome::Interrupted => return Ok(()),
        };
        if self.args.options.json {
            say(&object.to_string())
        } else {
            say(&line)
        }
    }

    /// True if an echo came back.
    pub(super) const fn has_echoes(&self) -> bool {
        self.answered > 0
    }

    /// True if a server has answered that it does not echo.
    pub(super) const fn has_refusals(&self) -> bool {
        self.refused > 0
    }

    /// The summary.
    ///
    /// # Errors
    /// The output is closed.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        if self.args.options.json {
            return say(&self.object().to_string());
        }
        if self.args.flood && std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
        say(&self.text())
    }

    fn record(&mut self, span: Duration) {
        self.sum += span;
        self.least = self.least.min(span);
        self.most = self.most.max(span);
        let ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.times.saturating_record(ns.max(1));
    }

    /// Shows the progress of a flood, which prints no lines for its pings.
    fn progress(&mut self) -> anyhow::Result<()> {
        // Reads the clock only for every 64th ping.
        if self.times.len().is_multiple_of(64) && self.shown.elapsed() > PROGRESS {
            self.shown = Instant::now();
            if std::io::stderr().is_terminal() {
                let median = micros(self.quantile(0.5));
                eprint!("\r{} answered, median {median} us\x1b[K", self.times.len());
                std::io::stderr().flush()?;
            }
        }
        Ok(())
    }

    fn sent(&self) -> u64 {
        self.answered + self.refused + self.wrong + self.lost
    }

    fn quantile(&self, quantile: f64) -> Duration {
        // The histogram rounds a time up, so its answer may exceed the largest time.
        Duration::from_nanos(self.times.value_at_quantile(quantile)).min(self.most)
    }

    fn mean(&self) -> Duration {
        let count = u32::try_from(self.times.len()).unwrap_or(u32::MAX);
        self.sum.checked_div(count).unwrap_or_default()
    }

    /// Pings without a right answer or a refusal, in percent of all.
    fn loss(&self) -> f64 {
        let lost = (self.lost + self.wrong) as f64;
        100.0 * lost / (self.sent().max(1) as f64)
    }

    fn object(&self) -> Value {
        let mut times = serde_json::Map::new();
        if !self.times.is_empty() {
            times.insert("min".to_owned(), json!(us(self.least)));
            times.insert("mean".to_owned(), json!(us(self.mean())));
            for (name, quantile) in QUANTILES {
                times.insert(name.to_owned(), json!(us(self.quantile(quantile))));
            }
        }
        let histogram = self.buckets().into_iter().map(|bucket| {
            json!({"from_us": us(bucket.from), "to_us": us(bucket.to), "count": bucket.count})
        });
        json!({
            "summary": self.to.to_string(),
            "transport": self.args.options.transport.name(),
            "bytes": self.args.size,
            "sent": self.sent(),
            "answered": self.answered,
            "refused": self.refused,
            "wrong": self.wrong,
            "lost": self.lost,
            "loss_percent": self.loss(),
            "seconds": self.begin.elapsed().as_secs_f64(),
            "us": times,
            "histogram": histogram.collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let (sent, answered, loss) = (self.sent(), self.answered, self.loss());
        let seconds = self.begin.elapsed().as_secs_f64();
        let mut text = format!("\n--- {} ---\n{sent} sent, {answered} answered", self.to);
        for (count, what) in [(self.refused, "refused"), (self.wrong, "wrong")] {
            if count > 0 {
                let _ = write!(text, ", {count} {what}");
            }
        }
        let _ = write!(
            text,
            ", {} lost ({loss:.1} % loss) in {seconds:.2} s",
            self.lost
        );
        if self.times.is_empty() {
            return text;
        }
        let least = micros(self.least);
        let _ = write!(
            text,
            "\nround trip in us: min {least}, mean {}",
            micros(self.mean())
        );
        for (name, quantile) in QUANTILES {
            let _ = write!(text, ", {name} {}", micros(self.quantile(quantile)));
        }
        let buckets = self.buckets();
        let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(1);
        for Bucket { from, to, count } in buckets {
            let bar = "#".repeat(usize::try_from((count * BAR).div_ceil(most)).unwrap_or(0));
            let (from, to) = (micros(from), micros(to));
            let _ = write!(text, "\n{from:>9} to {to:>9} us {count:>9} {bar}");
        }
        text
    }

    /// The buckets from the first to the last one that is not empty.
    fn buckets(&self) -> Vec<Bucket> {
        let mut buckets = Vec::new();
        let decades = (0..12).map(|power| 10_u64.pow(power));
        let mut edges = decades.flat_map(|decade| [1, 2, 5].map(|step| step * decade));
        let mut from = edges.next().unwrap_or(1);
        for to in edges {
            if from > self.times.max() {
                break;
            }
            // A step of the histogram may cross an edge; it counts where its middle lies.
            let steps = self.times.iter_recorded();
            let within = steps.filter(|step| {
                let middle = self.times.median_equivalent(step.value_iterated_to());
                (from..to).contains(&middle)
            });
            let count = within.map(|step| step.count_at_value()).sum();
            if count > 0 || !buckets.is_empty() {
                buckets.push(Bucket {
                    from: Duration::from_nanos(from),
                    to: Duration::from_nanos(to),
                    count,
                });
            }
            from = to;
        }
        buckets
    }
}

fn us(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

fn say(line: &str) -> anyhow::Result<()> {
    print(&format!("{line}\n"))
}

#[cfg(test)]
mod tests;
