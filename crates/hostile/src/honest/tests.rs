//! Only a correct answer is accepted.

use super::*;

#[test]
fn an_answer_fits_only_its_own_request() {
    let mut rng = Rng::new(3);
    for len in [8, 9, 40, 1_000] {
        let (mut request, mut response) = (vec![0; len], vec![0; len]);
        fill(&mut request, 77, &mut rng);
        assert_eq!(number(&request), Some(77));
        answer(&request, &mut response);
        assert!(is_answer(&request, &response));
        assert!(!is_answer(&request, &response[1..]));
        for at in 0..len {
            response[at] ^= 1;
            assert!(!is_answer(&request, &response), "byte {at}");
            response[at] ^= 1;
        }
    }
    assert_eq!(number(&[1; 7]), None);
}

#[test]
fn a_sum_depends_on_every_byte_and_its_place() {
    let bytes: Vec<u8> = (0..=255).collect();
    let before = sum(&bytes);
    for at in 1..bytes.len() {
        let mut other = bytes.clone();
        other.swap(at, at - 1);
        assert_ne!(sum(&other), before);
        other[at] ^= 128;
        assert_ne!(sum(&other), before);
    }
}
