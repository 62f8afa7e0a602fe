//! Any bytes as a packet (rules W1 to W12). The properties stand in `dunlin_wire::check`, which
//! the property tests of the wire crate share.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dunlin_wire::check::packet(bytes);
});
