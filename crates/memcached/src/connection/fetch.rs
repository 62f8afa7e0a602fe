//! Gets of long values that other threads have. Their slices are errands, one after the other, so
//! that neither thread copies more than a slice without a turn for other clients.
//!
//! The answer is built apart from the output, as in `copying.rs`: if the value is overwritten or
//! removed meanwhile, the command starts over, and after several times it is answered in one piece.
//! Until the value is there, no later errand of the client leaves, so the client's next command
//! cannot change the value before.

use crate::errand::{Errand, Part};
use crate::limits::MOST_RESTARTS;
use crate::partition::LongValue;

/// A value that is being fetched.
#[derive(Debug)]
pub(super) struct Fetch {
    value: LongValue,
    /// Bytes of the value that are there.
    done: usize,
    /// The answer so far.
    text: Vec<u8>,
    restarts: u8,
}

/// The next step after an answer.
#[derive(Debug)]
pub(super) enum Step {
    /// The bytes for the client are complete.
    End(Vec<u8>),
    /// This errand comes next.
    Ask(Errand),
    /// There is no answer.
    Lost,
}

impl Fetch {
    /// Takes the answer to an errand; `None`: it will not arrive. An answer with a long value
    /// begins a fetch, or begins it again.
    pub(super) fn step(
        fetch: &mut Option<Box<Self>>,
        errand: &Errand,
        answer: Option<&[u8]>,
    ) -> Step {
        let part = answer.and_then(|answer| errand.part(answer));
        match (part, fetch) {
            (Some(Part::Whole(text)), _) => Step::End(text.to_vec()),
            (Some(Part::Begin { line, value }), fetch) => {
                let restarts = fetch.as_ref().map_or(0, |it| it.restarts);
                *fetch = Some(Box::new(Self::new(line, value, restarts)));
                Step::Ask(errand.slice(value.stamp, 0))
            }
            (Some(Part::Slice(slice)), Some(fetch)) => fetch.on_slice(errand, slice),
            (Some(Part::Gone), Some(fetch)) => {
                fetch.restarts += 1;
                fetch.text = Vec::new();
                Step::Ask(errand.restart(fetch.restarts >= MOST_RESTARTS))
            }
            (Some(Part::Slice(_) | Part::Gone) | None, _) => Step::Lost,
        }
    }

    fn new(line: &[u8], value: LongValue, restarts: u8) -> Self {
        let mut text = Vec::with_capacity(line.len() + value.len + 2);
        text.extend_from_slice(line);
        Self {
            value,
            done: 0,
            text,
            restarts,
        }
    }

    fn on_slice(&mut self, errand: &Errand, slice: &[u8]) -> Step {
        self.done += slice.len();
        self.text.extend_from_slice(slice);
        if self.done < self.value.len {
            return Step::Ask(errand.slice(self.value.stamp, self.done));
        }
        self.text.extend_from_slice(b"\r\n");
        Step::End(std::mem::take(&mut self.text))
    }
}
