//! Reads any bytes as messages and files of the index and of the sequencer, and as operations of an
//! index.
//! The properties are in the `check` of these crates; their own tests check them too.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dunlin_index::check::message(bytes);
    dunlin_index::check::operations(bytes);
    dunlin_index::check::snapshot(bytes);
    dunlin_sequencer::check::message(bytes);
    dunlin_sequencer::check::file(bytes);
});
