//! Describes a run for people, in the units that people use.

use std::fmt::Write as _;

use dunlin_sim::scenario::{Client, LoadReport, Stage};
use dunlin_sim::world::net::NetCounters;

use crate::run::Done;
use crate::source::Variant;

/// The title of a run.
pub fn title(variant: &Variant) -> String {
    let params = variant.params.iter();
    let params: Vec<String> = params
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    match params.is_empty() {
        true => variant.name.clone(),
        false => format!("{} {}", variant.name, params.join(" ")),
    }
}

/// The text of a run for people.
pub fn text(done: &Done) -> String {
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
         ({:.3} M a host), {} failed, Jain {:.3} across, {:.3} back, {:.3} % resent",
        load.name,
        stage.gbps,
        stage.gbps_across,
        stage.gbps_back,
        stage.rpcs / 1e6,
        stage.rpcs_per_host / 1e6,
        stage.failed,
        stage.jain,
        stage.jain_back,
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

/// The clients with the lowest and the highest throughput.
fn extremes(stage: &Stage) -> Option<[&Client; 2]> {
    let by_rate = |a: &&Client, b: &&Client| a.gbps_across.total_cmp(&b.gbps_across);
    let least = stage.clients.iter().min_by(by_rate)?;
    Some([least, stage.clients.iter().max_by(by_rate)?])
}

/// Frames that did not arrive, by cause.
pub fn losses(frames: &NetCounters) -> [(&'static str, u64); 7] {
    [
        ("lost", frames.lost),
        ("checksum", frames.checksum),
        ("cut", frames.cut),
        ("switch_full", frames.queue_full),
        ("nic_full", frames.nic_full),
        ("rx_queue_full", frames.rx_full),
        ("no_process", frames.no_process),
    ]
}

/// Nanoseconds as microseconds.
#[expect(clippy::cast_precision_loss, reason = "a time for people to read")]
pub fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}
