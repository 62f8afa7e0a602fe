//! Disks that cannot be read, and writes whose outcome stays unknown.

use super::*;

fn unread(kind: io::ErrorKind) -> Outcome {
    Outcome {
        result: Err(JobError::Read(kind.into())),
    }
}

#[test]
fn a_disk_whose_data_is_strange_again_and_again_ends_the_server() {
    for kind in [io::ErrorKind::InvalidData, io::ErrorKind::BrokenPipe] {
        let mut sequencer = started();
        let mut looks = 0;
        while sequencer.ending().is_none() {
            let now = sequencer.next_job_at();
            let job = sequencer.next_job(now).expect("it is due");
            assert_eq!(job.kind, Kind::Check);
            looks += 1;
            // One good look in between begins the count again, and one without an answer does not.
            sequencer.on_outcome(match looks {
                9 => outcome(Done::Checked(7)),
                12 => unread(io::ErrorKind::TimedOut),
                _ => unread(kind),
            });
        }
        assert_eq!(looks, 9 + 10 + 1);
        assert!(matches!(sequencer.ending(), Some(Ending::Unreadable(_))));
    }
}

#[test]
fn a_disk_that_does_not_answer_never_ends_the_server() {
    let mut sequencer = started();
    for _ in 0..300 {
        let now = sequencer.next_job_at();
        sequencer.next_job(now).expect("it is due");
        sequencer.on_outcome(unread(io::ErrorKind::Other));
    }
    assert!(sequencer.ending().is_none());
}

/// Saves until the server ends, at most 300 times, and returns their number. Each has this kind of
/// error, and the looks between them this outcome.
fn saves_until_the_end(kind: io::ErrorKind, look: fn() -> Outcome) -> usize {
    let mut sequencer = started();
    assert_eq!(sequencer.take(&take(51), Nanos(10)), Taken::First(50));
    let (mut now, mut saves) = (Nanos(10), 0);
    while sequencer.ending().is_none() && saves < 300 {
        now = now.max(sequencer.next_job_at());
        let job = sequencer.next_job(now).expect("it is due");
        let unknown = Unchanged("it may be written".to_owned());
        sequencer.on_outcome(match job.kind {
            Kind::Check => look(),
            _ => {
                saves += 1;
                Outcome {
                    result: Err(JobError::Unchanged(io::Error::new(kind, unknown))),
                }
            }
        });
    }
    saves
}

#[test]
fn writes_that_stay_unknown_end_the_server_if_looks_are_answered() {
    let seen = || outcome(Done::Checked(7));
    let silent = || unread(io::ErrorKind::Other);
    assert_eq!(saves_until_the_end(io::ErrorKind::TimedOut, seen), 100);
    assert_eq!(saves_until_the_end(io::ErrorKind::TimedOut, silent), 300);
    assert_eq!(saves_until_the_end(io::ErrorKind::Other, seen), 300);
}

#[test]
fn a_slot_that_is_saved_counts_even_if_the_look_after_it_fails() {
    let unseen = || Outcome {
        result: Err(JobError::Unseen(io::ErrorKind::InvalidData.into())),
    };
    let mut sequencer = started();
    assert_eq!(sequencer.take(&take(51), Nanos(10)), Taken::First(50));
    sequencer.next_job(Nanos(10)).expect("a block is due");
    sequencer.on_outcome(unseen());
    assert_eq!(sequencer.take(&take(90), Nanos(10)), Taken::First(101));
    // The lease is the one of before.
    assert_eq!(sequencer.take(&take(1), Nanos(910)), Taken::Later);
    sequencer.stop();
    sequencer.next_job(Nanos(10)).expect("the last state");
    sequencer.on_outcome(unseen());
    assert!(matches!(sequencer.ending(), Some(Ending::Stopped)));
}

#[test]
fn saves_whose_looks_cannot_be_read_do_not_end_the_server_at_once() {
    let mut sequencer = started();
    for first in (50..).step_by(51).take(50) {
        assert_eq!(sequencer.take(&take(51), Nanos(10)), Taken::First(first));
        sequencer.next_job(Nanos(10)).expect("a block is due");
        sequencer.on_outcome(Outcome {
            result: Err(JobError::Unseen(io::ErrorKind::InvalidData.into())),
        });
        assert!(sequencer.ending().is_none());
    }
}
