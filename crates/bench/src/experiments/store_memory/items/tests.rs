//! The lengths are as the experiment's text describes them.

use super::*;

#[test]
fn lengths_are_even_over_powers_of_two() {
    let lengths: Vec<usize> = (0..100_000).map(len_of).collect();
    assert_eq!(lengths.iter().min(), Some(&16));
    assert!(lengths.iter().all(|len| *len <= LONGEST));
    for power in 4..14 {
        let of_power = lengths.iter().filter(|len| len.ilog2() == power).count();
        assert!(
            (9_000..11_000).contains(&of_power),
            "{of_power} of 2^{power}"
        );
    }
    let mean = lengths.iter().sum::<usize>() as u64 / 100_000 + 16;
    assert!(mean.abs_diff(MEAN) < MEAN / 50, "{mean}");
}
