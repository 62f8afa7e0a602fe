//! A property that holds for any bytes: the tests of this crate and the fuzz target share it.

use crate::frame::{self, Front};

/// Reads bytes as a request with a front. If the request is valid, writing it gives the same bytes.
///
/// # Panics
/// If it does not.
pub fn front(bytes: &[u8]) {
    let Ok((left, metadata, message)) = frame::read(bytes) else {
        return;
    };
    let meta = metadata.to_owned();
    let front = Front::with(left, &meta);
    if front.size() == 0 {
        // An empty front need not be sent.
        assert_eq!(bytes.len(), 8 + message.len());
        return;
    }
    let mut again = vec![0xFF; front.size() + message.len()];
    front.write(&mut again).copy_from_slice(message);
    // The reader passes over bytes 1 to 3 if byte 0 is the length.
    let ignored = if bytes[0] == 0 { 0..0 } else { 1..4 };
    again[ignored.clone()].copy_from_slice(&bytes[ignored]);
    assert_eq!(again, bytes, "{metadata:?}");
    for (key, value) in metadata.iter() {
        assert!(metadata.get(key).is_some(), "{key} {value}");
    }
}
