//! Answers of a seat to its clients. Called by `seat`.

use dunlin_core::{Cx, Ticket};

use super::seat::Seat;
use crate::node::Node;
use crate::wire::{Answer, Operation, Request};

impl Seat {
    /// The answer that names the leader, if it is known.
    pub(super) fn moved(&self) -> Answer {
        let leader = self.node.roster().get(self.node.leader());
        Answer::Moved(leader.map_or(Vec::new(), |it| it.address.clone().into_bytes()))
    }

    /// Answers the operations that have ended.
    pub(super) fn answer(&mut self, cx: &mut Cx<'_>) {
        let (node, output) = (&self.node, &mut self.output);
        for (ticket, mut answer) in output.answers.drain(..) {
            if let Answer::Moved(address) = &mut answer
                && let Some(leader) = node.roster().get(node.leader())
            {
                *address = leader.address.clone().into_bytes();
            }
            // The client may have given up.
            let _ = cx.reply(ticket, answer.size(), |out| answer.encode(out));
        }
        for (ticket, bytes) in output.gets.drain(..) {
            answer_read(node, ticket, &bytes, cx);
        }
    }
}

/// Answers a read. `bytes` are its request.
fn answer_read(node: &Node<Ticket>, ticket: Ticket, bytes: &[u8], cx: &mut Cx<'_>) {
    let request = Request::decode(bytes).expect("it was read when it came");
    // The client may have given up.
    let _ = match request.operation {
        Operation::Watch(_) => {
            let busy = Answer::Busy;
            cx.reply(ticket, busy.size(), |out| busy.encode(out))
        }
        Operation::Range(limit, after) => {
            let page = node.page(request.key, limit, after);
            cx.reply(ticket, page.size(), |out| page.encode(out))
        }
        _ => {
            let item = node.item(request.key);
            cx.reply(ticket, Answer::size_of(item), |out| {
                Answer::encode_item(item, out);
            })
        }
    };
}
