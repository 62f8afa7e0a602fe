//! `tools/wireshark/dunlin.lua`, run by tshark, finds the same fields in frames as `dunlin_wire`:
//! in the golden vectors, good and bad, and in captures of `dunlin sim --pcap`.

use std::path::{Path, PathBuf};
use std::process::Command;

use dunlin_testkit::skip;
use dunlin_wire::{AckVector, Bitmap, ErrorCode, HEADER_LEN, Header, HeaderError, PacketType};
use serde_json::Value;

use super::{run, text};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const VECTORS: &str = include_str!("../../../wire/vectors/packets.txt");
/// Data per packet of the golden vectors.
const DATA_SIZE: u32 = 64;
/// The port whose datagrams the dissector always takes for Dunlin's, and a port on which it must
/// recognize them.
const PORTS: [u16; 2] = [31_850, 40_000];
/// The layer that the dissector makes.
const OURS: &str = "dunlin";
/// The length of a capture that cuts nothing off.
const ALL: usize = usize::MAX;
/// The lengths of the header of a pcap file, of the header of a record, and of the headers of
/// Ethernet, IPv4 and UDP together.
const FILE: usize = 24;
const RECORD: usize = 16;
const LOWER: usize = 14 + 20 + 8;

/// tshark's fields for each frame of a file, for the named layers; `None` if tshark is not
/// installed.
pub(super) fn dissect(pcap: &Path, layers: &str, options: &[&str]) -> Option<Vec<Value>> {
    let script = format!("lua_script:{ROOT}/tools/wireshark/dunlin.lua");
    let out = Command::new("tshark")
        .args(["-n", "-X", &script, "-r", pcap.to_str().unwrap()])
        .args(["-T", "json", "--no-duplicate-keys"])
        .args(["-J", layers])
        .args(options)
        // Ignores the user's preferences.
        .env("WIRESHARK_CONFIG_DIR", env!("CARGO_TARGET_TMPDIR"))
        .output();
    let Ok(out) = out else {
        skip("there is no tshark");
        return None;
    };
    let said = text(&out.stderr);
    assert!(out.status.success() && !said.contains("Lua"), "{said}");
    let frames: Vec<Value> = serde_json::from_slice(&out.stdout).unwrap();
    Some(
        frames
            .iter()
            .map(|frame| frame["_source"]["layers"].clone())
            .collect(),
    )
}

pub(super) fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Writes a file with these datagrams, each with its port and cut to `captured` bytes.
fn pcap(name: &str, datagrams: &[(u16, Vec<u8>)], captured: usize) -> PathBuf {
    let mut out = Vec::new();
    out.extend_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
    out.extend_from_slice(&[
        2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 1, 0, 0, 0,
    ]);
    for (port, bytes) in datagrams {
        let [ip, udp] = [28, 8].map(|lower| u16::try_from(lower + bytes.len()).unwrap());
        out.extend_from_slice(&[0; 8]);
        let kept = captured.min(bytes.len());
        for len in [kept, bytes.len()] {
            let len = u32::try_from(LOWER + len).unwrap();
            out.extend_from_slice(&len.to_le_bytes());
        }
        out.extend_from_slice(&[&[0; 12][..], &[8, 0, 0x45, 0]].concat());
        out.extend_from_slice(&ip.to_be_bytes());
        out.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        for word in [*port, *port, udp, 0] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&bytes[..kept]);
    }
    let path = temporary(name);
    std::fs::write(&path, out).unwrap();
    path
}

/// The datagrams in a file.
fn datagrams(pcap: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(pcap).unwrap();
    let mut rest = &bytes[FILE..];
    let mut all = Vec::new();
    while !rest.is_empty() {
        let len = u32::from_le_bytes(*rest[8..].first_chunk().unwrap()) as usize;
        all.push(rest[RECORD + LOWER..RECORD + len].to_vec());
        rest = &rest[RECORD + len..];
    }
    all
}

/// Name and bytes of each golden vector.
fn vectors() -> Vec<(&'static str, Vec<u8>)> {
    let byte = |at: &[u8]| u8::from_str_radix(text(at), 16).unwrap();
    let blocks = VECTORS
        .split("\n\n")
        .filter(|block| block.contains("name: "));
    let vector = |block: &'static str| {
        let get = |key| {
            block
                .lines()
                .find_map(|line| line.strip_prefix(key))
                .unwrap_or("")
        };
        let hex = get("hex:").trim().as_bytes().chunks(2);
        (get("name: "), hex.map(byte).collect())
    };
    blocks.map(vector).collect()
}

/// The packets that tshark has found in a frame.
pub(super) fn packets(layers: &Value) -> Vec<&Value> {
    match &layers["dunlin"] {
        Value::Null => Vec::new(),
        Value::Array(all) => all.iter().collect(),
        one => vec![one],
    }
}

/// A number, decimal or hexadecimal.
pub(super) fn number(value: &Value) -> u64 {
    let text = value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is not a number"));
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// All values of a field.
fn numbers(value: &Value) -> Vec<u64> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(all) => all.iter().map(number).collect(),
        one => vec![number(one)],
    }
}

/// Compares all fields of a packet from the decoder with the fields from tshark.
fn assert_same(name: &str, bytes: &[u8], found: &Value) {
    let header = Header::decode(bytes).unwrap();
    let expect = |field: &str, value: u64| {
        assert_eq!(
            numbers(&found[field]),
            [value],
            "{name}: {field} in {found}"
        );
    };
    expect("dunlin.version", 1);
    expect("dunlin.type", header.kind as u64);
    expect("dunlin.flags", header.flags.0.into());
    expect("dunlin.session", header.session.0.into());
    expect("dunlin.token", header.token.0.into());
    expect("dunlin.packet", header.pkt.0.into());
    expect("dunlin.req", header.req.0.into());
    let flags = &found["dunlin.flags_tree"];
    for (bit, flag) in [
        (1, "echo"),
        (2, "again"),
        (4, "encrypted"),
        (8, "acks"),
        (16, "sample"),
    ] {
        let is_set = u64::from(header.flags.0 & bit != 0);
        assert_eq!(
            number(&flags[format!("dunlin.flags.{flag}")]),
            is_set,
            "{name}: {flag}"
        );
    }
    match header.kind {
        PacketType::Req => expect("dunlin.request_type", header.req_type().0.into()),
        PacketType::Rfr => expect("dunlin.asked", header.aux.into()),
        PacketType::Cancel | PacketType::Challenge => expect("dunlin.size", 0),
        _ => match header.residence().to_nanos() {
            Some(nanos) => expect("dunlin.residence", nanos),
            None => expect("dunlin.residence.none", 1),
        },
    }
    let extension = &bytes[HEADER_LEN..][..header.extension_len()];
    match header.kind {
        PacketType::Req | PacketType::Resp => expect("dunlin.message_size", header.size.into()),
        PacketType::Err => {
            expect("dunlin.error", header.size.into());
            let said = &found["dunlin.error_tree"]["dunlin.error.name"];
            assert_eq!(*said, ErrorCode(header.size).to_string(), "{name}");
        }
        PacketType::Cr | PacketType::Rfr => assert_same_arrivals(name, &header, extension, found),
        PacketType::Cancel => {}
        PacketType::Challenge => {
            let secret = found["dunlin.challenge"].as_str().unwrap();
            let bytes = extension.iter().map(|byte| format!("{byte:02x}"));
            assert_eq!(secret, bytes.collect::<Vec<_>>().join(":"), "{name}");
        }
    }
    if let Some(vector) = AckVector::decode(extension).filter(|_| header.flags.0 & 8 != 0) {
        let acks = vector.0.map(|ack| u64::from(ack.0));
        assert_eq!(numbers(&found["dunlin.ack"]), acks, "{name}");
    }
}

fn assert_same_arrivals(name: &str, header: &Header, extension: &[u8], found: &Value) {
    let cumulative = header.cumulative().0;
    assert_eq!(
        number(&found["dunlin.cumulative"]),
        u64::from(cumulative),
        "{name}"
    );
    let words: Vec<u64> = extension
        .chunks(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect();
    assert_eq!(numbers(&found["dunlin.bitmap.word"]), words, "{name}");
    let bitmap = Bitmap::decode(extension, header.bitmap_extent()).unwrap();
    let offsets = bitmap.offsets();
    let arrived: Vec<u32> = offsets.map(|offset| cumulative + offset).collect();
    let said = found["dunlin.bitmap.arrived"].as_str().unwrap_or_default();
    let said = said
        .split(", ")
        .filter(|range| !range.is_empty())
        .flat_map(|range| {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            from.parse::<u32>().unwrap()..=to.parse().unwrap()
        });
    assert_eq!(said.collect::<Vec<u32>>(), arrived, "{name}");
}

/// The name of the counter in which an endpoint counts a packet that it drops for this error.
fn counter(error: HeaderError) -> &'static str {
    match error {
        HeaderError::Short => "short",
        HeaderError::Version => "version",
        HeaderError::Type => "kind",
        HeaderError::Flags => "flags",
        HeaderError::Field => "field",
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .join(":")
}

#[test]
fn wireshark_finds_in_the_golden_vectors_what_the_decoder_finds() {
    let mut vectors = vectors();
    // Wireshark ignores an empty datagram.
    vectors.retain(|(_, bytes)| !bytes.is_empty());
    assert!(vectors.len() > 35);
    let datagrams: Vec<_> = vectors
        .iter()
        .map(|(_, bytes)| (PORTS[0], bytes.clone()))
        .collect();
    let path = pcap("vectors.pcap", &datagrams, ALL);
    let Some(frames) = dissect(&path, OURS, &["-o", "dunlin.data_size:64"]) else {
        return;
    };
    assert_eq!(frames.len(), vectors.len());
    for ((name, bytes), frame) in vectors.iter().zip(&frames) {
        let packets = packets(frame);
        assert_eq!(packets.len(), 1, "{name}: {frame}");
        let refused = &packets[0]["dunlin.refused"];
        match Header::decode(bytes) {
            Err(error) => {
                assert_eq!(refused, counter(error), "{name}");
                let expert = &packets[0]["dunlin.refused_tree"]["_ws.expert"];
                assert!(expert["_ws.expert.message"].is_string(), "{name}: {frame}");
            }
            Ok(header) => {
                assert_same(name, bytes, packets[0]);
                match header.data_len(DATA_SIZE) {
                    None => assert_eq!(refused, "packet_number", "{name}"),
                    Some(0) => assert!(refused.is_null(), "{name}"),
                    Some(len) => {
                        let from = bytes.len() - len as usize;
                        assert_eq!(packets[0]["dunlin.data"], hex(&bytes[from..]), "{name}");
                    }
                }
            }
        }
    }
}

#[test]
fn wireshark_finds_every_packet_of_a_datagram_on_any_port() {
    let good: Vec<Vec<u8>> = vectors()
        .into_iter()
        .filter(|(_, bytes)| {
            let header = Header::decode(bytes);
            header.is_ok_and(|it| it.packet_len(DATA_SIZE).is_some())
        })
        .map(|(_, bytes)| bytes)
        .collect();
    let mut cut = good.concat();
    cut.truncate(cut.len() - 1);
    let noise: Vec<u8> = (0..100).map(|it| it ^ 0x5A).collect();
    let datagrams = [
        (PORTS[0], good.concat()),
        (PORTS[1], good.concat()),
        (PORTS[1], noise),
        (PORTS[0], cut),
    ];
    let path = pcap("datagrams.pcap", &datagrams, ALL);
    let Some(frames) = dissect(&path, OURS, &["-o", "dunlin.data_size:64"]) else {
        return;
    };
    for frame in &frames[..2] {
        let packets = packets(frame);
        assert_eq!(packets.len(), good.len());
        for (index, (bytes, found)) in good.iter().zip(packets).enumerate() {
            assert_same(&format!("packet {index}"), bytes, found);
        }
    }
    assert!(packets(&frames[2]).is_empty(), "{}", frames[2]);
    let packets = packets(&frames[3]);
    assert_eq!(packets.len(), good.len());
    assert_eq!(packets[good.len() - 1]["dunlin.refused"], "short");
}

#[test]
fn a_packet_that_the_capture_cut_off_is_not_short() {
    let good = |wanted: &str| {
        let mut vectors = vectors().into_iter();
        vectors.find(|(name, _)| *name == wanted).unwrap().1
    };
    let first = good("req");
    let two = [first.clone(), good("resp")].concat();
    let datagrams = [(PORTS[0], two.clone()), (PORTS[1], two)];
    // The first header and four bytes of its data.
    let path = pcap("cut.pcap", &datagrams, HEADER_LEN + 4);
    let Some(frames) = dissect(&path, OURS, &["-o", "dunlin.data_size:64"]) else {
        return;
    };
    for frame in &frames {
        let packets = packets(frame);
        assert_eq!(packets.len(), 1, "{frame}");
        assert_same("cut", &first, packets[0]);
        assert!(packets[0]["dunlin.refused"].is_null(), "{frame}");
        assert_eq!(packets[0]["dunlin.data"], "00:01:02:03");
        assert_eq!(packets[0]["dunlin.data_len"], "32");
    }
}

#[test]
fn wireshark_reads_what_the_simulator_has_captured() {
    let path = temporary("simulated.pcap");
    let scenario = format!("{ROOT}/scenarios/incast.toml");
    let sets = [
        "network.hosts=4",
        "endpoint.cc=dcqcn",
        "end_ms=0.2",
        "warm_up_ms=0.1",
    ];
    let sets = sets
        .into_iter()
        .chain(["load.0.spread_us=20.0", "load.0.request_bytes=50000"]);
    let mut args = vec!["sim", &scenario, "--pcap", path.to_str().unwrap()];
    sets.for_each(|set| args.extend(["--set", set]));
    let out = run(&args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    // The dissector infers the data size, because the command line does not state the scenario's.
    let Some(frames) = dissect(&path, OURS, &[]) else {
        return;
    };
    let datagrams = datagrams(&path);
    assert_eq!(frames.len(), datagrams.len());
    let mut kinds = [0; 6];
    for (index, (bytes, frame)) in datagrams.iter().zip(&frames).enumerate() {
        let packets = packets(frame);
        assert!(!packets.is_empty(), "{frame}");
        assert_same(&format!("frame {index}"), bytes, packets[0]);
        for found in packets {
            assert!(found["dunlin.refused"].is_null(), "frame {index}: {found}");
            kinds[usize::try_from(number(&found["dunlin.type"])).unwrap()] += 1;
        }
    }
    let [req, cr, _, resp, err, _] = kinds;
    assert!(req > 100 && cr > 3 && resp > 3 && err == 0, "{kinds:?}");
}
