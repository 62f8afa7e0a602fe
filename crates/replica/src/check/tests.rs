//! The properties, for slightly damaged messages and entries.

use dunlin_sim::Rng;

use super::*;
use crate::wire::{Member, Name, Names};

fn messages() -> Vec<Vec<u8>> {
    let member = |id| Member {
        id,
        address: format!("host-{id}"),
    };
    let members = Members::new([1, 2, 3].map(member)).unwrap();
    let name = Name {
        client: 7,
        number: 1,
        first: 1,
    };
    let piece = Piece {
        cluster: 1,
        from: 2,
        to: 3,
        term: 4,
        place: (5, 4),
        total: 9,
        offset: 3,
        bytes: b"bytes",
    };
    let mut part = vec![0; Piece::HEAD + 5];
    piece.encode(&mut part);
    let names = Names {
        cluster: 1,
        from: 2,
        to: 3,
        life: 4,
    };
    let parcel = |names| Parcel {
        names,
        are_two: false,
        messages: Vec::new(),
    };
    vec![
        Request::OPEN.to_bytes(),
        Request::clock(900).to_bytes(),
        Request::write(name, b"key", Operation::Put(b"value")).to_bytes(),
        Request::write(name, b"key", Operation::PutFor(50, b"value")).to_bytes(),
        Request::write(name, b"key", Operation::Delete).to_bytes(),
        members.to_bytes(),
        Roster::first(&members).to_bytes(),
        Status::idle(4).to_bytes(),
        Order::Join(member(9)).to_bytes(),
        parcel(None).to_bytes(),
        parcel(Some(names)).to_bytes(),
        part,
    ]
}

#[test]
fn damaged_messages_and_entries_keep_the_properties() {
    let (messages, mut rng) = (messages(), Rng::new(3));
    for _ in 0..20_000 {
        let mut all = Vec::new();
        for _ in 0..rng.below(6) {
            let mut one = rng.pick(&messages).clone();
            if rng.one_in(2) {
                let place = rng.index(one.len());
                one[place] = *rng.pick(&[0, 1, 7, 0x7f, 0xff, one[place] ^ 1]);
            }
            message(&one);
            all.extend(u16::try_from(one.len()).unwrap().to_le_bytes());
            all.extend(one);
        }
        entries(&all);
    }
}

#[test]
fn times_beyond_the_limit_are_refused() {
    assert!(Request::decode(&Request::clock(u64::MAX).to_bytes()).is_err());
    let mut machine = Machine::new(1, 5);
    let mut image = machine.to_image();
    image[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(machine.restore(&image).is_err());
}
