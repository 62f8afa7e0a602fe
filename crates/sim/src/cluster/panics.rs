//! Panics of a run are results, so they are not printed: the hook keeps their message instead.
//!
//! Invariant: outside of [`quietly`] the process's own hook works as before. Called by `run`.

use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

static HOOK: Once = Once::new();

/// Runs `body`; panics of this thread in it are recorded and print nothing.
pub(crate) fn quietly<R>(body: impl FnOnce() -> R) -> R {
    HOOK.call_once(|| {
        let outer = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if QUIET.get() {
                LAST.set(info.to_string().replace('\n', " "));
            } else {
                outer(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = body();
    QUIET.set(before);
    result
}

/// Message and place of the last recorded panic.
pub(crate) fn last() -> String {
    LAST.with_borrow(String::clone)
}
