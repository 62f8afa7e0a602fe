//! Errors of a store, as a server sees them, and writes whose outcome is unknown.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use dunlin_core::Nanos;

use super::*;
use crate::disk::{ClaimError, Taking, run};
use crate::machine::{Ending, Options, Sequencer};

/// A store that makes an epoch, and then answers each write with an error.
struct Failing(Error);

impl StoreCalls for Failing {
    fn get(&mut self, _: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Error> {
        Ok(None)
    }

    fn range(&mut self, _: &[u8], _: &[u8], _: u32) -> Result<(Vec<Found>, bool), Error> {
        Ok((Vec::new(), false))
    }

    fn compare_and_set(&mut self, _: &[u8], _: u64, _: &[u8]) -> Result<Result<u64, u64>, Error> {
        Err(self.0)
    }

    fn transact(&mut self, _: &[Compare<'_>], _: &[Write<'_>]) -> Result<Result<u64, u64>, Error> {
        Ok(Ok(1))
    }
}

fn started<S: StoreCalls + 'static>(store: impl FnOnce() -> S + Send + 'static) -> Replicated<S> {
    let open = move || Ok::<_, Error>(store());
    let mut files = Replicated::start("numbers", open).unwrap();
    assert!(files.make(1, &[0; 2 * SLOT]).unwrap());
    files
}

fn is_marked(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|it| it.is::<Unchanged>())
}

#[test]
fn errors_after_which_a_server_tries_again_are_marked() {
    let errors = [
        (Error::Unavailable, true),
        (Error::Full, true),
        (Error::Unknown, true),
        (Error::Incompatible, false),
    ];
    for (error, tries_again) in errors {
        let mut files = started(move || Failing(error));
        let failed = files.write(0, &[0; SLOT]).unwrap_err();
        assert_eq!(is_marked(&failed), tries_again, "{error:?}");
        assert!(
            failed.to_string().contains("the replicated store"),
            "{failed}"
        );
    }
}

/// The fate of a write whose outcome the store does not tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Lost,
    Done,
    /// It arrives after its repetition.
    Late,
    /// Another process removes the file.
    Removed,
}

/// A store with one slot, which does not answer the first write.
struct Silent {
    fate: Option<Fate>,
    slot: Option<(u64, Vec<u8>)>,
    late: Option<(u64, Vec<u8>)>,
    last: u64,
}

impl Silent {
    fn set(&mut self, version: u64, value: &[u8]) -> Result<u64, u64> {
        let found = self.slot.as_ref().map_or(0, |slot| slot.0);
        if found != version {
            return Err(found);
        }
        self.last += 1;
        self.slot = Some((self.last, value.to_vec()));
        Ok(self.last)
    }

    fn do_late(&mut self) {
        if let Some((version, value)) = self.late.take() {
            let _ = self.set(version, &value);
        }
    }
}

impl StoreCalls for Silent {
    fn get(&mut self, _: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Error> {
        Ok(self.slot.clone())
    }

    fn range(&mut self, _: &[u8], _: &[u8], _: u32) -> Result<(Vec<Found>, bool), Error> {
        Ok((Vec::new(), false))
    }

    fn compare_and_set(
        &mut self,
        _: &[u8],
        version: u64,
        value: &[u8],
    ) -> Result<Result<u64, u64>, Error> {
        let Some(fate) = self.fate.take() else {
            let set = self.set(version, value);
            self.do_late();
            return Ok(set);
        };
        match fate {
            Fate::Lost => {}
            Fate::Done => drop(self.set(version, value)),
            Fate::Late => self.late = Some((version, value.to_vec())),
            Fate::Removed => self.slot = None,
        }
        Err(Error::Unknown)
    }

    fn transact(&mut self, _: &[Compare<'_>], _: &[Write<'_>]) -> Result<Result<u64, u64>, Error> {
        self.slot = Some((1, Vec::new()));
        Ok(Ok(1))
    }
}

#[test]
fn a_write_whose_outcome_is_unknown_is_repeated_before_the_next_one() {
    for fate in [Fate::Lost, Fate::Done, Fate::Late, Fate::Removed] {
        let mut files = started(move || Silent {
            fate: Some(fate),
            slot: None,
            late: None,
            last: 1,
        });
        let failed = files.write(0, &[1; SLOT]).unwrap_err();
        assert!(is_marked(&failed), "{fate:?}");
        let next = files.write(0, &[2; SLOT]);
        if fate == Fate::Removed {
            let error = next.unwrap_err();
            assert!(!is_marked(&error), "another server has removed the file");
            continue;
        }
        next.unwrap();
        assert_eq!(files.read(1).unwrap()[..SLOT], [2; SLOT], "{fate:?}");
        files.write(0, &[3; SLOT]).unwrap();
        assert_eq!(files.own.as_ref().unwrap().doubt, None);
    }
}

/// How a cluster lies, once it has made an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lie {
    /// No answer can be decoded. The client reports a write that it has sent as unknown.
    Malformed,
    /// Answers to writes cannot be decoded.
    MalformedWrites,
    /// Each part of a list promises another part.
    EndlessList,
    /// The list names ever more epochs.
    LongList,
}

struct Lying {
    lie: Lie,
    is_made: bool,
    named: u64,
}

impl StoreCalls for Lying {
    fn get(&mut self, _: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Error> {
        Err(Error::Incompatible)
    }

    fn range(&mut self, prefix: &[u8], _: &[u8], _: u32) -> Result<(Vec<Found>, bool), Error> {
        if !self.is_made {
            return Ok((Vec::new(), false));
        }
        self.named += u64::from(self.lie == Lie::LongList);
        let key = [prefix, format!("{:010}", 1 + self.named).as_bytes()].concat();
        let items = vec![Found {
            key,
            version: 1,
            value: Vec::new(),
        }];
        match self.lie {
            Lie::Malformed => Err(Error::Incompatible),
            Lie::MalformedWrites => Ok((items, false)),
            Lie::EndlessList | Lie::LongList => Ok((items, true)),
        }
    }

    fn compare_and_set(&mut self, _: &[u8], _: u64, _: &[u8]) -> Result<Result<u64, u64>, Error> {
        match self.lie {
            Lie::Malformed | Lie::MalformedWrites => Err(Error::Unknown),
            Lie::EndlessList | Lie::LongList => Ok(Ok(1)),
        }
    }

    fn transact(&mut self, _: &[Compare<'_>], _: &[Write<'_>]) -> Result<Result<u64, u64>, Error> {
        self.is_made = true;
        Ok(Ok(1))
    }
}

#[test]
fn a_server_gives_up_a_cluster_that_lies() {
    for lie in [
        Lie::Malformed,
        Lie::MalformedWrites,
        Lie::EndlessList,
        Lie::LongList,
    ] {
        let store = Lying {
            lie,
            is_made: false,
            named: 0,
        };
        let mut files = Replicated::start("numbers", move || Ok::<_, Error>(store)).unwrap();
        let options = Options::DEFAULT;
        let terms = options.terms(1);
        let claim = crate::disk::claim(&mut files, Taking::Free, terms).unwrap();
        let mut sequencer = Sequencer::new(claim, options);
        sequencer.open(0, b"a", true).unwrap();
        let (mut now, end) = (Nanos::ZERO, options.lease.times(100));
        while sequencer.ending().is_none() {
            now = now.max(sequencer.next_job_at());
            assert!(now < end, "{lie:?}: the server asks again and again");
            let job = sequencer.next_job(now).expect("it is due");
            sequencer.on_outcome(run(&mut files, &job));
        }
        let ending = sequencer.take_ending().unwrap();
        let error = match ending {
            Ending::Unreadable(error) if lie != Lie::MalformedWrites => error,
            Ending::Failed(error) if lie == Lie::MalformedWrites => error,
            other => panic!("{lie:?}: {other:?}"),
        };
        let text = error.to_string();
        assert!(text.contains("the replicated store"), "{lie:?}: {text}");
    }
}

/// A cluster in which each epoch has a file, but is not in the list.
struct Taken;

impl StoreCalls for Taken {
    fn get(&mut self, _: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Error> {
        Ok(None)
    }

    fn range(&mut self, _: &[u8], _: &[u8], _: u32) -> Result<(Vec<Found>, bool), Error> {
        Ok((Vec::new(), false))
    }

    fn compare_and_set(&mut self, _: &[u8], _: u64, _: &[u8]) -> Result<Result<u64, u64>, Error> {
        Ok(Err(1))
    }

    fn transact(&mut self, _: &[Compare<'_>], _: &[Write<'_>]) -> Result<Result<u64, u64>, Error> {
        Ok(Err(0))
    }
}

#[test]
fn a_server_that_finds_every_epoch_taken_gives_up() {
    let mut files = Replicated::start("numbers", || Ok::<_, Error>(Taken)).unwrap();
    let terms = Options::DEFAULT.terms(1);
    let error = crate::disk::claim(&mut files, Taking::Free, terms).unwrap_err();
    assert!(matches!(error, ClaimError::Io(_)), "{error:?}");
}

#[test]
fn a_thread_that_has_ended_cannot_be_asked_again() {
    let mut files = Replicated::start("numbers", || Ok::<_, Error>(Taken)).unwrap();
    // The call panics, and its thread ends.
    let _ = files.ask(|_: &mut Taken| -> Result<(), Error> { panic!("the test ends the thread") });
    let error = files.epochs().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}
