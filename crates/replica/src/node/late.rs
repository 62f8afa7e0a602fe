//! Late answers of followers: those that commit nothing, and so may wait. Only the last one of each
//! follower is kept, because it confirms all entries that the earlier ones did. Called by
//! `incoming`.

use raft::eraftpb::{Message, MessageType};

/// The last late answer of a follower.
#[derive(Clone, Copy, Debug)]
struct Late {
    from: u64,
    /// Late answers of this follower that Raft has not got.
    count: usize,
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
    /// should get it now.
    pub(super) fn add(&mut self, message: &Message, most: usize) -> bool {
        if self.term != message.term {
            self.term = message.term;
            self.answers.clear();
        }
        let place = self.answers.iter().position(|it| it.from == message.from);
        let count = place.map_or(0, |place| self.answers[place].count) + 1;
        let late = Late {
            from: message.from,
            count,
            index: message.index,
            commit: message.commit,
        };
        match place {
            Some(place) if count >= most => {
                self.answers.swap_remove(place);
            }
            Some(place) => self.answers[place] = late,
            None if count < most => self.answers.push(late),
            None => {}
        }
        count < most
    }

    /// Takes the last answer of one of the followers, without its receiver.
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
