//! Every length, at every alignment of both ends, and nothing around it is touched.

use super::{SHORT, short};

#[test]
fn every_length_and_nothing_more() {
    let source: Vec<u8> = (1..=200).collect();
    for len in 0..=SHORT {
        for shift in 0..9 {
            let mut target = vec![0_u8; 2 * SHORT];
            // SAFETY: both vectors are longer than the shift and the length together.
            unsafe {
                short(
                    source.as_ptr().add(shift),
                    target.as_mut_ptr().add(8 + shift),
                    len,
                )
            };
            let start = 8 + shift;
            assert_eq!(target[start..start + len], source[shift..shift + len]);
            assert!(
                target[..start].iter().all(|&byte| byte == 0),
                "before, length {len}"
            );
            assert!(
                target[start + len..].iter().all(|&byte| byte == 0),
                "behind, length {len}"
            );
        }
    }
}
