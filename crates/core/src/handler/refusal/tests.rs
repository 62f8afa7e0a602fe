//! The codes that handlers may send, one by one.

use dunlin_wire::Ran;

use super::*;

#[test]
fn a_handler_may_send_codes_of_the_application_and_refuse_as_overloaded() {
    for code in [0, 1, 404, u16::MAX].map(ErrorCode::application) {
        assert_eq!(of_handler(code), code);
    }
    assert_eq!(of_handler(ErrorCode::OVERLOADED), ErrorCode::REFUSED);
    for code in (0..=0xFFFF).map(ErrorCode) {
        if code != ErrorCode::OVERLOADED {
            assert_eq!(of_handler(code), ErrorCode::HANDLER_FAILED, "{code}");
        }
    }
}

#[test]
fn no_code_of_a_handler_proves_that_it_did_not_run() {
    for code in (0..=0x2_0000).map(ErrorCode) {
        assert_ne!(of_handler(code).ran(), Ran::No, "{code}");
    }
}
