//! Reads any bytes as a typed request with a front. The property is in `dunlin_service::check`; the
//! tests of that crate check it too.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dunlin_service::check::front(bytes);
});
