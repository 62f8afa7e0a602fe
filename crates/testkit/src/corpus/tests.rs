//! Lines are read as they should be, and the properties of packets and of control messages hold for
//! the corpora. The tests of `life` replay the corpus of the endpoint.

use dunlin_wire::check;

use super::{bytes, inputs};

#[test]
fn a_line_is_an_input_or_is_refused() {
    assert_eq!(bytes("00ff1A"), Some(vec![0, 255, 26]));
    assert_eq!(bytes(""), Some(Vec::new()));
    for wrong in ["0", "0g", "+1", "00 ff"] {
        assert_eq!(bytes(wrong), None, "{wrong}");
    }
}

#[test]
fn packets_of_the_corpus_keep_their_promises() {
    let all = inputs("wire_header");
    assert!(all.len() > 20, "{} inputs", all.len());
    all.iter().for_each(|bytes| check::packet(bytes));
}

#[test]
fn control_messages_of_the_corpus_keep_their_promises() {
    let all = inputs("control_message");
    assert!(all.len() > 100, "{} inputs", all.len());
    for bytes in &all {
        check::control_stream(bytes);
        check::control_body(bytes);
    }
}
