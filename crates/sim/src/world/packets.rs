//! Describes frames for the reader of a trace. Called through `NetConfig::describe`.

use dunlin_wire::{Header, PacketType};

/// One line that shows the first packet of a frame and the frame's length.
pub fn describe(bytes: &[u8]) -> String {
    let header = match Header::decode(bytes) {
        Ok(header) => header,
        Err(why) => return format!("{} bytes, no packet: {why}", bytes.len()),
    };
    let Header {
        kind,
        flags,
        aux,
        session,
        size,
        pkt,
        req,
        ..
    } = header;
    let more = match kind {
        PacketType::Req => format!("type={aux} size={size}"),
        PacketType::Resp => format!("size={size}"),
        PacketType::Err => format!("code={size}"),
        PacketType::Cr | PacketType::Rfr | PacketType::Cancel | PacketType::Challenge => {
            String::new()
        }
    };
    let (session, req, pkt, flags) = (session.0, req.0, pkt.0, flags.0);
    let token = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    format!(
        "{kind:?} s={session} t={token:08x} r={req} p={pkt} f={flags} {more} ({} bytes)",
        bytes.len()
    )
}
