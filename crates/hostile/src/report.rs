//! The output of a run: a line after each round of attacks, and at the end a summary for people or
//! for machines.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde_json::{Value, json};

use crate::args::Args;
use crate::judge::{Fault, Record, Seen};

/// Prints, after each round of attacks, the rate so far and the time left. On a terminal, each such
/// line replaces the previous one.
pub(crate) fn progress(args: &Args, seen: &Seen, elapsed: Duration) {
    let deeds = seen.deeds();
    let seconds = elapsed.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
    let rate = deeds.packets as f64 / seconds;
    let left = args.span().saturating_sub(elapsed).as_secs();
    let text = format!(
        "{seconds:.0} s: {:.1} M packets ({rate:.0}/s), {:.1} M read, {} connections, {:.1} M \
         words of memory, {} kills and stops; {left} s left",
        millions(deeds.packets),
        millions(seen.counts.read),
        deeds.connections,
        millions(deeds.words),
        deeds.kills + deeds.stops,
    );
    let mut err = std::io::stderr();
    // A failure to show progress does not fail the run.
    let _ = match err.is_terminal() {
        true => write!(err, "\r\x1b[K{text}").and_then(|()| err.flush()),
        false => writeln!(err, "{text}"),
    };
}

/// Prints the summary.
pub(crate) fn print(args: &Args, seen: &Seen, faults: &[Fault]) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
    match args.json {
        true => println!("{:#}", object(args, seen, faults)),
        false => table(args, seen, faults),
    }
}

fn table(args: &Args, seen: &Seen, faults: &[Fault]) {
    println!("                              calls    median       99 %  in each phase, µs");
    for (name, record) in parts(seen) {
        let p99s = record.p99s_ns.iter().map(|ns| (ns / 1_000).to_string());
        println!(
            "{name:24} {:>10} {:>6} µs {:>7} µs  {}",
            record.stats.calls,
            record.quantile_ns(0.5).unwrap_or(0) / 1_000,
            record.p99_ns().unwrap_or(0) / 1_000,
            p99s.collect::<Vec<_>>().join(" ")
        );
    }
    let deeds = seen.deeds();
    println!(
        "the attackers sent {:.1} M packets, made {} connections, of which {} were answered, wrote \
         {} MiB of messages and {:.1} M words of memory, killed {} and stopped {} processes",
        millions(deeds.packets),
        deeds.connections,
        deeds.answered,
        deeds.message_bytes >> 20,
        millions(deeds.words),
        deeds.kills,
        deeds.stops
    );
    let counts = &seen.counts;
    println!(
        "the server read {:.1} M packets, of which it refused {:.1} M; {:.1} M were lost at its \
         socket; its memory grew by {} KiB at most",
        millions(counts.read),
        millions(counts.refused),
        millions(counts.lost),
        seen.growth_kib()
    );
    for rest in &seen.still {
        println!("the machine stood still for {rest:?} in a phase: its latencies do not count");
    }
    for why in &seen.ended {
        println!("an attacker ended before its time: {why}");
    }
    match faults {
        [] => println!("nothing was found"),
        _ => {
            faults.iter().for_each(|fault| println!("FOUND: {fault}"));
            seen.reasons().for_each(|reason| println!("    {reason}"));
            println!("to see it again: {}", args.replay());
        }
    }
}

fn parts(seen: &Seen) -> [(&'static str, &Record); 4] {
    [
        ("no attacker", &seen.quiet),
        ("another server attacked", &seen.elsewhere),
        ("its server attacked", &seen.attacked),
        ("its server in a storm", &seen.storm),
    ]
}

fn object(args: &Args, seen: &Seen, faults: &[Fault]) -> Value {
    let part = |record: &Record| {
        json!({
            "calls": record.stats.calls,
            "p50_ns": record.quantile_ns(0.5),
            "p99_ns": record.p99_ns(),
            "p99s_ns": record.p99s_ns,
            "deeds": record.deeds,
        })
    };
    json!({
        "seed": args.seed,
        "minutes": args.minutes,
        "quiet": part(&seen.quiet),
        "elsewhere": part(&seen.elsewhere),
        "counts": seen.counts,
        "attacked": part(&seen.attacked),
        "storm": part(&seen.storm),
        "memory_before_kib": seen.memory_before_kib,
        "memory_growth_kib": seen.growth_kib(),
        "ended": seen.ended,
        "stood_still_s": seen.still.iter().map(Duration::as_secs_f64).collect::<Vec<_>>(),
        "interrupted": seen.interrupted,
        "faults": faults,
        "reasons": seen.reasons().collect::<Vec<_>>(),
        "replay": args.replay(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn millions(count: u64) -> f64 {
    count as f64 / 1e6
}
