//! Reads any bytes as messages of the index, of the sequencer and of replicas, as files of the
//! first two, as operations of an index, and as entries of a replica's log.
//! The properties are in the `check` of these crates; their own tests check them too.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dunlin_index::check::message(bytes);
    dunlin_index::check::operations(bytes);
    dunlin_index::check::snapshot(bytes);
    dunlin_sequencer::check::message(bytes);
    dunlin_sequencer::check::file(bytes);
    dunlin_replica::check::message(bytes);
    dunlin_replica::check::entries(bytes);
});
