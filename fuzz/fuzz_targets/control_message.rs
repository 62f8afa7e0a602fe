//! Reads any bytes as a stream of control messages, and as one message (rules C1 to C9). The
//! properties are in `dunlin_wire::check`; the property tests of the wire crate check them too.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dunlin_wire::check::control_stream(bytes);
    dunlin_wire::check::control_body(bytes.get(4..).unwrap_or_default());
});
