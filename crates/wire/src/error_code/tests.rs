//! Error codes: they have the protocol's numbers, and the two ranges do not overlap.

use std::collections::BTreeSet;
use std::string::ToString;

use super::{ErrorCode, Ran};

const OWN: [(ErrorCode, u32); 12] = [
    (ErrorCode::UNKNOWN_TYPE, 1),
    (ErrorCode::TOO_LARGE, 2),
    (ErrorCode::RESPONSE_TOO_LARGE, 3),
    (ErrorCode::OVERLOADED, 4),
    (ErrorCode::HANDLER_FAILED, 5),
    (ErrorCode::RESPONSE_GONE, 6),
    (ErrorCode::CANCELLED, 7),
    (ErrorCode::UNDECODABLE, 8),
    (ErrorCode::SHUTTING_DOWN, 9),
    (ErrorCode::NO_RESPONSE_MEMORY, 10),
    (ErrorCode::REFUSED, 11),
    (ErrorCode::TIMED_OUT, 12),
];

#[test]
fn the_protocols_own_codes_have_the_numbers_of_the_table() {
    for (code, number) in OWN {
        assert_eq!(code.0, number);
        assert_eq!(code.as_application(), None);
    }
    for code in (0..=0xFFFF).map(ErrorCode) {
        let has_name = !code.to_string().starts_with("error 0x");
        assert_eq!(OWN.iter().any(|(own, _)| *own == code), has_name, "{code}");
    }
    let words: BTreeSet<_> = OWN.iter().map(|(code, _)| code.to_string()).collect();
    assert_eq!(words.len(), OWN.len(), "every code has a name of its own");
}

#[test]
fn application_codes_fill_their_range() {
    assert_eq!(ErrorCode::application(0).0, 0x1_0000);
    assert_eq!(ErrorCode::application(u16::MAX).0, 0x1_FFFF);
    for code in 0..=u16::MAX {
        assert_eq!(ErrorCode::application(code).as_application(), Some(code));
    }
    for other in [0, 8, 0xFFFF, 0x2_0000, u32::MAX] {
        assert_eq!(ErrorCode(other).as_application(), None);
    }
}

#[test]
fn codes_without_a_name_can_still_be_shown() {
    assert_eq!(ErrorCode(0x99).to_string(), "error 0x99");
    assert_eq!(ErrorCode::application(7).to_string(), "application error 7");
}

#[test]
fn every_code_shows_whether_the_handler_ran() {
    let said = |code: u32| ErrorCode(code).ran();
    let own: std::vec::Vec<_> = (0..=13).map(said).collect();
    let (no, yes, unknown) = (Ran::No, Ran::Yes, Ran::Unknown);
    let expected = [
        unknown, no, no, yes, no, unknown, unknown, unknown, no, no, yes, yes, unknown, unknown,
    ];
    assert_eq!(own, expected);
    for code in [0x1_0000, 0x1_FFFF] {
        assert_eq!(said(code), yes);
    }
    for code in [0xFFFF, 0x2_0000, u32::MAX] {
        assert_eq!(said(code), unknown);
    }
}

#[test]
fn a_call_ran_if_one_of_its_attempts_did() {
    use Ran::{No, Unknown, Yes};
    for (left, right, both) in [
        (No, No, No),
        (No, Unknown, Unknown),
        (No, Yes, Yes),
        (Unknown, Unknown, Unknown),
        (Unknown, Yes, Yes),
        (Yes, Yes, Yes),
    ] {
        assert_eq!(left.join(right), both);
        assert_eq!(right.join(left), both);
    }
}
