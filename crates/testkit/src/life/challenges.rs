//! The challenges of the world. An endpoint reports a challenge only if the other host or a forger
//! sent it, for a session of the endpoint and with the session's token (rule C13).

use dunlin_core::Challenged;
use dunlin_wire::{CHALLENGE_LEN, HEADER_LEN, Header, PacketType};

use super::host::Host;
use super::ledger::Ledger;

/// All challenges that a host may have received.
#[derive(Default)]
pub(super) struct Challenges {
    known: Vec<(usize, Challenged)>,
    last: u64,
}

impl Challenges {
    /// Makes a host challenge one of the other host's sessions, which may still be connecting.
    pub(super) fn send(&mut self, hosts: &mut [Host; 2], from: usize, which: usize) {
        let there = &mut hosts[1 - from].rpc;
        let count = there.sessions().count();
        let session = there.sessions().nth(which % count.max(1));
        let Some(offer) = session.and_then(|session| there.lifecycle().offer_of(session)) else {
            return;
        };
        self.last += 1;
        let challenged = Challenged {
            session: offer.session,
            token: offer.token,
            secret: self.last,
        };
        self.known.push((1 - from, challenged));
        let to = (offer.session, offer.token);
        let mut lifecycle = hosts[from].rpc.lifecycle();
        lifecycle.challenge(super::net::PEER, to, self.last);
    }

    /// Notes that a forger's frame reaches a host.
    pub(super) fn on_forged(&mut self, to: usize, frame: &[u8]) {
        let header = Header::decode(frame).ok();
        let header = header.filter(|header| header.kind == PacketType::Challenge);
        let secret = frame.get(HEADER_LEN..).and_then(<[u8]>::first_chunk);
        if let (Some(header), Some(secret)) = (header, secret) {
            let secret: &[u8; CHALLENGE_LEN] = secret;
            let challenged = Challenged {
                session: header.session,
                token: header.token,
                secret: u64::from_le_bytes(*secret),
            };
            self.known.push((to, challenged));
        }
    }

    /// Checks the report of a host's endpoint.
    pub(super) fn check(&self, host: usize, challenged: Challenged, ledger: &Ledger) {
        let named = ledger.pairs.iter().any(|pair| {
            let session = pair.sessions[host].number();
            (session, pair.tokens[host]) == (challenged.session, challenged.token)
        });
        assert!(named, "{challenged:?} names no session of host {host}");
        let known = self.known.contains(&(host, challenged));
        assert!(known, "{challenged:?} was never sent to host {host}");
    }
}
