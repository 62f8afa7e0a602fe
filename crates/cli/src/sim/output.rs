//! What runs were like: for people on the standard output, as JSON, and as a picture.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use dunlin_sim::net::NetCounters;
use dunlin_sim::scenario::{Client, LoadReport, Quantiles, Stage};
use serde_json::{Map, Value, json};

use super::source::Variant;
use super::{Done, plot};
pub(super) use harness::output::Target;

/// Opened before the first run, so that a wrong path costs no waiting.
pub(super) struct Output {
    json: Option<Box<dyn Write>>,
    /// The standard output is for JSON.
    beside: bool,
    plot: Option<File>,
}

impl Output {
    /// # Errors
    /// A file cannot be made.
    pub(super) fn open(json: Option<&Target>, plot: Option<&Path>) -> anyhow::Result<Self> {
        let make = |path: &Path| {
            File::create(path).with_context(|| format!("cannot make {}", path.display()))
        };
        let writer: Option<Box<dyn Write>> = match json {
            None => None,
            Some(Target::Stdout) => Some(Box::new(io::stdout())),
            Some(Target::File(path)) => Some(Box::new(make(path)?)),
        };
        Ok(Self {
            json: writer,
            beside: json == Some(&Target::Stdout),
            plot: plot.map(make).transpose()?,
        })
    }

    /// Writes a run, as soon as it is there.
    ///
    /// # Errors
    /// Somebody closed the other end, or the disk is full.
    pub(super) fn add(&mut self, done: &Done) -> anyhow::Result<()> {
        let text = text(done);
        if self.beside {
            io::stderr().write_all(text.as_bytes())?;
        } else {
            io::stdout().write_all(text.as_bytes())?;
        }
        if let Some(out) = &mut self.json {
            writeln!(out, "{}", object(done))?;
            out.flush()?;
        }
        Ok(())
    }

    /// Draws all runs together.
    ///
    /// # Errors
    /// As for [`Self::add`].
    pub(super) fn finish(&mut self, all: &[Done]) -> anyhow::Result<()> {
        if let Some(file) = &mut self.plot {
            file.write_all(plot::draw(all).as_bytes())?;
        }
        Ok(())
    }
}

/// What a run is called.
pub(super) fn title(variant: &Variant) -> String {
    let params = variant.params.iter();
    let params: Vec<String> = params
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    match params.is_empty() {
        true => variant.name.clone(),
        false => format!("{} {}", variant.name, params.join(" ")),
    }
}

/// The same for people.
pub(super) fn text(done: &Done) -> String {
    let (report, end) = (&done.report, done.variant.scenario.end);
    let mut out = format!(
        "{}, seed {}",
        title(&done.variant),
        done.variant.scenario.seed
    );
    if report.end < end {
        let _ = write!(
            out,
            ", ended early at {} of {} µs",
            report.end.0 / 1000,
            end.0 / 1000
        );
    }
    out.push('\n');
    for load in &report.loads {
        for (stage, what) in [(&load.opening, "opening"), (&load.steady, "steady")] {
            stage_text(&mut out, load, what, stage);
        }
    }
    for (frames, what) in report.frames.iter().zip(["opening", "steady"]) {
        let losses = losses(frames).into_iter().filter(|(_, count)| *count != 0);
        let losses: Vec<String> = losses
            .map(|(cause, count)| format!("{count} {cause}"))
            .collect();
        let losses = if losses.is_empty() {
            "none".to_owned()
        } else {
            losses.join(", ")
        };
        let _ = writeln!(out, "  {what:<8} {} frames; lost: {losses}", frames.sent);
    }
    let longest = report.series.iter().map(|point| point.longest_queue).max();
    let _ = writeln!(
        out,
        "  longest queue of a switch {} KB",
        longest.unwrap_or(0) / 1024
    );
    out
}

fn stage_text(out: &mut String, load: &LoadReport, what: &str, stage: &Stage) {
    if stage.span.0 == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "  {what:<8} {}: {:.2} Gbit/s ({:.2} across, {:.2} back), {:.3} M RPC/s \
         ({:.3} M a host), {} failed, Jain {:.3}, {:.3} % resent",
        load.name,
        stage.gbps,
        stage.gbps_across,
        stage.gbps_back,
        stage.rpcs / 1e6,
        stage.rpcs_per_host / 1e6,
        stage.failed,
        stage.jain,
        stage.resent_share() * 100.0
    );
    if let Some([least, most]) = extremes(stage).filter(|_| stage.clients.len() > 1) {
        let _ = writeln!(
            out,
            "           least across {:.3} Gbit/s by host {}, most {:.3} by host {}",
            least.gbps_across, least.host, most.gbps_across, most.host
        );
    }
    for (quantiles, name) in [(&stage.rtt, "RTT"), (&stage.latency, "latency")] {
        if quantiles.count != 0 {
            let [mean, p50, p99, p999, p9999, max] = [
                quantiles.mean,
                quantiles.p50,
                quantiles.p99,
                quantiles.p999,
                quantiles.p9999,
                quantiles.max,
            ]
            .map(micros);
            let _ = writeln!(
                out,
                "           {name} mean {mean:.1}  p50 {p50:.1}  p99 {p99:.1}  p99.9 {p999:.1}  \
                 p99.99 {p9999:.1}  max {max:.1} µs"
            );
        }
    }
}

/// The clients that got least and most across.
fn extremes(stage: &Stage) -> Option<[&Client; 2]> {
    let by_rate = |a: &&Client, b: &&Client| a.gbps_across.total_cmp(&b.gbps_across);
    let least = stage.clients.iter().min_by(by_rate)?;
    Some([least, stage.clients.iter().max_by(by_rate)?])
}

/// What became of frames that did not arrive.
fn losses(frames: &NetCounters) -> [(&'static str, u64); 7] {
    [
        ("lost", frames.lost),
        ("checksum", frames.checksum),
        ("cut", frames.cut),
        ("switch_full", frames.queue_full),
        ("nic_full", frames.nic_full),
        ("rx_queue_full", frames.rx_full),
        ("nobody", frames.nobody),
    ]
}

fn object(done: &Done) -> Value {
    let (variant, report) = (&done.variant, &done.report);
    let loads = report.loads.iter().map(|load| {
        json!({
            "name": load.name,
            "opening": stage_object(&load.opening),
            "steady": stage_object(&load.steady),
        })
    });
    let [opening, steady] = report.frames.each_ref().map(frames_object);
    let series = report.series.iter().map(|point| {
        json!({
            "at_us": micros(point.at.0),
            "longest_queue_bytes": point.longest_queue,
            "fullest_switch_bytes": point.fullest_switch,
            "gbps": point.gbps,
        })
    });
    let params: Map<String, Value> = variant.params.iter().cloned().collect();
    json!({
        "scenario": variant.name,
        "seed": variant.scenario.seed,
        "params": params,
        "simulated_us": micros(report.end.0),
        "complete": report.end >= variant.scenario.end,
        "digest": format!("{:016x}", report.digest),
        "loads": loads.collect::<Vec<_>>(),
        "frames": { "opening": opening, "steady": steady },
        "series": series.collect::<Vec<_>>(),
    })
}

fn stage_object(stage: &Stage) -> Value {
    json!({
        "us": micros(stage.span.0),
        "gbps": stage.gbps,
        "rpc_per_s": stage.rpcs,
        "rpc_per_s_per_host": stage.rpcs_per_host,
        "completed": stage.completed,
        "failed": stage.failed,
        "latency_us": quantiles_object(&stage.latency),
        "rtt_us": quantiles_object(&stage.rtt),
        "jain": stage.jain,
        "packets": stage.packets,
        "retransmissions": stage.resent,
        "resent": stage.resent_share(),
        "jain_back": stage.jain_back,
        "gbps_across": stage.gbps_across,
        "gbps_back": stage.gbps_back,
        "clients": stage.clients.iter().map(client_object).collect::<Vec<_>>(),
    })
}

fn client_object(client: &Client) -> Value {
    json!({
        "host": client.host,
        "gbps_across": client.gbps_across,
        "gbps_back": client.gbps_back,
        "rpc_per_s": client.rpcs,
        "failed": client.failed,
        "latency_us": quantiles_object(&client.latency),
    })
}

fn quantiles_object(quantiles: &Quantiles) -> Value {
    json!({
        "count": quantiles.count,
        "mean": micros(quantiles.mean),
        "p50": micros(quantiles.p50),
        "p90": micros(quantiles.p90),
        "p99": micros(quantiles.p99),
        "p999": micros(quantiles.p999),
        "p9999": micros(quantiles.p9999),
        "max": micros(quantiles.max),
    })
}

fn frames_object(frames: &NetCounters) -> Value {
    let losses = losses(frames).into_iter();
    let losses: Map<String, Value> = losses
        .map(|(cause, count)| (cause.to_owned(), count.into()))
        .collect();
    json!({
        "sent": frames.sent,
        "delivered": frames.delivered,
        "losses": losses,
    })
}

#[expect(clippy::cast_precision_loss, reason = "a time for people to read")]
/// Nanoseconds as microseconds.
pub(crate) fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}
