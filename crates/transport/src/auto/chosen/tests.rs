//! An `auto` endpoint uses the transport that its options name, and not UDP, for peers of other
//! hosts.

use std::io;

use dunlin_core::transport::{Halves, PeerId, Rx, Tx, TxItem};
use dunlin_wire::control::EndpointUid;

use super::{Chosen, OpenRemote, OpenedRemote, RemoteOptions};
use crate::auto::remote::offers_as_udp;
use crate::auto::{Auto, AutoRx, AutoTx, Options};
use crate::connect::{Connect, PeerInfo, meet};
use crate::shm::Shm;
use crate::udp::{self, Udp};

/// UDP in the place of another transport, or a transport that does not open.
#[derive(Debug)]
struct Played {
    opens: bool,
}

impl OpenRemote for Played {
    fn open(&self, udp: udp::Options) -> io::Result<OpenedRemote> {
        if !self.opens {
            return Err(io::Error::other("no such device"));
        }
        Ok(OpenedRemote::new::<Udp>("played", Udp::open(&udp)?))
    }
}

fn open(remote: Option<RemoteOptions>) -> io::Result<Halves<AutoRx, AutoTx>> {
    Auto::open(&Options {
        remote,
        ..Options::default()
    })
}

fn played() -> Halves<AutoRx, AutoTx> {
    open(Some(RemoteOptions::new(Played { opens: true }))).unwrap()
}

const fn peer(number: u8) -> PeerInfo {
    PeerInfo {
        endpoint: EndpointUid([number; 16]),
        same_host: false,
        same_process: false,
        proves: true,
        local: None,
        remote: Some(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)),
    }
}

fn item(to: PeerId) -> TxItem {
    TxItem {
        peer: to,
        inline_len: 24,
        inline: [7; _],
        data: dunlin_msgbuf::BufRef::EMPTY,
    }
}

#[test]
fn packets_go_over_the_named_transport_and_arrive_over_udp() {
    for remotes in [[true, false], [false, true], [true, true]] {
        let [mut a, mut b] =
            remotes.map(|named| if named { played() } else { open(None).unwrap() });
        let named = [&a, &b].map(|end| end.tx.remote().label());
        assert_eq!(named, remotes.map(|named| named.then_some("played")));
        let [to_b, to_a] = meet::<Auto>([&mut a, &mut b], &[peer(1), peer(2)]).unwrap();
        a.tx.burst(&[item(to_b)]);
        b.tx.burst(&[item(to_a)]);
        for end in [&mut a, &mut b] {
            let mut looks = (0..100_000).map(|_| end.rx.burst());
            assert_eq!(looks.find(|count| *count > 0), Some(1), "{remotes:?}");
            assert_eq!(end.rx.frame(0).bytes, [7; 24]);
            let counters = Auto::counters(&end.rx, &end.tx);
            assert_eq!(
                [counters.tx_packets, counters.rx_packets],
                [1, 1],
                "{counters:?}"
            );
        }
    }
}

#[test]
fn an_endpoint_whose_named_transport_does_not_open_does_not_open() {
    let error = open(Some(RemoteOptions::new(Played { opens: false }))).unwrap_err();
    assert_eq!(error.to_string(), "no such device");
}

#[test]
fn only_a_transport_with_offers_of_udp_can_be_remote() {
    assert!(offers_as_udp::<Udp>() && offers_as_udp::<Chosen>());
    assert!(!offers_as_udp::<Shm>() && !offers_as_udp::<Auto>());
}
