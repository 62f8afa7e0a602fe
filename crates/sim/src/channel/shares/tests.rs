//! Each limit, from both sides.

use super::*;

fn judge(got: &[u64], ahead: u64) -> Result<Judged, String> {
    equal(got.iter().copied(), ahead, ALONE)
}

#[test]
fn many_calls_are_judged_by_ten_percent_and_few_by_chance() {
    let within = judge(&[10_500, 9_500], 0).unwrap();
    assert_eq!((within.equal, within.within_ten), (1, 1));
    assert!(judge(&[10_501, 9_499], 0).is_err());
    // 70 is 5 standard deviations of the difference between two counts of 100.
    let few = judge(&[135, 65], 0).unwrap();
    assert_eq!((few.equal, few.within_ten), (1, 0));
    assert!(judge(&[136, 64], 0).is_err());
    assert!(judge(&[136, 64], 2).is_ok());
    // Picks that are alike vary more: 86 is five of their standard deviations.
    let alike = |got: [u64; 2]| equal(got.into_iter(), 0, ALIKE);
    assert!(alike([143, 57]).is_ok());
    assert!(alike([144, 57]).is_err());
    assert_eq!(judge(&[150, 49], 0), Ok(Judged::default()));
    assert_eq!(judge(&[1000], 0), Ok(Judged::default()));
    assert_eq!(judge(&[], 0), Ok(Judged::default()));
}

#[test]
fn a_slow_server_may_have_a_fifth_of_a_share() {
    // Chance adds 500 to 10 000.
    assert_eq!(slow(10_500, 150_000, 3).map(|it| it.slow), Ok(1));
    assert!(slow(10_501, 150_000, 3).is_err());
    assert_eq!(slow(99, 299, 3), Ok(Judged::default()));
}

#[test]
fn at_most_one_and_a_half_shares_of_the_keys_move() {
    assert_eq!(moved(150, 400, 4).map(|it| it.left), Ok(1));
    assert!(moved(151, 400, 4).is_err());
    assert_eq!(moved(399, 399, 4), Ok(Judged::default()));
}
