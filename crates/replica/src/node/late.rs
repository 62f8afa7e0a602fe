//! Late answers of followers: those that commit nothing, and so may wait. The answers of a follower
//! are kept as one, which confirms all entries that they do. Called by `incoming`.

use raft::eraftpb::{Message, MessageType};

/// The late answers of a follower.
#[derive(Clone, Copy, Debug)]
struct Late {
    from: u64,
    /// The number of its answers that Raft has not got.
    count: usize,
    /// The last entry that one of these answers confirms.
    index: u64,
    commit: u64,
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
    pub(super) fn add(&mut self, message: &Message, most: usize) -> bool {
        if self.term != message.term {
            self.term = message.term;
            self.answers.clear();
        }
        let Some(place) = self.place(message.from) else {
            self.answers.push(Late {
                from: message.from,
                count: 1,
                index: message.index,
                commit: message.commit,
            });
            return most > 1;
        };
        let late = &mut self.answers[place];
        late.count += 1;
        // Answers may come in another order than they were sent.
        late.index = late.index.max(message.index);
        late.commit = late.commit.max(message.commit);
        late.count < most
    }

    /// Adds the late answers of a follower to another answer of it, which Raft gets next.
    pub(super) fn join(&mut self, message: &mut Message) {
        let place = self.place(message.from);
        if let Some(place) = place.filter(|_| self.term == message.term) {
            let late = self.answers.swap_remove(place);
            message.index = late.index.max(message.index);
            message.commit = late.commit.max(message.commit);
        }
    }

    fn place(&self, from: u64) -> Option<usize> {
        self.answers.iter().position(|it| it.from == from)
    }

    /// Takes the answers of one of the followers as one, without its receiver.
    pub(super) fn pop(&mut self) -> Option<Message> {
        let late = self.answers.pop()?;
        Some(Message {
            msg_type: MessageType::MsgAppendResponse,
            from: late.from,
            term: self.term,
            index: late.index,
            commit: late.commit,
            ..Message::default()
        })
    }
}

#[cfg(test)]
mod tests;
