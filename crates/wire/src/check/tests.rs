//! The properties hold for the committed corpora of the fuzz targets.
#![allow(
    clippy::unwrap_used,
    reason = "a corpus that cannot be read is a failure"
)]

use std::format;

use super::{control_body, control_stream, packet};

fn replay(target: &str, mut check: impl FnMut(&[u8])) {
    let corpus = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut inputs = 0;
    for entry in std::fs::read_dir(&corpus).unwrap() {
        check(&std::fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    assert!(inputs > 20, "{inputs} inputs in {corpus}");
}

#[test]
fn the_corpora_keep_their_promises() {
    replay("wire_header", packet);
    replay("control_message", |bytes| {
        control_stream(bytes);
        control_body(bytes);
    });
}
