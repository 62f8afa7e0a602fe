//! A packet as a line of text, or as a JSON object.

use dunlin_insight::Packet;
use dunlin_wire::Header;
use serde_json::json;

/// Time, endpoint, direction, peer, and the fields of the first header.
pub(super) fn line(packet: &Packet) -> String {
    let (seconds, nanos) = (packet.at_ns / 1_000_000_000, packet.at_ns % 1_000_000_000);
    let arrow = if packet.sent { "->" } else { "<-" };
    let peer = packet.peer.map_or("?".into(), |peer| peer.to_string());
    let what = match Header::decode(&packet.bytes) {
        Ok(header) => format!(
            "{:6} session {} request {} packet {} size {}",
            name_of(&header),
            header.session.0,
            header.req.0,
            header.pkt.0,
            header.size,
        ),
        Err(error) => format!("no header: {error}"),
    };
    let dropped = packet.dropped.as_ref();
    let dropped = dropped.map_or(String::new(), |reason| format!("  DROPPED: {reason}"));
    let mark = if packet.congestion {
        "  congestion"
    } else {
        ""
    };
    format!(
        "{seconds}.{nanos:09} {} {arrow} {peer}  {what}, {} bytes{mark}{dropped}",
        packet.endpoint, packet.len,
    )
}

/// The packet as a JSON object.
pub(super) fn json(packet: &Packet) -> String {
    let header = Header::decode(&packet.bytes).ok();
    let header = header.map(|header| {
        json!({
            "type": name_of(&header),
            "session": header.session.0,
            "request": header.req.0,
            "packet": header.pkt.0,
            "size": header.size,
        })
    });
    json!({
        "at_ns": packet.at_ns,
        "endpoint": packet.endpoint,
        "sent": packet.sent,
        "peer": packet.peer,
        "bytes": packet.len,
        "congestion": packet.congestion,
        "dropped": packet.dropped,
        "header": header,
    })
    .to_string()
}

/// The name of the packet type in the protocol.
fn name_of(header: &Header) -> String {
    format!("{:?}", header.kind).to_uppercase()
}
