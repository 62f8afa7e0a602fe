//! The properties of packets and of control messages hold for the corpora of the fuzz targets.

use dunlin_testkit::corpus::inputs;

use super::*;

#[test]
fn packets_of_the_corpus_have_the_properties() {
    let all = inputs("wire_header");
    assert!(all.len() > 20, "{} inputs", all.len());
    all.iter().for_each(|bytes| packet(bytes));
}

#[test]
fn control_messages_of_the_corpus_have_the_properties() {
    let all = inputs("control_message");
    assert!(all.len() > 100, "{} inputs", all.len());
    for bytes in &all {
        control_stream(bytes);
        control_body(bytes);
    }
}
