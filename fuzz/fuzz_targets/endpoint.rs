//! Reads any bytes as steps in the life of two endpoints: calls, packets, faults, clocks. The
//! checks are in `dunlin_testkit::life`, and property tests run them too.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dunlin_testkit::life::endpoint(bytes);
});
