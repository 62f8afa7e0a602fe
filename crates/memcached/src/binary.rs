//! Clients of other protocols: memcached's binary protocol, and TLS. Each client gets one answer
//! that its library understands; then the connection closes.

/// The first byte of a binary request, and of its answer.
const REQUEST: u8 = 0x80;
const RESPONSE: u8 = 0x81;

/// Bytes of a binary header.
const HEADER: usize = 24;

/// The status "unknown command".
const UNKNOWN: u16 = 0x0081;

/// The first two bytes of a TLS connection: a handshake, version 3.
const TLS: [u8; 2] = [0x16, 0x03];

/// The protocol of a connection, as far as its first bytes reveal it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opening {
    /// More bytes are needed to know.
    Short,
    Text,
    Binary,
    Tls,
}

pub(crate) fn opening(bytes: &[u8]) -> Opening {
    match bytes {
        [] => Opening::Short,
        [REQUEST, ..] if bytes.len() < HEADER => Opening::Short,
        [REQUEST, ..] => Opening::Binary,
        [first] if *first == TLS[0] => Opening::Short,
        _ if bytes.starts_with(&TLS) => Opening::Tls,
        _ => Opening::Text,
    }
}

/// Answers a binary request with "unknown command". The answer repeats the bytes by which the
/// client recognises its request.
pub(crate) fn refuse(request: &[u8], out: &mut Vec<u8>) {
    let text = b"Unknown command";
    let len = u32::try_from(text.len()).expect("it is short");
    let mut header = [0; HEADER];
    header[0] = RESPONSE;
    header[1] = request[1];
    header[6..8].copy_from_slice(&UNKNOWN.to_be_bytes());
    header[8..12].copy_from_slice(&len.to_be_bytes());
    header[12..16].copy_from_slice(&request[12..16]);
    out.extend_from_slice(&header);
    out.extend_from_slice(text);
}
