//! Answers of a seat to its clients. Called by `seat`.

use dunlin_core::{Cx, Ticket};

use super::seat::Seat;
use crate::node::Output;
use crate::wire::{Answer, Operation, Request};

impl Seat {
    /// The answer that names the leader, if it is known.
    pub(super) fn moved(&self) -> Answer {
        let leader = self.node.roster().get(self.node.leader());
        Answer::Moved(leader.map_or(Vec::new(), |it| it.address.clone().into_bytes()))
    }

    /// Answers the operations that have ended.
    pub(super) fn answer(&self, output: &mut Output<Ticket>, cx: &mut Cx<'_>) {
        let leader = self.node.roster().get(self.node.leader());
        for (ticket, mut answer) in output.answers.drain(..) {
            if let (Answer::Moved(address), Some(leader)) = (&mut answer, leader) {
                *address = leader.address.clone().into_bytes();
            }
            // The client may have given up.
            let _ = cx.reply(ticket, answer.size(), |out| answer.encode(out));
        }
        for (ticket, bytes) in output.gets.drain(..) {
            self.answer_read(ticket, &bytes, cx);
        }
    }

    /// Answers a read, whose request has these bytes.
    fn answer_read(&self, ticket: Ticket, bytes: &[u8], cx: &mut Cx<'_>) {
        let request = Request::decode(bytes).expect("it was read when it came");
        // The client may have given up.
        let _ = match request.operation {
            Operation::Watch(_) => {
                let busy = Answer::Busy;
                cx.reply(ticket, busy.size(), |out| busy.encode(out))
            }
            Operation::Range(limit, after) => {
                let page = self.node.page(request.key, limit, after);
                cx.reply(ticket, page.size(), |out| page.encode(out))
            }
            _ => {
                let item = self.node.item(request.key);
                cx.reply(ticket, Answer::size_of(item), |out| {
                    Answer::encode_item(item, out);
                })
            }
        };
    }
}
