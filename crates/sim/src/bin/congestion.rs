//! Runs the sweep that default congestion control must pass. Exit status 1 means that a run misses
//! its limits, and 2 that the arguments are wrong.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dunlin_core::Scheme;
use dunlin_sim::scenario::Wrong;
use dunlin_sim::scenario::sweep::{Alone, Case, Family, Grid, Row, cases};

const USAGE: &str = "\
Runs simulated networks under congestion control, and reports the points outside their limits.

usage: congestion [--short] [--family NAME]… [--scheme NAME] [--seeds N] [--from N] [--threads N]
                  [--only POINT]… [--measured] [--noise US] [--json] [--faults]

  --short        the points where congestion control is most likely to fail; takes some seconds
  --family NAME  incast, late, loss, two or echo (default: all of them)
  --scheme NAME  the congestion control of every session (default: swift)
  --seeds N      seeds of each point; the worst seed counts (default 1)
  --from N       the first seed (default 1)
  --threads N    threads that run cases (default 1)
  --only POINT   one point: family,Gb/s,round trip in µs,buffer in KB,senders,in flight
                 and, where they apply, measured and noise=US (see the next two options)
  --measured     hosts measure the round trip of the empty network, as without udp.base_rtt
  --noise US     hosts delay each burst that they send by up to this time
  --faults       print only points outside their limits
  --json         one JSON object for each run, for machines

examples:
  congestion --short
  congestion --seeds 10 --threads 2 --json > rows.jsonl
  congestion --only incast,100,6,100,150,1 --from 3

A row is the worst of a point's seeds. share: throughput divided by what cables, credits and
requests in flight allow; in late, the late sender's throughput divided by an equal share; in two,
the lowest throughput of a sender divided by an equal share. jain: fairness among the senders.
first, resent: packets sent again until 5 ms after the last sender has begun, and after that.";

struct Arguments {
    grid: Grid,
    families: Vec<Family>,
    scheme: Scheme,
    seeds: u64,
    from: u64,
    threads: usize,
    only: Vec<Case>,
    measured: bool,
    noise_us: u32,
    json: bool,
    faults: bool,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("{problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut out = Arguments {
        grid: Grid::Whole,
        families: Vec::new(),
        scheme: Scheme::Swift,
        seeds: 1,
        from: 1,
        threads: 1,
        only: Vec::new(),
        measured: false,
        noise_us: 0,
        json: false,
        faults: false,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--help" | "-h" => return Ok(None),
            "--short" => out.grid = Grid::Short,
            "--family" => out.families.push(family(&value()?)?),
            "--scheme" => out.scheme = value()?.parse().map_err(|why| format!("{word}: {why}"))?,
            "--seeds" => out.seeds = number(&value()?)?,
            "--from" => out.from = number(&value()?)?,
            "--threads" => out.threads = number(&value()?)?,
            "--only" => out.only.push(point(&value()?)?),
            "--measured" => out.measured = true,
            "--noise" => out.noise_us = number(&value()?)?,
            "--json" => out.json = true,
            "--faults" => out.faults = true,
            _ => return Err(format!("{word}: no such option")),
        }
    }
    if out.families.is_empty() {
        out.families = Family::ALL.to_vec();
    }
    match out.seeds == 0 || out.threads == 0 {
        true => Err("--seeds and --threads must be above 0".to_owned()),
        false => Ok(Some(out)),
    }
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word}: not a number"))
}

fn family(name: &str) -> Result<Family, String> {
    let mut all = Family::ALL.into_iter();
    let found = all.find(|family| family.name() == name);
    found.ok_or_else(|| format!("{name}: no such family; use incast, late, loss, two or echo"))
}

fn point(text: &str) -> Result<Case, String> {
    let mut parts: Vec<&str> = text.split(',').collect();
    let (mut measured, mut noise_us) = (false, 0);
    while parts.len() > 6 {
        let word = parts.pop().unwrap_or_default();
        match word.strip_prefix("noise=") {
            Some(value) => noise_us = number(value)?,
            None if word == "measured" => measured = true,
            None => return Err(format!("--only {text}: {word} is not known")),
        }
    }
    let &[name, gbps, rtt_us, buffer_kb, senders, in_flight] = parts.as_slice() else {
        return Err(format!(
            "--only {text}: six values with commas between them are needed"
        ));
    };
    let case = Case {
        family: family(name)?,
        gbps: number(gbps)?,
        rtt_us: number(rtt_us)?,
        buffer_kb: number(buffer_kb)?,
        senders: number(senders)?,
        in_flight: number(in_flight)?,
        measured,
        noise_us,
        seed: 1,
    };
    let numbers = [case.gbps, case.rtt_us, case.buffer_kb, case.in_flight];
    match numbers.contains(&0) || case.senders == 0 {
        true => Err(format!("--only {text}: no value may be 0")),
        false => Ok(case),
    }
}

/// Returns whether all runs are within their limits.
fn run(arguments: &Arguments) -> bool {
    let mut points = arguments.only.clone();
    if points.is_empty() {
        let families = arguments.families.iter();
        points.extend(families.flat_map(|it| cases(*it, arguments.grid, arguments.from)));
    }
    for case in &mut points {
        case.measured |= arguments.measured;
        case.noise_us = case.noise_us.max(arguments.noise_us);
    }
    let (next, out) = (AtomicUsize::new(0), Mutex::new(Output::new(points.len())));
    let groups = groups(points);
    let alone = Alone::default();
    let work = || {
        while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut before = Vec::new();
            for point in group {
                let rows = rows(point, &before, arguments, &alone);
                let mut out = out.lock().expect("no thread panics while it prints");
                match rows {
                    Ok(rows) => {
                        out.add(&rows, arguments);
                        before = rows;
                    }
                    Err(why) => out.fail(point, &why.to_string()),
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(work);
        }
    });
    let out = out.into_inner().expect("all threads have ended");
    eprintln!("{} points, {} outside their limits", out.done, out.faulty);
    out.faulty == 0
}

/// Groups of points that differ only in switch memory, each in order of rising memory.
fn groups(mut points: Vec<Case>) -> Vec<Vec<Case>> {
    let but_memory = |case: &Case| Case {
        buffer_kb: 0,
        ..*case
    };
    points.sort_by_key(|case| (but_memory(case), case.buffer_kb));
    let same = |left: &Case, right: &Case| but_memory(left) == but_memory(right);
    points.chunk_by(same).map(<[Case]>::to_vec).collect()
}

/// Returns the rows of all seeds of a point. `before`: the rows of the same point with less switch
/// memory.
fn rows(
    point: &Case,
    before: &[Row],
    arguments: &Arguments,
    alone: &Alone,
) -> Result<Vec<Row>, Wrong> {
    let seeds = arguments.from..arguments.from + arguments.seeds;
    let row = |seed| {
        let case = Case { seed, ..*point };
        let mut known = before.iter();
        match known.find_map(|row| row.with_more_memory(case, arguments.scheme)) {
            Some(row) => Ok(row),
            None => case.run(arguments.scheme, alone),
        }
    };
    seeds.map(row).collect()
}

struct Output {
    all: usize,
    done: usize,
    faulty: usize,
    told: Instant,
}

const PROGRESS: Duration = Duration::from_secs(10);

impl Output {
    fn new(all: usize) -> Self {
        Self {
            all,
            done: 0,
            faulty: 0,
            told: Instant::now(),
        }
    }

    /// Adds the rows of a point after all of its seeds have run.
    fn add(&mut self, rows: &[Row], arguments: &Arguments) {
        let is_faulty = rows.iter().any(|row| !row.faults().is_empty());
        self.count(is_faulty);
        if arguments.json {
            rows.iter()
                .for_each(|row| println!("{}", object(row, arguments)));
        } else if is_faulty || !arguments.faults {
            println!("{}", line(rows));
        }
    }

    fn fail(&mut self, point: &Case, why: &str) {
        self.count(true);
        eprintln!("{point}: {why}");
    }

    fn count(&mut self, is_faulty: bool) {
        self.done += 1;
        self.faulty += usize::from(is_faulty);
        if self.told.elapsed() >= PROGRESS {
            self.told = Instant::now();
            eprintln!(
                "{} of {} points, {} faulty",
                self.done, self.all, self.faulty
            );
        }
    }
}

/// The worst value of each column, and the first seed with a fault.
fn line(rows: &[Row]) -> String {
    let least = |of: fn(&Row) -> f64| rows.iter().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&Row) -> f64| rows.iter().map(of).fold(0.0, f64::max);
    let faulty = rows.iter().find(|row| !row.faults().is_empty());
    let faults = faulty.map_or_else(String::new, |row| {
        format!("  {} (--from {})", row.faults().join(", "), row.case.seed)
    });
    format!(
        "{:<28} share {:.3}  jain {:.3}  first {:.3} %  resent {:.4} %  dropped {}{faults}",
        rows[0].case.to_string(),
        least(|row| row.share),
        least(|row| row.jain),
        most(|row| row.resent_first) * 100.0,
        most(|row| row.resent) * 100.0,
        rows.iter().map(|row| row.dropped).max().unwrap_or(0),
    )
}

fn object(row: &Row, arguments: &Arguments) -> String {
    let faults: Vec<String> = row.faults().iter().map(|it| format!("{it:?}")).collect();
    format!(
        "{{\"point\":\"{}\",\"seed\":{},\"scheme\":\"{}\",\"share\":{:.5},\"jain\":{:.5},\
         \"resent_first\":{:.7},\"resent\":{:.7},\"dropped\":{},\
         \"digest\":\"{:016x}\",\"faults\":[{}]}}",
        row.case,
        row.case.seed,
        arguments.scheme,
        row.share,
        row.jain,
        row.resent_first,
        row.resent,
        row.dropped,
        row.digest,
        faults.join(",")
    )
}
