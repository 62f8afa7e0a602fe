//! Messages are read as they were written, and other bytes are refused.

use proptest::prelude::*;

use super::*;

fn requests() -> impl Strategy<Value = Request> {
    let place = (any::<(u64, u64)>(), any::<[u32; 2]>(), any::<bool>());
    let claim = (any::<IpAddr>(), any::<[u16; 2]>(), any::<u64>());
    (place, claim, any::<u32>(), any::<bool>()).prop_map(
        |((namespace, [index, queue], is_native), (ip, [port, vlan], owner), number, is_queue)| {
            let claim = Claim {
                address: SocketAddr::new(ip.to_canonical(), port),
                vlan,
                owner,
            };
            Request {
                place: QueueId {
                    namespace,
                    index,
                    queue,
                    mode: if is_native {
                        Mode::Native
                    } else {
                        Mode::Generic
                    },
                },
                wish: match is_queue {
                    true => Wish::Queue { frames: number },
                    false => Wish::Endpoint {
                        entries: number,
                        claim,
                    },
                },
            }
        },
    )
}

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written(request in requests()) {
        prop_assert_eq!(Request::of(&request.to_bytes()), Some(request));
    }

    #[test]
    fn any_bytes_are_a_request_of_the_same_meaning_or_none(
        mut bytes in prop::collection::vec(any::<u8>(), REQUEST),
        codes in any::<[bool; 2]>(),
    ) {
        prop_assert_eq!(Request::of(&bytes[1..]), None);
        bytes[..4].copy_from_slice(&MARK);
        bytes[4..6].copy_from_slice(&codes.map(u8::from));
        let request = Request::of(&bytes).unwrap();
        prop_assert_eq!(Request::of(&request.to_bytes()), Some(request));
        bytes[4] = 2;
        prop_assert_eq!(Request::of(&bytes), None);
        bytes[4..6].copy_from_slice(&[0, 2]);
        prop_assert_eq!(Request::of(&bytes), None);
        bytes[3..6].copy_from_slice(&[1, 0, 0]);
        prop_assert_eq!(Request::of(&bytes), None);
    }
}

#[test]
fn an_answer_names_the_kind_and_the_reason() {
    for rule in [None, Some(false), Some(true)] {
        assert_eq!(read_answer(&grant(rule)).unwrap(), rule);
    }
    for (_, kind) in KINDS {
        let error = io::Error::new(kind, "the reason");
        let read = read_answer(&refusal(&error)).unwrap_err();
        assert_eq!((read.kind(), &*read.to_string()), (kind, "the reason"));
    }
    let other = io::Error::new(io::ErrorKind::TimedOut, "late");
    assert_eq!(
        read_answer(&refusal(&other)).unwrap_err().kind(),
        io::ErrorKind::Other
    );
    let long = io::Error::other("x".repeat(2 * ANSWER));
    assert_eq!(refusal(&long).len(), ANSWER);
    let strange = [
        &b""[..],
        b"dxs",
        b"dxs\x03",
        b"dxs\x02\0\0",
        b"dxs\x03\0",
        b"dxs\x03\0\x03",
        b"dxs\x03\0\x01more",
    ];
    for strange in strange {
        assert!(read_answer(strange).is_err());
    }
}
