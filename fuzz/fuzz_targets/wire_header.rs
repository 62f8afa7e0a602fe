//! Reads any bytes as a packet (rules W1 to W12), and as questions and answers of reflection (rule
//! C16). The properties are in `dunlin_wire::check`; the
//! property tests of the wire crate check them too.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dunlin_wire::check::packet(bytes);
    dunlin_wire::check::reflection(bytes);
});
