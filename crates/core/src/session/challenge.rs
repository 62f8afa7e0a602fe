//! Challenges, which prove that packets reach the other side at an address (rule C13).
//!
//! A challenge may come before its session is open. So packets for sessions that are not open come
//! here before they are dropped. Called by `context/notices.rs` and by `Lifecycle`.

use dunlin_wire::{
    CHALLENGE_LEN, Flags, HEADER_LEN, Header, PacketType, PktNum, ReqNum, SessionNum, Token,
};

use crate::session::lifecycle::Challenged;
use crate::session::table::Sessions;

/// The header of a challenge for the session that has this number and token at the receiver.
pub(crate) fn header_to((session, token): (SessionNum, Token)) -> Header {
    Header {
        kind: PacketType::Challenge,
        flags: Flags::NONE,
        aux: 0,
        session,
        token,
        size: 0,
        pkt: PktNum(0),
        req: ReqNum(0),
    }
}

impl Sessions {
    /// The challenge at the start of `bytes`, if it is for a session of this side.
    #[cold]
    pub(crate) fn challenged(&self, bytes: &[u8]) -> Option<Challenged> {
        let header = Header::decode(bytes).ok()?;
        if header.kind != PacketType::Challenge {
            return None;
        }
        let secret: &[u8; CHALLENGE_LEN] = bytes.get(HEADER_LEN..)?.first_chunk()?;
        let (session, token) = (header.session, header.token);
        self.named(session, token)?;
        Some(Challenged {
            session,
            token,
            secret: u64::from_le_bytes(*secret),
        })
    }
}

#[cfg(test)]
mod tests;
