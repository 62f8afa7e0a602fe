//! Parcels that are read as confirmations, and those that are not.

use super::*;
use crate::wire::{Names, Parcel};

fn confirmation(index: u64) -> Confirmation {
    Confirmation {
        from: 2,
        term: 3,
        index,
        commit: index - 1,
    }
}

/// A parcel with these messages.
fn parcel(messages: Vec<Message>) -> Parcel {
    Parcel {
        names: None,
        are_two: false,
        messages,
    }
}

fn take(parcel: &Parcel) -> Option<Confirmation> {
    Confirmation::take(&parcel.to_bytes(), 2)
}

#[test]
fn a_confirmation_is_read_like_its_message() {
    for index in [1, 127, 128, 1 << 20, MAX_INDEX] {
        let answer = confirmation(index);
        let parcel = parcel(vec![answer.message(0)]);
        assert_eq!(take(&parcel), Some(answer));
        let mut message = Parcel::decode(&parcel.to_bytes()).unwrap().messages;
        message[0].from = 2;
        assert_eq!(message, [answer.message(0)]);
        assert_eq!(Confirmation::of(&message[0]), Some(answer));
    }
}

#[test]
fn nothing_else_is_read_as_a_confirmation() {
    let message = confirmation(300).message(0);
    let usual = parcel(vec![message.clone()]);
    let rejected = Message {
        reject: true,
        ..message.clone()
    };
    assert_eq!(Confirmation::of(&rejected), None);
    let heartbeat = Message {
        msg_type: MessageType::MsgHeartbeatResponse,
        ..message.clone()
    };
    assert_eq!(Confirmation::of(&heartbeat), None);
    let names = Names {
        cluster: 1,
        from: 2,
        to: 1,
        life: 4,
    };
    let others = [
        parcel(Vec::new()),
        parcel(vec![message.clone(), message.clone()]),
        parcel(vec![rejected]),
        parcel(vec![heartbeat]),
        parcel(vec![Message {
            log_term: 1,
            ..message
        }]),
        Parcel {
            names: Some(names),
            ..usual.clone()
        },
        Parcel {
            are_two: true,
            ..usual.clone()
        },
    ];
    assert!(others.iter().all(|it| take(it).is_none()));
    let bytes = usual.to_bytes();
    assert!((0..bytes.len()).all(|len| Confirmation::take(&bytes[..len], 2).is_none()));
    assert_eq!(Confirmation::take(&[&bytes[..], &[0]].concat(), 2), None);
}

#[test]
fn numbers_that_no_log_has_are_refused() {
    for (term, index) in [(0, 5), (MAX_INDEX + 1, 5), (3, MAX_INDEX + 1)] {
        let message = Confirmation {
            term,
            ..confirmation(index)
        };
        let bytes = parcel(vec![message.message(0)]).to_bytes();
        assert_eq!(Confirmation::take(&bytes, 2), None);
        assert!(Parcel::decode(&bytes).is_err());
    }
}
