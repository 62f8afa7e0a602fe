//! Properties that hold for any bytes, shared by the property tests of this crate and the fuzz
//! targets in `fuzz/`.
//!
//! Every function panics if its property does not hold, and returns quietly otherwise. Built for
//! tests, for fuzzing, and with the feature `check`.

use crate::control::{ControlError, LENGTH_LEN, MAX_FRAME, Message, frame_len};
use crate::{
    AckVector, Bitmap, Flags, HEADER_LEN, Header, HeaderError, JsonAnswer, JsonQuestion,
    MessageAnswer, MessageQuestion, PacketType, Residence, VERSION, peek_request, peek_session,
};

/// Data bytes per packet, as in real sessions, and the extremes.
const DATA_SIZES: [u32; 6] = [1, 16, 1440, 4096, 1 << 20, u32::MAX];

/// Reads bytes as a packet: either it is accepted and encodes to the same bytes, or it is refused
/// with a reason.
pub fn packet(bytes: &[u8]) {
    match Header::decode(bytes) {
        Ok(header) => accepted_header(&header, bytes),
        Err(error) => refused_header(error, bytes),
    }
    assert_eq!(
        peek_session(bytes).is_some(),
        bytes.len() >= 8,
        "a look at the session needs 8 bytes"
    );
}

/// Reads bytes as a stream of control messages, until the stream ends or a connection would be
/// closed.
pub fn control_stream(mut bytes: &[u8]) {
    loop {
        match frame_len(bytes) {
            Ok(Some(len)) => {
                assert!(
                    len <= bytes.len() && len <= MAX_FRAME,
                    "the frame lies in the stream"
                );
                if control_frame(&bytes[..len]).is_err() {
                    return;
                }
                bytes = &bytes[len..];
            }
            Ok(None) => {
                assert!(
                    bytes.len() < MAX_FRAME,
                    "a full buffer contains a whole frame"
                );
                assert!(
                    Message::decode(bytes).is_err(),
                    "an incomplete frame is not a message"
                );
                return;
            }
            Err(error) => {
                assert_eq!(
                    error,
                    ControlError::Length,
                    "only the length makes framing fail"
                );
                assert_eq!(Message::decode(bytes), Err(ControlError::Length));
                return;
            }
        }
    }
}

/// Reads bytes as version, type and body of one frame, after adding the right length in front.
///
/// A fuzzer that changes the length of an input seldom changes its length field as well.
pub fn control_body(body: &[u8]) {
    let body = &body[..body.len().min(MAX_FRAME - LENGTH_LEN)];
    let mut frame = [0; MAX_FRAME];
    let length = u32::try_from(body.len()).expect("the body was cut off above");
    frame[..LENGTH_LEN].copy_from_slice(&length.to_le_bytes());
    frame[LENGTH_LEN..][..body.len()].copy_from_slice(body);
    control_stream(&frame[..LENGTH_LEN + body.len()]);
}

/// Reads bytes as each question and answer of reflection: an accepted one survives encoding.
pub fn reflection(bytes: &[u8]) {
    let mut out = [0; 4096];
    if bytes.len() > out.len() {
        return;
    }
    if let Some(it) = MessageQuestion::decode(bytes) {
        it.encode(&mut out[..it.size()]);
        assert_eq!(&out[..it.size()], bytes);
    }
    if let Some(it) = MessageAnswer::decode(bytes) {
        it.encode(&mut out[..it.size()]);
        // The reader ignores flags that it does not know.
        assert_eq!(MessageAnswer::decode(&out[..it.size()]), Some(it));
    }
    if let Some(it) = JsonQuestion::decode(bytes) {
        it.encode(&mut out[..it.size()]);
        assert_eq!(&out[..it.size()], bytes);
    }
    if let Some(it) = JsonAnswer::decode(bytes) {
        it.encode(&mut out[..it.size()]);
        assert_eq!(&out[..it.size()], bytes);
    }
}

/// Checks that a residence never exceeds the time that it encodes, and is only slightly below it.
pub fn residence(nanos: u64) {
    let residence = Residence::from_nanos(nanos);
    let Some(decoded) = residence.to_nanos() else {
        assert!(
            nanos >= 2047 << 31,
            "only a time that is too large has no residence"
        );
        return;
    };
    assert!(decoded <= nanos, "a residence never exceeds its time");
    // The mantissa keeps 11 bits, the first of which is set, so the loss is below 2⁻¹⁰.
    assert!(
        u128::from(nanos - decoded) * 1024 <= u128::from(nanos),
        "the loss is below 1 in 1024"
    );
    assert_eq!(
        Residence::from_nanos(decoded),
        residence,
        "a decoded time is encoded exactly"
    );
    if let Some(next) = Residence::from_nanos(nanos + 1).to_nanos() {
        assert!(next >= decoded, "a longer time has no smaller residence");
    }
}

fn accepted_header(header: &Header, bytes: &[u8]) {
    let encoded = header.encode();
    assert!(
        bytes.starts_with(&encoded),
        "encoding gives the bytes that were decoded"
    );
    assert_eq!(peek_session(bytes), Some(header.session));
    assert_eq!(peek_request(bytes), Some((header.kind, header.req)));
    let extended = HEADER_LEN + header.extension_len();
    assert!(extended <= bytes.len(), "the bytes contain the extension");
    assert_eq!(
        Header::decode(&bytes[..extended]),
        Ok(*header),
        "the length depends only on the header"
    );
    assert_eq!(
        Header::decode(&bytes[..extended - 1]),
        Err(HeaderError::Short)
    );
    extension(header, &bytes[HEADER_LEN..extended]);
    for data_size in DATA_SIZES {
        data_of_packet(header, data_size);
    }
}

fn extension(header: &Header, bytes: &[u8]) {
    if header.flags.has(Flags::ACK_VECTOR) {
        let acks = AckVector::decode(bytes).expect("the header announces acknowledgements");
        assert_eq!(acks.encode(), bytes);
    } else if matches!(header.kind, PacketType::Cr | PacketType::Rfr) {
        let (words, extent) = (header.bitmap_words(), header.bitmap_extent());
        let bitmap = Bitmap::decode(bytes, extent).expect("the header announces a bitmap");
        assert!(
            bitmap.encode().starts_with(bytes),
            "encoding gives the bytes that were decoded"
        );
        assert!(bitmap.words() <= words);
        assert_eq!(Header::arrivals(header.cumulative(), extent), header.size);
    } else if header.kind == PacketType::Challenge {
        assert_eq!(bytes.len(), crate::CHALLENGE_LEN);
    } else {
        assert!(bytes.is_empty(), "this header has no extension");
    }
}

fn data_of_packet(header: &Header, data_size: u32) {
    let carries_data = matches!(header.kind, PacketType::Req | PacketType::Resp);
    let before = u64::from(header.pkt.0) * u64::from(data_size);
    let exists = !carries_data || before < u64::from(header.size) || header.pkt.0 == 0;
    let Some(data) = header.data_len(data_size) else {
        assert!(!exists, "a packet of the message has a length");
        assert_eq!(header.packet_len(data_size), None);
        return;
    };
    assert!(exists, "a packet after the message's end has no length");
    assert!(data <= data_size && (carries_data || data == 0));
    if carries_data {
        let end = before + u64::from(data);
        let is_last = end == u64::from(header.size);
        assert!(is_last || data == data_size && end < u64::from(header.size));
    }
    let whole = HEADER_LEN + header.extension_len() + data as usize;
    assert_eq!(header.packet_len(data_size), Some(whole));
}

fn refused_header(error: HeaderError, bytes: &[u8]) {
    let kind = bytes.first().map(|byte| byte & 0xF);
    let has_reason = match error {
        HeaderError::Short => bytes.len() < HEADER_LEN + crate::MAX_EXTENSION,
        HeaderError::Version => bytes[0] >> 4 != VERSION,
        HeaderError::Type => kind > Some(PacketType::Challenge as u8),
        HeaderError::Flags => bytes[1] & !(Flags::ECN_ECHO.0 | Flags::RETRANSMISSION.0) != 0,
        HeaderError::Field => {
            kind.is_some_and(|kind| kind != PacketType::Req as u8 && kind != PacketType::Resp as u8)
        }
    };
    assert!(
        has_reason,
        "{error:?} is not a reason to refuse {bytes:02x?}"
    );
}

/// Reads bytes as one frame: a decoded frame encodes to the same bytes, and does not fit into a
/// shorter buffer.
fn control_frame(frame: &[u8]) -> Result<(), ControlError> {
    let message = Message::decode(frame).inspect_err(|error| {
        assert_ne!(*error, ControlError::Space, "decoding needs no space");
    })?;
    let mut out = [0; MAX_FRAME];
    let len = message
        .encode(&mut out)
        .expect("a decoded message is within the limits");
    assert_eq!(
        &out[..len],
        frame,
        "encoding gives the bytes that were decoded"
    );
    assert_eq!(
        message.encode(&mut out[..len - 1]),
        Err(ControlError::Space)
    );
    assert_eq!(
        frame_len(&frame[..len - 1]),
        Ok(None),
        "a frame is complete with its last byte"
    );
    assert!(len > LENGTH_LEN);
    Ok(())
}

#[cfg(test)]
mod tests;
