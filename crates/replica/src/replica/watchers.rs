//! Clients that watch keys. Each waits for the next change, or for an empty answer after a while,
//! and then asks again from the next index on. Called by `seat`.

use dunlin_core::{Cx, Nanos, Ticket};

use crate::node::Node;
use crate::wire::Answer;

/// How long a client waits for a change before it gets an empty answer.
const HOLD: Nanos = Nanos::from_millis(100);

#[derive(Debug)]
struct Watcher {
    prefix: Vec<u8>,
    from: u64,
    ticket: Ticket,
    /// The client gets an answer at this time; `None`: it has just arrived.
    until: Option<Nanos>,
}

#[derive(Debug, Default)]
pub(super) struct Watchers {
    all: Vec<Watcher>,
    /// The last entry whose changes all watchers have seen.
    seen: u64,
}

impl Watchers {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds a client that wants changes from an index on, or with 0 changes from now on.
    pub(super) fn add(&mut self, prefix: &[u8], from: u64, ticket: Ticket) {
        self.all.push(Watcher {
            prefix: prefix.to_vec(),
            from,
            ticket,
            until: None,
        });
    }

    /// Answers the clients for which there are changes, or whose time is over. If the node does not
    /// lead, answers all of them.
    pub(super) fn run(&mut self, node: &Node<Ticket>, moved: &Answer, cx: &mut Cx<'_>) {
        let (now, has_news) = (cx.now(), self.seen != node.applied());
        self.seen = node.applied();
        self.all.retain_mut(|it| {
            let is_new = it.until.is_none();
            let until = *it.until.get_or_insert(now + HOLD);
            if it.from == 0 {
                it.from = node.applied() + 1;
            }
            match node.leads() {
                false => reply(it.ticket, moved, cx),
                true if !has_news && !is_new && now < until => return true,
                true => match node.events(&it.prefix, it.from) {
                    Ok(events) if events.is_empty() && now < until => return true,
                    Ok(events) => {
                        let size = Answer::size_of_events(&events);
                        // The client may have given up.
                        let _ =
                            cx.reply(it.ticket, size, |out| Answer::encode_events(&events, out));
                    }
                    Err(first) => reply(it.ticket, &Answer::Forgotten(first), cx),
                },
            }
            false
        });
    }
}

fn reply(ticket: Ticket, answer: &Answer, cx: &mut Cx<'_>) {
    // The client may have given up.
    let _ = cx.reply(ticket, answer.size(), |out| answer.encode(out));
}
