//! Reservations, leases and endings, event by event.

use std::io;

use super::*;
use crate::disk::{Done, JobError, Kind, Outcome, Unchanged};
use crate::state::State;
use crate::wire::MAX_NAME;

mod errors;
mod quick;

#[allow(
    clippy::needless_update,
    reason = "a build with planted bugs has one more field"
)]
const OPTIONS: Options = Options {
    block: 100,
    lease: Nanos(900),
    ..Options::DEFAULT
};

fn claim(before: u32, sequences: &[(&str, u64)]) -> Claim {
    let named = |(name, limit): &(&str, u64)| (name.parse().expect("it is a name"), *limit);
    Claim {
        state: State {
            epoch: 7,
            generation: 0,
            process: 1,
            lease_ns: 900,
            raise: 100,
            before,
            sequences: sequences.iter().map(named).collect(),
        },
        wait_ns: if before == 0 { 0 } else { 800 },
    }
}

fn take(count: u32) -> Take {
    Take {
        sequence: 0,
        epoch: 7,
        count,
        expected: None,
    }
}

fn outcome(done: Done) -> Outcome {
    Outcome { result: Ok(done) }
}

/// Performs jobs until none is due. Returns the limits that were saved last.
fn settle(sequencer: &mut Sequencer, now: Nanos) -> Vec<u64> {
    let mut limits = Vec::new();
    while let Some(job) = sequencer.next_job(now) {
        let done = match job.kind {
            Kind::Check => Done::Checked(7),
            Kind::Save { slot, .. } => {
                let slots = [slot.clone(), slot].concat();
                let saved = State::recover(&slots).expect("it was just made");
                limits = saved.sequences.iter().map(|it| it.1).collect();
                Done::Saved(7)
            }
            Kind::Inherit(epoch) => panic!("there is no epoch {epoch}"),
        };
        sequencer.on_outcome(outcome(done));
    }
    limits
}

fn started() -> Sequencer {
    let mut sequencer = Sequencer::new(claim(0, &[("a", 50)]), OPTIONS);
    settle(&mut sequencer, Nanos(10));
    sequencer
}

#[test]
fn numbers_are_given_only_after_their_save() {
    let mut sequencer = Sequencer::new(claim(0, &[("a", 50)]), OPTIONS);
    assert_eq!(sequencer.take(&take(1), Nanos(10)), Taken::Later);
    let job = sequencer.next_job(Nanos(10)).expect("a block is due");
    assert!(matches!(job.kind, Kind::Save { .. }));
    assert_eq!(sequencer.take(&take(1), Nanos(10)), Taken::Later);
    assert_eq!(sequencer.next_job(Nanos(10)), None, "one is under way");
    sequencer.on_outcome(outcome(Done::Saved(7)));
    assert_eq!(sequencer.take(&take(2), Nanos(10)), Taken::First(50));
    assert_eq!(sequencer.take(&take(1), Nanos(10)), Taken::First(52));
}

fn unchanged() -> Outcome {
    let error = io::Error::other(Unchanged("no leader".to_owned()));
    Outcome {
        result: Err(JobError::Unchanged(error)),
    }
}

#[test]
fn a_save_that_changed_nothing_is_tried_again_after_a_while() {
    let mut sequencer = Sequencer::new(claim(0, &[("a", 50)]), OPTIONS);
    let job = sequencer.next_job(Nanos(10)).expect("a block is due");
    sequencer.on_outcome(unchanged());
    assert_eq!(sequencer.take(&take(1), Nanos(10)), Taken::Later);
    let look = sequencer.next_job(Nanos(10)).expect("a look comes first");
    assert_eq!(look.kind, Kind::Check);
    sequencer.on_outcome(outcome(Done::Checked(7)));
    assert_eq!(sequencer.next_job(Nanos(10)), None, "not at once");
    let next = sequencer.next_job_at();
    assert_eq!(next, Nanos(310), "a third of the lease later");
    // The slot that still has the earlier state is written, and not the one with the last state.
    assert_eq!(sequencer.next_job(next), Some(job));
    sequencer.on_outcome(outcome(Done::Saved(7)));
    assert_eq!(sequencer.take(&take(2), next), Taken::First(50));
    assert!(sequencer.ending().is_none());
}

#[test]
fn saves_that_change_nothing_do_not_end_the_lease() {
    let mut sequencer = started();
    assert_eq!(sequencer.take(&take(51), Nanos(10)), Taken::First(50));
    let (mut now, mut saves) = (Nanos(10), 0);
    for _ in 0..20 {
        now = now.max(sequencer.next_job_at());
        let job = sequencer.next_job(now).expect("it is due");
        // An attempt takes longer than the time between two looks.
        now += Nanos(400);
        match job.kind {
            Kind::Check => sequencer.on_outcome(outcome(Done::Checked(7))),
            _ => {
                saves += 1;
                sequencer.on_outcome(unchanged());
            }
        }
        assert_eq!(sequencer.figures(now).phase, Phase::Serving);
    }
    assert_eq!(saves, 10);
}

#[test]
fn a_server_that_stops_does_not_try_again() {
    let mut sequencer = started();
    sequencer.stop();
    sequencer.next_job(Nanos(10)).expect("the last state");
    sequencer.on_outcome(unchanged());
    assert!(matches!(sequencer.ending(), Some(Ending::Failed(_))));
}

#[test]
fn a_block_is_reserved_before_the_last_is_used_up() {
    let mut sequencer = started();
    assert_eq!(sequencer.take(&take(50), Nanos(10)), Taken::First(50));
    assert_eq!(sequencer.next_job(Nanos(10)), None);
    assert_eq!(sequencer.take(&take(1), Nanos(10)), Taken::First(100));
    assert_eq!(settle(&mut sequencer, Nanos(10)), [201]);
}

#[test]
fn a_range_longer_than_a_block_is_reserved_at_once() {
    let mut sequencer = started();
    assert_eq!(sequencer.take(&take(MAX_COUNT), Nanos(10)), Taken::Later);
    let limits = settle(&mut sequencer, Nanos(10));
    assert_eq!(limits, [50 + 100 + u64::from(MAX_COUNT)]);
    assert_eq!(
        sequencer.take(&take(MAX_COUNT), Nanos(10)),
        Taken::First(50)
    );
}

#[test]
fn invalid_counts_are_refused() {
    let mut sequencer = started();
    for count in [0, MAX_COUNT + 1, u32::MAX] {
        assert_eq!(
            sequencer.take(&take(count), Nanos(10)),
            Taken::Refused(Status::BadCount)
        );
    }
    let strange = Take {
        sequence: 1,
        ..take(1)
    };
    assert_eq!(
        sequencer.take(&strange, Nanos(10)),
        Taken::Refused(Status::Moved)
    );
}

#[test]
fn the_end_of_64_bits_is_refused() {
    let near = u64::MAX - 10;
    let mut sequencer = Sequencer::new(claim(0, &[("a", near)]), OPTIONS);
    settle(&mut sequencer, Nanos(10));
    assert_eq!(
        sequencer.take(&take(11), Nanos(10)),
        Taken::Refused(Status::Exhausted)
    );
    assert_eq!(sequencer.take(&take(10), Nanos(10)), Taken::First(near));
    assert_eq!(
        sequencer.take(&take(1), Nanos(10)),
        Taken::Refused(Status::Exhausted)
    );
}

#[test]
fn a_new_sequence_is_saved_twice_before_its_first_number() {
    let mut sequencer = started();
    assert_eq!(sequencer.open(0, b"b", false), Err(Status::NoSequence));
    assert_eq!(sequencer.open(0, b"two words", true), Err(Status::BadName));
    assert_eq!(
        sequencer.open(0, &[b'x'; MAX_NAME + 1], true),
        Err(Status::BadName)
    );
    let opened = sequencer.open(0, b"b", true).expect("it is made");
    assert_eq!((opened.sequence, opened.epoch, opened.next), (1, 7, 1));
    let of_new = Take {
        sequence: 1,
        ..take(1)
    };
    for _ in 0..2 {
        assert_eq!(sequencer.take(&of_new, Nanos(10)), Taken::Later);
        sequencer.next_job(Nanos(10)).expect("it is not saved");
        sequencer.on_outcome(outcome(Done::Saved(7)));
    }
    assert_eq!(sequencer.take(&of_new, Nanos(10)), Taken::First(1));
    assert_eq!(sequencer.open(0, b"b", false).map(|it| it.next), Ok(2));
}

#[test]
fn a_sequence_that_is_opened_during_a_save_is_not_in_its_slot() {
    let mut sequencer = Sequencer::new(claim(0, &[("a", 50)]), OPTIONS);
    let job = sequencer.next_job(Nanos(10)).expect("a block is due");
    sequencer.open(0, b"b", true).expect("it is made");
    let Kind::Save { slot, .. } = job.kind else {
        panic!("{job:?}");
    };
    let saved = State::recover(&[slot.clone(), slot].concat()).expect("it was just made");
    assert_eq!(saved.sequences.len(), 1);
    let of_new = Take {
        sequence: 1,
        ..take(1)
    };
    for _ in 0..3 {
        assert_eq!(sequencer.take(&of_new, Nanos(10)), Taken::Later);
        sequencer.on_outcome(outcome(Done::Saved(7)));
        let _ = sequencer.next_job(Nanos(10));
    }
    assert_eq!(sequencer.take(&of_new, Nanos(10)), Taken::First(1));
}

#[test]
fn sequences_have_a_limit() {
    let mut sequencer = started();
    for number in 1..MAX_SEQUENCES {
        let name = format!("n{number}");
        assert!(sequencer.open(0, name.as_bytes(), true).is_ok());
    }
    assert_eq!(sequencer.open(0, b"more", true), Err(Status::TooMany));
    assert!(sequencer.open(0, b"n1", true).is_ok());
    settle(&mut sequencer, Nanos(10));
}

#[test]
fn no_number_is_given_without_a_lease() {
    let mut sequencer = started();
    assert!(matches!(
        sequencer.take(&take(1), Nanos(909)),
        Taken::First(_)
    ));
    assert_eq!(sequencer.take(&take(1), Nanos(910)), Taken::Later);
    assert_eq!(sequencer.figures(Nanos(910)).phase, Phase::Uncertain);
    // A look that fails proves nothing. The next lease counts from the start of the look at 1250.
    sequencer.next_job(Nanos(920)).expect("a look is due");
    let failed = io::Error::from(io::ErrorKind::TimedOut);
    sequencer.on_outcome(Outcome {
        result: Err(JobError::Read(failed)),
    });
    assert_eq!(sequencer.take(&take(1), Nanos(910)), Taken::Later);
    assert_eq!(
        sequencer.next_job(Nanos(930)),
        None,
        "it is repeated after a while"
    );
    sequencer.next_job(Nanos(1250)).expect("a look is due");
    sequencer.on_outcome(outcome(Done::Checked(7)));
    assert!(matches!(
        sequencer.take(&take(1), Nanos(2149)),
        Taken::First(_)
    ));
    assert_eq!(sequencer.take(&take(1), Nanos(2150)), Taken::Later);
}

#[test]
fn a_server_that_finds_a_higher_epoch_stops() {
    for done in [Done::Checked(8), Done::Saved(8)] {
        let mut sequencer = started();
        sequencer.next_job(Nanos(400)).expect("a look is due");
        sequencer.on_outcome(outcome(done));
        assert!(matches!(sequencer.ending(), Some(Ending::Deposed(8))));
        assert_eq!(
            sequencer.take(&take(1), Nanos(10)),
            Taken::Refused(Status::Deposed)
        );
        assert_eq!(sequencer.open(0, b"a", false), Err(Status::Deposed));
        assert_eq!(sequencer.next_job(Nanos(5000)), None);
    }
}

#[test]
fn a_client_that_has_seen_a_higher_epoch_stops_the_server() {
    let newer = Take {
        epoch: 8,
        ..take(1)
    };
    let mut sequencer = started();
    assert_eq!(
        sequencer.take(&newer, Nanos(10)),
        Taken::Refused(Status::Deposed)
    );
    assert_eq!(
        sequencer.take(&take(1), Nanos(10)),
        Taken::Refused(Status::Deposed)
    );
    let mut sequencer = started();
    assert_eq!(sequencer.open(8, b"a", false), Err(Status::Deposed));
    let older = Take {
        epoch: 6,
        ..take(1)
    };
    assert_eq!(
        started().take(&older, Nanos(10)),
        Taken::Refused(Status::Moved)
    );
}

#[test]
fn a_server_that_takes_over_waits_and_then_inherits() {
    let mut sequencer = Sequencer::new(claim(6, &[("a", 50)]), OPTIONS);
    assert_eq!(sequencer.open(0, b"a", false), Err(Status::NotServing));
    // The lease of 800 ns plus one eighth, from the first question on.
    assert_eq!(sequencer.next_job(Nanos(10)), None);
    assert_eq!(sequencer.next_job(Nanos(909)), None);
    let job = sequencer.next_job(Nanos(910)).expect("the lease has ended");
    assert_eq!(job.kind, Kind::Inherit(6));
    assert_eq!(
        sequencer.take(&take(1), Nanos(10)),
        Taken::Refused(Status::NotServing)
    );
    // The previous server has raised a limit, and made a sequence.
    let mut last = claim(0, &[("b", 9), ("a", 150)]).state;
    last.epoch = 6;
    sequencer.on_outcome(outcome(Done::Inherited(last)));
    assert_eq!(settle(&mut sequencer, Nanos(910)), [250, 109]);
    assert_eq!(sequencer.take(&take(1), Nanos(10)), Taken::First(150));
}

#[test]
fn a_disk_that_fails_ends_the_server() {
    let mut sequencer = started();
    assert_eq!(sequencer.take(&take(60), Nanos(10)), Taken::First(50));
    sequencer.next_job(Nanos(10)).expect("a block is due");
    let failed = io::Error::from(io::ErrorKind::Other);
    sequencer.on_outcome(Outcome {
        result: Err(JobError::Write(failed)),
    });
    assert!(matches!(sequencer.ending(), Some(Ending::Failed(_))));
    assert_eq!(
        sequencer.take(&take(1), Nanos(10)),
        Taken::Refused(Status::NotServing)
    );
    assert_eq!(sequencer.next_job(Nanos(5000)), None, "no save is repeated");
}

#[test]
fn a_clean_stop_leaves_no_gap() {
    let mut sequencer = started();
    assert_eq!(sequencer.take(&take(3), Nanos(10)), Taken::First(50));
    sequencer.stop();
    assert_eq!(
        sequencer.take(&take(1), Nanos(10)),
        Taken::Refused(Status::NotServing)
    );
    assert_eq!(settle(&mut sequencer, Nanos(10)), [53]);
    assert!(matches!(sequencer.ending(), Some(Ending::Stopped)));
}
