//! Reads any bytes as a received Ethernet frame. The properties are in `dunlin_packet::check`;
//! the property tests of that crate check them too.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dunlin_packet::check::frame(bytes);
});
