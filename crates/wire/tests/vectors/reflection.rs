//! Vectors of reflection: each question and answer, and bytes that are neither.

use dunlin_wire::{JsonAnswer, JsonQuestion, MessageAnswer, MessageQuestion};

use crate::text::Block;

/// The name of a vector, the kind of message as which it is read, and its bytes.
type Row = (&'static str, &'static str, &'static [u8]);

const ROWS: &[Row] = &[
    ("argument", "message-question", b"\x06Kv.get{\"key\": 7}"),
    ("argument-empty", "message-question", b"\x07Kv.size"),
    ("argument-name-short", "message-question", b"\x07Kv.get"),
    ("argument-not-utf8", "message-question", b"\x06Kv.get\xFF"),
    (
        "message",
        "message-answer",
        b"\x00\x01\x7E\x00\x07\0\0\0\0\0\0\0",
    ),
    ("message-one-way", "message-answer", b"\x00\x02\x00\x01"),
    ("message-later-flags", "message-answer", b"\x00\x02\x00\xFE"),
    (
        "message-no-method",
        "message-answer",
        b"\x01`Kv` has no method `gte`",
    ),
    ("message-misfit", "message-answer", b"\x02expected u64"),
    ("message-short", "message-answer", b"\x00\x01\x00"),
    ("message-later-status", "message-answer", b"\x03"),
    ("response", "json-question", b"\x01\x7E\x05\x00"),
    ("response-empty", "json-question", b"\x02\x00"),
    ("response-short", "json-question", b"\x02"),
    ("json", "json-answer", b"\x00{\"key\":7}"),
    ("json-no-method", "json-answer", b"\x01no such method"),
    ("json-bad-response", "json-answer", b"\x02too short"),
    ("json-error", "json-answer", b"\x03\"Missing\""),
    ("json-not-utf8", "json-answer", b"\x00\xFF"),
    ("json-later-status", "json-answer", b"\x04"),
];

pub(crate) fn blocks() -> Vec<Block> {
    ROWS.iter()
        .map(|(name, kind, bytes)| described(name, kind, bytes))
        .collect()
}

pub(crate) fn reread(block: &Block) -> Block {
    described(block.get("name"), block.get("kind"), &block.bytes("hex"))
}

fn described(name: &str, kind: &str, bytes: &[u8]) -> Block {
    let block = Block::named(name).with("kind", kind);
    let read = match kind {
        "message-question" => message_question(&block, bytes),
        "message-answer" => message_answer(&block, bytes),
        "json-question" => json_question(&block, bytes),
        _ => json_answer(&block, bytes),
    };
    read.unwrap_or_else(|| block.with("refused", "yes"))
        .with_bytes("hex", bytes)
}

fn message_question(block: &Block, bytes: &[u8]) -> Option<Block> {
    let it = MessageQuestion::decode(bytes)?;
    let mut again = vec![0; it.size()];
    it.encode(&mut again);
    assert_eq!(again, bytes);
    let block = block.clone().with_text("method", it.method);
    Some(block.with_text("json", it.json))
}

fn message_answer(block: &Block, bytes: &[u8]) -> Option<Block> {
    let it = MessageAnswer::decode(bytes)?;
    let mut again = vec![0; it.size()];
    it.encode(&mut again);
    assert_eq!(MessageAnswer::decode(&again), Some(it));
    let block = block.clone();
    Some(match it {
        MessageAnswer::Message {
            number,
            one_way,
            bytes,
        } => block
            .with("number", number)
            .with("one_way", one_way)
            .with_bytes("message", bytes),
        MessageAnswer::NoSuchMethod(reason) => block.with_text("no_such_method", reason),
        MessageAnswer::Misfit(reason) => block.with_text("misfit", reason),
    })
}

fn json_question(block: &Block, bytes: &[u8]) -> Option<Block> {
    let it = JsonQuestion::decode(bytes)?;
    let mut again = vec![0; it.size()];
    it.encode(&mut again);
    assert_eq!(again, bytes);
    let block = block.clone().with("number", it.number);
    Some(block.with_bytes("response", it.response))
}

fn json_answer(block: &Block, bytes: &[u8]) -> Option<Block> {
    let it = JsonAnswer::decode(bytes)?;
    let mut again = vec![0; it.size()];
    it.encode(&mut again);
    assert_eq!(again, bytes);
    let (key, text) = match it {
        JsonAnswer::Value(json) => ("value", json),
        JsonAnswer::Error(json) => ("error", json),
        JsonAnswer::NoSuchMethod(reason) => ("no_such_method", reason),
        JsonAnswer::BadResponse(reason) => ("bad_response", reason),
    };
    Some(block.clone().with_text(key, text))
}
