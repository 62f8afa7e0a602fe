//! Processes that serve many measurements, because each process takes seconds to fill its table.
//! The first probe that needs one starts it.

use std::cell::RefCell;
use std::rc::Rc;

/// One or more processes that the probes of several cases share.
#[derive(Debug)]
pub(crate) struct Resident<S>(Rc<RefCell<Option<S>>>);

impl<S> Clone for Resident<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<S> Resident<S> {
    /// A resident that is not started yet.
    pub(crate) fn new() -> Self {
        Self(Rc::new(RefCell::new(None)))
    }

    /// Passes the process to `work`, after starting it if there is none. After an error, the next
    /// call starts a new one.
    ///
    /// # Errors
    /// The errors of `start` and `work`.
    pub(crate) fn with<R>(
        &self,
        start: impl FnOnce() -> anyhow::Result<S>,
        work: impl FnOnce(&mut S) -> anyhow::Result<R>,
    ) -> anyhow::Result<R> {
        let taken = self.0.borrow_mut().take();
        let mut process = taken.map_or_else(start, Ok)?;
        let result = work(&mut process)?;
        *self.0.borrow_mut() = Some(process);
        Ok(result)
    }
}

#[cfg(test)]
mod tests;
