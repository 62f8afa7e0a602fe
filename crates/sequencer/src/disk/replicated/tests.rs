//! Errors of a store, as a server sees them.

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

#[test]
fn errors_after_which_nothing_has_changed_are_marked() {
    let errors = [
        (Error::Unavailable, true),
        (Error::Full, true),
        (Error::Unknown, false),
    ];
    for (error, has_changed_nothing) in errors {
        let open = move || Ok::<_, Error>(Failing(error));
        let mut files = Replicated::start("numbers", open).unwrap();
        assert!(files.make(1, &[0; 2 * SLOT]).unwrap());
        let failed = files.write(0, &[0; SLOT]).unwrap_err();
        let is_marked = failed.get_ref().is_some_and(|it| it.is::<Unchanged>());
        assert_eq!(is_marked, has_changed_nothing, "{error:?}");
        assert!(
            failed.to_string().contains("the replicated store"),
            "{failed}"
        );
    }
}
