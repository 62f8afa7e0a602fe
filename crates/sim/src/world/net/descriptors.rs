//! Memory shared by two simulated processes, and the descriptors by which one passes it to the
//! other. A descriptor that is lost with its message is closed, as the kernel would do. Made by
//! `channels`.

use std::cell::Cell;
use std::rc::Rc;

/// Memory shared by two processes, and the words of both ends in it.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) id: u64,
    /// Whether each end uses the memory, by the number of the end.
    pub(super) here: [Cell<bool>; 2],
    /// Whether one end is dead, or has declared the other dead.
    pub(super) given_up: Cell<bool>,
}

impl Memory {
    /// New memory, which only its maker uses.
    pub(super) const fn new(id: u64) -> Self {
        Self {
            id,
            here: [Cell::new(true), Cell::new(false)],
            given_up: Cell::new(false),
        }
    }
}

/// A descriptor of the memory of a channel. It is closed when it is dropped.
#[derive(Debug)]
pub struct Fd {
    memory: Rc<Memory>,
    /// Descriptors that are open in all processes.
    open: Rc<Cell<u64>>,
}

impl Fd {
    pub(super) fn new(memory: &Rc<Memory>, open: &Rc<Cell<u64>>) -> Self {
        open.set(open.get() + 1);
        Self {
            memory: Rc::clone(memory),
            open: Rc::clone(open),
        }
    }

    /// The memory, mapped by the process that has the descriptor.
    pub(super) fn memory(&self) -> Rc<Memory> {
        Rc::clone(&self.memory)
    }
}

impl Clone for Fd {
    /// A second descriptor of the same memory.
    fn clone(&self) -> Self {
        Self::new(&self.memory, &self.open)
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        self.open.set(self.open.get() - 1);
    }
}

impl PartialEq for Fd {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.memory, &other.memory)
    }
}

impl Eq for Fd {}
