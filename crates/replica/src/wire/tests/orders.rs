//! The bytes of orders and of changes of the members.

use raft::eraftpb::EntryType;

use super::super::change::{Change, bytes_of, entry_of};
use super::*;

#[test]
fn orders_and_changes_have_their_bytes() {
    let member = Member {
        id: 7,
        address: "h7".to_owned(),
    };
    let address = "020000006837";
    let orders = [
        (Order::Transfer(3), "0101000000000000".to_owned() + &word(3)),
        (Order::Snapshot, "0102000000000000".to_owned() + &word(0)),
        (
            Order::Join(member.clone()),
            "0103000000000000".to_owned() + &word(7) + address,
        ),
        (Order::Leave(4), "0104000000000000".to_owned() + &word(4)),
    ];
    for (order, expected) in orders {
        assert_eq!(hex(&order.to_bytes()), expected);
        assert_eq!(Order::decode(&order.to_bytes()), Ok(order));
    }
    let begin = Change::Begin {
        promote: vec![7],
        remove: vec![1, 2],
    };
    let ids = "01000000".to_owned() + &word(7) + "02000000" + &word(1) + &word(2);
    let changes = [
        (
            Change::Join(member),
            "0180010000000000".to_owned() + &word(7) + address,
        ),
        (begin, "0180020000000000".to_owned() + &ids),
        (Change::Complete, "0180030000000000".to_owned()),
    ];
    for (change, expected) in changes {
        let bytes = change.to_bytes();
        assert_eq!(hex(&bytes), expected);
        assert_eq!(Change::decode(&bytes).as_ref(), Ok(&change));
        assert!(Request::decode(&bytes).is_err());
        // Raft gets its own codec; disks and other replicas get ours.
        let entry = entry_of(5, 9, &bytes);
        assert_eq!(entry.entry_type, EntryType::EntryConfChangeV2);
        assert_eq!(
            (bytes_of(&entry), entry.term, entry.index),
            (&bytes[..], 5, 9)
        );
        assert_eq!(Change::decode(&bytes[..bytes.len() - 1]), Err(Malformed));
    }
}

#[test]
fn a_parcel_brings_a_change_alone_and_after_a_write() {
    let change = entry_of(5, 11, &Change::Complete.to_bytes());
    let mut parcel = append();
    parcel.messages.truncate(1);
    parcel.messages[0].entries[1] = change.clone();
    assert_eq!(Parcel::decode(&parcel.to_bytes()), Ok(parcel.clone()));
    let message = &mut parcel.messages[0];
    message.index = 10;
    message.log_term = 5;
    message.entries = vec![change].into();
    assert_eq!(Parcel::decode(&parcel.to_bytes()), Ok(parcel));
}
