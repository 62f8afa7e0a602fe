//! Late answers of followers: those that commit nothing, and so may wait. The answers of a follower
//! are kept as one, which confirms all entries that they do. Called by `incoming`.

use raft::eraftpb::Message;

use crate::wire::Confirmation;

/// The late answers of a follower.
#[derive(Clone, Copy, Debug)]
struct Late {
    /// The number of its answers that Raft has not got.
    count: usize,
    /// The last entries that they confirm and report as committed.
    last: Confirmation,
}

/// The late answers of a term.
#[derive(Debug, Default)]
pub(super) struct LateAnswers {
    term: u64,
    answers: Vec<Late>,
}

impl LateAnswers {
    /// Takes a late answer. False: `most` answers of its follower wait with this one, so that Raft
    /// should get them now ([`Self::join`]).
    pub(super) fn add(&mut self, answer: &Confirmation, most: usize) -> bool {
        if self.term != answer.term {
            self.term = answer.term;
            self.answers.clear();
        }
        let Some(place) = self.place(answer.from) else {
            self.answers.push(Late {
                count: 1,
                last: *answer,
            });
            return most > 1;
        };
        let late = &mut self.answers[place];
        late.count += 1;
        // Answers may come in another order than they were sent.
        late.last.index = late.last.index.max(answer.index);
        late.last.commit = late.last.commit.max(answer.commit);
        late.count < most
    }

    /// Adds the late answers of a follower to another answer of it, which Raft gets next.
    pub(super) fn join(&mut self, message: &mut Message) {
        let place = self.place(message.from);
        if let Some(place) = place.filter(|_| self.term == message.term) {
            let late = self.answers.swap_remove(place).last;
            message.index = late.index.max(message.index);
            message.commit = late.commit.max(message.commit);
        }
    }

    fn place(&self, from: u64) -> Option<usize> {
        self.answers.iter().position(|it| it.last.from == from)
    }

    /// Takes the answers of one of the followers as one.
    pub(super) fn pop(&mut self) -> Option<Confirmation> {
        self.answers.pop().map(|it| it.last)
    }
}

#[cfg(test)]
mod tests;
