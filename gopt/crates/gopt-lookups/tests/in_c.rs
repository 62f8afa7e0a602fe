//! The limits of the C forms: the lengths, keys and widths that they take.

use gopt_lookups::c::{CForm, InC, WIDTHS};
use gopt_lookups::pointer_chasing::Chain;
use gopt_lookups::random::Random;

#[test]
fn forms_stop_at_the_shorter_slice() {
    let chain = Chain::new(1000, 10, &mut Random::new(1)).unwrap();
    for form in [CForm::Plain, CForm::Gopt, CForm::Hand] {
        for width in WIDTHS {
            let mut out = [u32::MAX; 5];
            chain.tight_in_c(form, width, &[1, 2, 3], &mut out);
            assert!(out[..3].iter().all(|&cell| cell < 1000));
            assert_eq!(out[3..], [u32::MAX; 2]);
            let mut short = [u32::MAX; 2];
            chain.tight_in_c(form, width, &[1, 2, 3], &mut short);
            assert_eq!(short, out[..2]);
            chain.tight_in_c(form, width, &[], &mut []);
        }
    }
}

#[test]
#[should_panic(expected = "there is no cell 3")]
fn cells_that_do_not_exist_are_no_keys() {
    let chain = Chain::new(3, 1, &mut Random::new(1)).unwrap();
    chain.tight_in_c(CForm::Plain, 1, &[0, 3], &mut [0; 2]);
}

#[test]
#[should_panic(expected = "one of WIDTHS")]
fn other_widths_are_refused() {
    let chain = Chain::new(3, 1, &mut Random::new(1)).unwrap();
    chain.tight_in_c(CForm::Gopt, 3, &[0], &mut [0]);
}
