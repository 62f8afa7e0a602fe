//! Random bytes.

use dunlin_core::Rng;

#[test]
fn any_bytes_are_safe() {
    let mut rng = Rng::new(1);
    for _ in 0..20_000 {
        let len = rng.below(64) as usize;
        let mut bytes: Vec<u8> = (0..len).map(|_| rng.below(256).to_le_bytes()[0]).collect();
        super::operations(&bytes);
        super::snapshot(&bytes);
        // Heads of messages, whose lengths may fit the random bytes.
        let head = [
            1,
            1 + rng.below(3).to_le_bytes()[0],
            rng.below(16).to_le_bytes()[0],
            0,
        ];
        let least = len.min(4);
        bytes[..least].copy_from_slice(&head[..least]);
        super::message(&bytes);
    }
}
