//! `seeds --differential`: runs each seed twice, with two variants that must behave alike, and
//! checks that each planted difference is found.

use std::time::Instant;

use dunlin_sim::Mutant;
use dunlin_sim::cluster::differential::{
    COMPARISONS, Comparison, Difference, Same, Shares, Unlike, compare_seed,
};

use super::{Arguments, PROGRESS, print_failure, progress, rate, seeds_of};

/// Returns whether all variants behave alike, and each has used its path often enough.
pub(super) fn run(arguments: &Arguments) -> bool {
    let mut fine = true;
    for comparison in COMPARISONS {
        fine &= match (arguments.mutants, arguments.seed) {
            (true, _) => find_planted(comparison, arguments),
            (false, Some(seed)) => run_one(comparison, seed, arguments),
            (false, None) => run_many(comparison, arguments),
        };
    }
    fine
}

fn run_one(comparison: &Comparison, seed: u64, arguments: &Arguments) -> bool {
    match compare_seed(seed, comparison, arguments.mutant) {
        Ok(same) => {
            print_same(comparison, seed, &same, arguments.json);
            true
        }
        Err(unlike) => {
            print_unlike(&unlike, arguments);
            false
        }
    }
}

fn run_many(comparison: &Comparison, arguments: &Arguments) -> bool {
    let start = Instant::now();
    let mut shown = start;
    let (mut run, mut unlike, mut facts) = (0_u64, 0_u64, 0_u64);
    let mut shares = comparison
        .sides
        .map(|variant| vec![Shares::default(); variant.paths.len()]);
    for seed in seeds_of(arguments, start) {
        run += 1;
        match compare_seed(seed, comparison, arguments.mutant) {
            Ok(same) => {
                facts += same.facts as u64;
                let taken = same.taken.into_iter().flatten();
                for (shares, taken) in shares.iter_mut().flatten().zip(taken) {
                    shares.add(taken, &same.report.frames, same.report.proofs);
                }
            }
            Err(found) => {
                unlike += 1;
                print_unlike(&found, arguments);
            }
        }
        if shown.elapsed() >= PROGRESS {
            shown = Instant::now();
            progress(run, unlike, start);
        }
    }
    let (name, rate) = (comparison.name, rate(run, start));
    if arguments.json {
        println!(
            "{{\"comparison\":{name:?},\"seeds\":{run},\"unlike\":{unlike},\"facts\":{facts},\
             \"seeds_per_s\":{rate:.1}}}"
        );
    } else {
        println!("{name}: {run} seeds twice, {unlike} differ, {facts} facts, {rate:.0} seeds/s");
    }
    print_shares(comparison, &shares) && unlike == 0
}

/// Returns whether each variant has used all paths of its own often enough.
fn print_shares(comparison: &Comparison, shares: &[Vec<Shares>; 2]) -> bool {
    let mut enough = true;
    let paths = comparison.sides.iter().flat_map(|side| side.paths);
    for (path, shares) in paths.zip(shares.iter().flatten()) {
        eprintln!("{}: {shares}", path.name);
        if let Err(why) = shares.judge(path.least) {
            eprintln!("{:?} proves nothing: {why}", path.name);
            enough = false;
        }
    }
    enough
}

/// Number of seeds within which each planted difference must be found.
const SEEDS: u64 = 500;

/// Returns whether each planted difference, or the chosen one, is found.
fn find_planted(comparison: &Comparison, arguments: &Arguments) -> bool {
    let chosen = arguments
        .mutant
        .map_or_else(Mutant::differences, |mutant| vec![mutant]);
    let count = arguments.count.unwrap_or(SEEDS);
    let seeds = arguments.from..arguments.from.saturating_add(count);
    let mut all_found = true;
    for mutant in chosen {
        let found = seeds
            .clone()
            .find_map(|seed| compare_seed(seed, comparison, Some(mutant)).err());
        all_found &= matches!(found, Some(Unlike::Differs(_)));
        print_planted(mutant, found.as_ref(), arguments);
    }
    all_found
}

fn print_planted(mutant: Mutant, found: Option<&Unlike>, arguments: &Arguments) {
    let name = mutant.name();
    match found {
        Some(Unlike::Differs(difference)) => {
            let Difference { seed, .. } = **difference;
            if arguments.json {
                println!("{{\"difference\":{name:?},\"found\":true,\"seed\":{seed}}}");
            } else {
                let seeds = seed.saturating_sub(arguments.from).saturating_add(1);
                let what = difference.summary();
                println!("{name:<26} found after {seeds:>4} seeds: {what}");
            }
        }
        Some(Unlike::Failed(failure)) => print_failure(failure, arguments),
        None if arguments.json => println!("{{\"difference\":{name:?},\"found\":false}}"),
        None => println!("{name:<26} NOT FOUND"),
    }
}

fn print_same(comparison: &Comparison, seed: u64, same: &Same, json: bool) {
    let (name, facts) = (comparison.name, same.facts);
    if json {
        println!("{{\"comparison\":{name:?},\"seed\":{seed},\"unlike\":false,\"facts\":{facts}}}");
    } else {
        println!("{name}: both runs of seed {seed} agree in {facts} facts");
    }
}

fn print_unlike(unlike: &Unlike, arguments: &Arguments) {
    match unlike {
        Unlike::Failed(failure) => print_failure(failure, arguments),
        Unlike::Differs(difference) if arguments.json => {
            let Difference {
                seed, comparison, ..
            } = **difference;
            let (what, replay) = (difference.summary(), difference.replay());
            println!(
                "{{\"comparison\":{comparison:?},\"seed\":{seed},\"unlike\":{what:?},\
                 \"replay\":{replay:?}}}"
            );
        }
        Unlike::Differs(difference) => println!("{difference}"),
    }
}
