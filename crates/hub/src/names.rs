//! The look-ups of names that are under way, for all channels of a thread. Channels that share
//! sessions with a server lose them together, and then all look its name up. So a name has one
//! look-up at a time, and one thread. A channel that asks during a look-up gets the answer of the
//! next one: the answer of this one may be older than the loss for which the channel asks.

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

    /// A look-up has ended. Returns those that get its answer, and true if another one must begin.
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
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_look_up_at_a_time_and_each_channel_one_that_began_after_it_asked() {
        let (mut names, [one, other]) = (Names::default(), ["a:1", "b:1"].map(Arc::from));
        assert!(names.on_ask(&one, (1, 0)));
        assert!(names.on_ask(&other, (1, 1)), "another name does not wait");
        assert!(!names.on_ask(&one, (2, 0)));
        assert!(!names.on_ask(&one, (3, 0)));
        assert_eq!(names.on_end(&one), (vec![(1, 0)], true));
        assert!(!names.on_ask(&one, (1, 0)), "the second one is under way");
        assert_eq!(names.on_end(&one), (vec![(2, 0), (3, 0)], true));
        assert_eq!(names.on_end(&one), (vec![(1, 0)], false));
        assert!(names.on_ask(&one, (1, 0)));
        assert_eq!(names.on_end(&other), (vec![(1, 1)], false));
        assert_eq!(names.on_end("c:1"), (vec![], false));
    }
}
