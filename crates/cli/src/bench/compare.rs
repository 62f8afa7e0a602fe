//! `bench compare`: this build and other programs measure the same cases in turn, and every figure
//! becomes a ratio of two measurements of one round, with its spread. Ping-pongs around each
//! measurement show in which state the machine is ([`harness::state`]); [`tally`] draws the
//! conclusion from all rounds.

mod args;
pub(super) mod contract;
mod notes;
mod output;
mod program;
mod tally;

pub(crate) use args::Args;

use anyhow::{Context, ensure};
use dunlin_bench::baselines::ping::Ping;
use dunlin_bench::harness::case::Case;

use crate::misuse::Misuse;
use crate::say;
use contract::Request;
use harness::output::Output;
use harness::progress::Progress;
use harness::seat::{self, Seats};
use harness::signal;
use notes::Notes;
use program::{Lost, Program};
use tally::{Round, Sample};

/// A case, and its measurements.
struct Compared {
    case: Case,
    /// For each program, whether it measures this case.
    takes_part: Vec<bool>,
    rounds: Vec<Round>,
    /// The reasons of the rounds in which a measurement failed.
    failures: Vec<String>,
}

/// A case that has failed this number of times, and has no round yet, is not tried again.
const GIVEN_UP_AFTER: usize = 3;

/// The programs and the way to measure, which stay the same to the end.
struct Comparison<'a> {
    args: &'a Args,
    this: Program,
    cpus: [usize; 2],
}

/// Compares, and writes the results.
///
/// # Errors
/// [`signal::Interrupted`], after the results so far have been written; or a program could
/// not be started or did not keep the contract; or no round of a case succeeded; or the rows cannot
/// be written.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    args.refusal()
        .map_or(Ok(()), |refusal| Err(Misuse(refusal)))?;
    signal::watch()?;
    if args.realtime {
        seat::use_realtime();
    }
    let seats = Seats::pick();
    let cpus = seats.client.cpu.zip(seats.server.cpu);
    let (client, server) = cpus.context("comparing needs two processors; this process has one")?;
    let mut output = Output::open(args.json.as_ref(), None)?;
    let mut compared = cases_of(args)?;
    let mut notes = Notes::default();
    let comparison = Comparison {
        args,
        this: Program::this()?,
        cpus: [client, server],
    };
    let ended = comparison.measure(&mut compared, &mut notes);
    let ended = ended.and_then(|()| compared.iter().try_for_each(Compared::check));
    let failures = compared.iter().filter_map(Compared::said);
    let notes: Vec<String> = notes.lines().into_iter().chain(failures).collect();
    let rows = output::rows(&compared, &args.with);
    output.write(&rows, &output::text(&rows, &notes), String::new)?;
    ended
}

/// The cases of the experiments whose figures depend on the machine.
fn cases_of(args: &Args) -> anyhow::Result<Vec<Compared>> {
    let mut all: Vec<Case> = Vec::new();
    for experiment in args.experiments.iter().flat_map(|it| it.experiments()) {
        all.extend(experiment.cases(&args.selection)?);
    }
    all.retain(Case::is_timed);
    let none = || Misuse("none of the experiments has such a case".to_owned());
    ensure!(!all.is_empty(), none());
    let compared = all.into_iter().map(|case| Compared {
        case,
        takes_part: vec![true; args.with.len()],
        rounds: Vec::new(),
        failures: Vec::new(),
    });
    Ok(compared.collect())
}

impl Compared {
    /// True if no further round is needed.
    fn is_done(&self) -> bool {
        let mut others = self.takes_part.iter().enumerate();
        self.is_given_up()
            || others
                .all(|(other, takes_part)| !takes_part || tally::is_enough(&self.rounds, other))
    }

    fn is_given_up(&self) -> bool {
        self.rounds.is_empty() && self.failures.len() >= GIVEN_UP_AFTER
    }

    /// Notes a round in which a measurement failed. Returns a line for the user.
    ///
    /// # Errors
    /// The error itself, if a later round would end in the same way.
    fn on_failure(&mut self, number: u32, error: anyhow::Error) -> anyhow::Result<String> {
        if error.is::<signal::Interrupted>() || !error.is::<Lost>() {
            return Err(error);
        }
        let reason = say::with_causes(&error);
        let label = self.case.label();
        let line = format!("the machine is busy: {label}, round {number}: {reason}");
        self.failures.push(reason);
        Ok(line)
    }

    /// The number of rounds that failed, and the first reason.
    fn said(&self) -> Option<String> {
        let first = self.failures.first()?;
        let (failed, all) = (self.failures.len(), self.failures.len() + self.rounds.len());
        let label = self.case.label();
        Some(format!(
            "the machine is busy: {failed} of {all} rounds of {label} failed: {first}"
        ))
    }

    /// # Errors
    /// Every round failed.
    fn check(&self) -> anyhow::Result<()> {
        match self.failures.last() {
            Some(last) if self.rounds.is_empty() => {
                anyhow::bail!(
                    "no round of {} succeeded; the last: {last}",
                    self.case.label()
                )
            }
            _ => Ok(()),
        }
    }
}

impl Comparison<'_> {
    /// Measures in rounds. Each round measures every case that still needs one.
    fn measure(&self, compared: &mut [Compared], notes: &mut Notes) -> anyhow::Result<()> {
        let rounds = self.args.rounds;
        let progress = Progress::start(u64::from(rounds) * compared.len() as u64, rounds);
        let mut ping = Ping::default();
        for number in 1..=rounds {
            for it in compared.iter_mut() {
                let in_every_state = self.args.every_state && it.takes_part.contains(&true);
                if !it.is_done() || (in_every_state && !it.is_given_up()) {
                    progress.measuring(number, &it.case.label());
                    if let Err(error) = self.round(number, it, &mut ping, notes) {
                        progress.say(&it.on_failure(number, error)?, &[]);
                    }
                }
                progress.advance(1);
            }
            let done = compared.iter().filter(|it| it.is_done()).count();
            progress.line(&format!(
                "round {number} of at most {rounds}: {done} of {} cases have enough",
                compared.len()
            ));
            if done == compared.len() && !self.args.every_state {
                break;
            }
        }
        Ok(())
    }

    /// Measures one round of one case: every program between two ping-pongs. Every other round goes
    /// from the last program to the first, so that none is always first.
    fn round(
        &self,
        number: u32,
        compared: &mut Compared,
        ping: &mut Ping,
        notes: &mut Notes,
    ) -> anyhow::Result<()> {
        let request = self.request(&compared.case);
        let programs: Vec<&Program> = [&self.this].into_iter().chain(&self.args.with).collect();
        let mut order: Vec<usize> = (0..programs.len())
            .filter(|&index| index == 0 || compared.takes_part[index - 1])
            .collect();
        if number.is_multiple_of(2) {
            order.reverse();
        }
        let mut samples: Vec<Option<Sample>> = vec![None; programs.len()];
        let mut before = play(ping)?;
        for index in order {
            let answer = programs[index].measure(&request, self.args.limit)?;
            let after = play(ping)?;
            let pings = [before, after];
            before = after;
            notes.add(&compared.case.label(), programs[index].name(), &answer);
            match (&answer.unsupported, index) {
                (Some(why), 0) => anyhow::bail!("{}: {why}", compared.case.label()),
                (Some(_), other) => compared.takes_part[other - 1] = false,
                (None, _) => samples[index] = Some(Sample { answer, pings }),
            }
        }
        let mut samples = samples.into_iter();
        let this = samples.next().flatten().context("this build is measured")?;
        let others = samples.collect();
        let round = Round { this, others };
        self.check_units(&round)?;
        compared.rounds.push(round);
        Ok(())
    }

    fn request(&self, case: &Case) -> Request {
        Request {
            experiment: case.experiment().to_owned(),
            transport: case.transport().to_owned(),
            params: contract::params(case.params()),
            seconds: self.args.seconds.as_secs_f64(),
            cpus: Some(self.cpus),
            realtime: self.args.realtime,
        }
    }

    /// # Errors
    /// A program gives a figure in another unit than this build.
    fn check_units(&self, round: &Round) -> anyhow::Result<()> {
        for (other, sample) in self.args.with.iter().zip(&round.others) {
            let theirs = sample.iter().flat_map(|it| &it.answer.figures);
            for figure in theirs {
                let ours = round.this.answer.find(&figure.metric);
                let unit = ours.map_or(&figure.unit, |(_, ours)| &ours.unit);
                ensure!(
                    *unit == figure.unit,
                    "{} gives {} in {:?}, and it is compared in {unit:?}",
                    other.name(),
                    figure.metric,
                    figure.unit
                );
            }
        }
        Ok(())
    }
}

fn play(ping: &mut Ping) -> anyhow::Result<f64> {
    match ping.now() {
        Err(error) if !error.is::<signal::Interrupted>() => {
            Err(error.context(Lost("a ping-pong failed".to_owned())))
        }
        played => played?.context("there are two processors"),
    }
}
