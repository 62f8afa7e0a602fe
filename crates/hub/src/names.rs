//! The running look-ups of names, for all channels of a thread. Channels that share
//! sessions with a server lose them together, and then all look its name up. So a name has one
//! look-up at a time, and one thread. A channel that asks during a look-up gets the answer of the
//! next look-up: the answer of the running one may be older than the loss for which the channel
//! asks.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The source of a channel that waits for a name: the channel's number, and the source's index.
pub(crate) type Asker = (u32, usize);

/// Names that are looked up now.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<Arc<str>, Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    now: Vec<Asker>,
    next: Vec<Asker>,
}

impl Names {
    /// A source asks for its name. True if a look-up must begin.
    pub(crate) fn on_ask(&mut self, name: &Arc<str>, asker: Asker) -> bool {
        if let Some(waiting) = self.0.get_mut(name) {
            waiting.next.push(asker);
            return false;
        }
        let waiting = self.0.entry(Arc::clone(name)).or_default();
        waiting.now.push(asker);
        true
    }

    /// A look-up has ended. Returns the sources that get its answer, and true if another look-up
    /// must begin.
    pub(crate) fn on_end(&mut self, name: &str) -> (Vec<Asker>, bool) {
        let Some(waiting) = self.0.get_mut(name) else {
            return (Vec::new(), false);
        };
        let next = std::mem::take(&mut waiting.next);
        let has_next = !next.is_empty();
        let now = std::mem::replace(&mut waiting.now, next);
        if !has_next {
            self.0.remove(name);
        }
        (now, has_next)
    }
}

#[cfg(test)]
mod tests;
