//! Lets a kernel in user space, honest or hostile, take any steps at the rings of two endpoints
//! that share an AF_XDP queue, between the endpoints' own steps. The properties are in
//! `dunlin_xdp::check`; the property tests of that crate check them too.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: &[u8]| {
    dunlin_xdp::check::rings(program);
});
