//! Round trips, and bytes that are not a message.

use proptest::prelude::*;

use super::*;

const KINDS: [Kind; 7] = [
    Kind::New,
    Kind::ReuseByCreator,
    Kind::ReuseByAcceptor,
    Kind::Accepted,
    Kind::Reused,
    Kind::Here,
    Kind::Taken,
];

proptest! {
    #[test]
    fn an_encoded_message_is_decoded(
        kind in prop::sample::select(&KINDS[..]),
        log in 0..32_u32,
        bit: u16,
        data_size: u32,
        id: [u8; 16],
    ) {
        let message = Message { kind, cells: 1 << log, bit, data_size, id: ChannelId(id) };
        let bytes = message.encode();
        prop_assert!(bytes.len() <= crate::connect::MAX_OFFER_BYTES);
        prop_assert_eq!(Message::decode(&bytes).unwrap(), message);
        for shorter in 0..bytes.len() {
            prop_assert!(Message::decode(&bytes[..shorter]).is_err());
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(message) = Message::decode(&bytes) {
            prop_assert_eq!(message.encode(), bytes);
        }
    }
}

#[test]
fn another_version_is_refused() {
    let message = Message {
        kind: Kind::New,
        cells: 2048,
        bit: 0,
        data_size: 4096,
        id: ChannelId([1; 16]),
    };
    let mut bytes = message.encode();
    bytes[3] += 1;
    assert!(Message::decode(&bytes).is_err());
}
