//! Random bytes.

use dunlin_core::Rng;

#[test]
fn any_bytes_are_safe() {
    let mut rng = Rng::new(1);
    for _ in 0..50_000 {
        let len = [4, 8, 16, 41, 40 + 1 + 3 + 16, 12][rng.below(6) as usize];
        let mut bytes: Vec<u8> = (0..len)
            .map(|_| (rng.below(256) & rng.below(256)).to_le_bytes()[0])
            .collect();
        bytes[0] = rng.below(2).to_le_bytes()[0];
        bytes[1] = rng.below(3).to_le_bytes()[0];
        super::message(&bytes);
    }
}
