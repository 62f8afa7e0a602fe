//! The results of runs: for people on the standard output, as JSON, and as a picture.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use dunlin_scenario::{Channels, Done, channels_object, channels_text, losses, micros, text};
use dunlin_sim::channel::Played;
use dunlin_sim::scenario::{Client, Quantiles, Stage};
use dunlin_sim::world::net::NetCounters;
use serde_json::{Map, Value, json};

use super::plot;
pub(super) use harness::output::Target;

/// The outputs, opened before the first run, so that a wrong path shows at once.
pub(super) struct Output {
    json: Option<Box<dyn Write>>,
    /// True if JSON takes the standard output; the text for people then goes to the standard error.
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

    /// Writes a run as soon as it has ended.
    ///
    /// # Errors
    /// The reader closed the other end, or the disk is full.
    pub(super) fn add(&mut self, done: &Done) -> anyhow::Result<()> {
        self.write(&text(done), || object(done))
    }

    /// Writes a run of channels.
    ///
    /// # Errors
    /// As for [`Self::add`].
    pub(super) fn add_channels(
        &mut self,
        channels: &Channels,
        played: &Played,
    ) -> anyhow::Result<()> {
        let text = channels_text(channels, played);
        self.write(&text, || channels_object(channels, played))
    }

    fn write(&mut self, text: &str, object: impl FnOnce() -> Value) -> anyhow::Result<()> {
        if self.beside {
            io::stderr().write_all(text.as_bytes())?;
        } else {
            io::stdout().write_all(text.as_bytes())?;
        }
        if let Some(out) = &mut self.json {
            writeln!(out, "{}", object())?;
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
        "latency_across_us": quantiles_object(&stage.latency_across),
        "latency_back_us": quantiles_object(&stage.latency_back),
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
        "latency_across_us": quantiles_object(&client.latency_across),
        "latency_back_us": quantiles_object(&client.latency_back),
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
