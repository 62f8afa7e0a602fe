//! The output of a run: a line for each phase, and at the end a summary for people or for machines.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde_json::{Value, json};

use crate::args::Args;
use crate::judge::{Fault, Record, Seen};

/// After each attack: the rate so far, and the time left. On a terminal, the line stays the last.
pub(crate) fn progress(args: &Args, seen: &Seen, elapsed: Duration) {
    let deeds = &seen.attacked.deeds;
    let seconds = elapsed.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
    let rate = (deeds.packets + seen.elsewhere.deeds.packets) as f64 / seconds;
    let left = args.span().saturating_sub(elapsed).as_secs();
    let text = format!(
        "{seconds:.0} s: {:.1} M packets ({rate:.0}/s), {} connections, {:.1} M words of memory, \
         {} kills and stops; {left} s left",
        millions(deeds.packets),
        deeds.connections,
        millions(deeds.words),
        deeds.kills + deeds.stops,
    );
    let mut err = std::io::stderr();
    // Progress that cannot be shown is no failure.
    let _ = match err.is_terminal() {
        true => write!(err, "\r\x1b[K{text}").and_then(|()| err.flush()),
        false => writeln!(err, "{text}"),
    };
}

/// The summary.
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
    println!("                              calls    median       99 %");
    for (name, record) in parts(seen) {
        let quantile = |part| record.quantile_ns(part).unwrap_or(0) / 1_000;
        println!(
            "{name:24} {:>10} {:>6} µs {:>7} µs",
            record.stats.calls,
            quantile(0.5),
            quantile(0.99)
        );
    }
    let deeds = &seen.attacked.deeds;
    println!(
        "at its server: {:.1} M packets, {} connections, {} MiB of messages, {:.1} M words of \
         memory, {} kills, {} stops",
        millions(deeds.packets),
        deeds.connections,
        deeds.message_bytes >> 20,
        millions(deeds.words),
        deeds.kills,
        deeds.stops
    );
    println!(
        "the server's memory grew by {} KiB at most",
        seen.growth_kib()
    );
    for (rest, stats) in &seen.still {
        println!(
            "the machine stood still for {rest:?}; not judged: {} lost, {} failed, {} refused",
            stats.lost, stats.failed, stats.refused
        );
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

fn parts(seen: &Seen) -> [(&'static str, &Record); 3] {
    [
        ("no attacker", &seen.quiet),
        ("another server attacked", &seen.elsewhere),
        ("its server attacked", &seen.attacked),
    ]
}

fn object(args: &Args, seen: &Seen, faults: &[Fault]) -> Value {
    let part = |record: &Record| {
        json!({
            "calls": record.stats.calls,
            "p50_ns": record.quantile_ns(0.5),
            "p99_ns": record.quantile_ns(0.99),
            "deeds": record.deeds,
        })
    };
    json!({
        "seed": args.seed,
        "minutes": args.minutes,
        "quiet": part(&seen.quiet),
        "elsewhere": part(&seen.elsewhere),
        "attacked": part(&seen.attacked),
        "memory_before_kib": seen.memory_before_kib,
        "memory_growth_kib": seen.growth_kib(),
        "ended": seen.ended,
        "not_judged": seen.still.iter().map(|(rest, _)| rest.as_secs_f64()).collect::<Vec<_>>(),
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
