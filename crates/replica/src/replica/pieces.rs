//! Parts of snapshots that are sent to other members, and those that arrive. Each part has a call
//! of its own, which counts among the calls to its receiver. Called by `seat`.

use dunlin_core::{CallOptions, Cx, Tag, Ticket};
use raft::eraftpb::Message;

use super::peers::Peer;
use super::seat::{MARK, Note, PART, Seat};
use super::transfer::{Progress, Sending};
use crate::wire::{Follower, PIECE, Piece};

impl Seat {
    /// The members that follow this one, with the progress of their snapshots.
    pub(super) fn followers(&self) -> Vec<Follower> {
        let of = |peer: &Peer| {
            let (sent, size) = peer.sending.as_ref().map_or((0, 0), Sending::progress);
            Some(Follower {
                id: peer.id,
                matched: self.node.matched(peer.id)?,
                sent,
                size,
            })
        };
        self.peers.iter().filter_map(of).collect()
    }

    /// Takes a part of a snapshot. False: the part is for another member, or not the next one.
    pub(super) fn on_piece(&mut self, piece: &Piece<'_>, ticket: Ticket, own: u64) -> bool {
        let is_for_us = piece.cluster == self.cluster && piece.to == own;
        let takes = is_for_us && self.knows(piece.from, own) && self.node.on_piece(piece);
        if takes {
            self.parts.push(ticket);
            self.is_stirred = true;
        }
        takes
    }

    /// Answers the parts that were read. Their senders then send the next parts.
    pub(super) fn answer_parts(&mut self, cx: &mut Cx<'_>) {
        if !self.parts.is_empty() && self.node.has_read() {
            for ticket in self.parts.drain(..) {
                // The sender may have given up.
                let _ = cx.reply(ticket, 0, |_| {});
            }
        }
    }

    pub(super) fn on_piece_done(&mut self, lane: usize, has_arrived: bool) {
        let peer = &mut self.peers[lane];
        let Some(sending) = &mut peer.sending else {
            return;
        };
        if sending.ends_earlier() {
            return;
        }
        if has_arrived && sending.on_arrived() == Progress::Goes {
            return;
        }
        self.stop_sending(lane, has_arrived);
    }

    /// Ends the snapshot that is being sent to a member.
    fn stop_sending(&mut self, lane: usize, is_whole: bool) {
        let peer = &mut self.peers[lane];
        self.notes.push(Note::Sent(peer.id, is_whole));
        if let Some(sending) = peer.sending.take() {
            self.node.discard(sending.into_snapshot());
        }
    }

    /// Begins to send the snapshot of a message, in place of an earlier one.
    pub(super) fn begin_sending(&mut self, lane: usize, message: Message) {
        let earlier = self.peers[lane].sending.take();
        self.peers[lane].sending = Some(Sending::new(message, earlier.as_ref()));
        if let Some(sending) = earlier {
            self.node.discard(sending.into_snapshot());
        }
    }

    /// Sends the next part of a member's snapshot, if none is in flight. If it cannot be sent, Raft
    /// asks for the snapshot again later.
    pub(super) fn send_piece(&mut self, own: u64, lane: usize, cx: &mut Cx<'_>) {
        let peer = &mut self.peers[lane];
        let Some(sending) = &mut peer.sending else {
            return;
        };
        let Some(part) = sending.next(self.piece_bytes) else {
            return;
        };
        let piece = Piece {
            cluster: self.cluster,
            from: own,
            to: peer.id,
            ..part
        };
        let len = piece.bytes.len();
        let is_sent = self.lanes.open(lane).is_some_and(|session| {
            let (Ok(mut request), Ok(response)) = (cx.buf(Piece::HEAD + len), cx.buf(0)) else {
                return false;
            };
            piece.encode(request.data_mut());
            let tag = Tag(MARK | PART | lane as u64);
            let options = CallOptions {
                // A part is long, and its receiver may be busy.
                deadline: Some(self.deadline.times(16)),
            };
            let issued = cx.call_with(session, PIECE, request, response, tag, options);
            issued
                .map_err(|refused| cx.recycle([refused.request, refused.response]))
                .is_ok()
        });
        match is_sent {
            true => {
                sending.on_sent(len);
                peer.calls += 1;
            }
            false => self.stop_sending(lane, false),
        }
    }
}
