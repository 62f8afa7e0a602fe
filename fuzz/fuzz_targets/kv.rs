//! Reads any bytes as a message of the key-value protocol, and as requests of a partition. The
//! properties are in `dunlin_kv::check`; the property tests of that crate check them too.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dunlin_kv::check::message(bytes);
    dunlin_kv::check::partition(bytes);
});
