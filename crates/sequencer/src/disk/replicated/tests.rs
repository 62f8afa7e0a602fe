//! Errors of a store, as a server sees them, and writes whose outcome is unknown.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;

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
