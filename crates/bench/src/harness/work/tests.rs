//! Correct answers are accepted, and a change of any one byte of request or response is noticed.

use super::*;

fn pair(size: usize, counter: u64) -> (Vec<u8>, Vec<u8>) {
    let (mut request, mut response) = (vec![0; size], vec![0; size]);
    fill(&mut request, counter);
    answer(&request, &mut response);
    (request, response)
}

#[test]
fn answers_are_right_at_every_size_and_across_the_wrap() {
    for size in SIZES.map(usize::from) {
        for number in [0, 1, u64::MAX - 1, u64::MAX] {
            let (request, response) = pair(size, number);
            assert!(is_request(&request, number) && counter(&request) == Some(number));
            assert!(is_answer(&response, size, number));
            assert!(!is_answer(&response, size, number.wrapping_add(1)));
        }
    }
}

#[test]
fn every_byte_counts() {
    for size in SIZES.map(usize::from) {
        for at in 0..size {
            let (mut request, mut response) = pair(size, 77);
            response[at] ^= 0x40;
            assert!(
                !is_answer(&response, size, 77),
                "response byte {at} of {size}"
            );
            request[at] ^= 0x40;
            assert!(!is_request(&request, 77), "request byte {at} of {size}");
            answer(&request, &mut response);
            assert!(
                !is_answer(&response, size, 77),
                "request byte {at} of {size}"
            );
        }
    }
}

#[test]
fn a_short_request_has_no_counter() {
    assert_eq!(counter(&[0; 7]), None);
}
