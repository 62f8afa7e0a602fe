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

#[test]
fn any_bytes_are_a_file_or_are_refused() {
    let mut rng = Rng::new(2);
    for _ in 0..2000 {
        let mut bytes = vec![0; 56];
        // A few sequences with short names, some of which are invalid.
        bytes[6] = rng.below(4).to_le_bytes()[0];
        for _ in 0..rng.below(4) {
            let len = rng.below(3).to_le_bytes()[0];
            bytes.push(len);
            let name = (0..len).map(|_| 0x20 + rng.below(90).to_le_bytes()[0]);
            bytes.extend(name);
            bytes.extend(rng.next_u64().to_le_bytes());
        }
        for byte in &mut bytes[16..40] {
            *byte = rng.below(256).to_le_bytes()[0];
        }
        super::file(&bytes);
    }
}
