//! Checksums that images on disks have.

use super::*;
use crate::wire::Name;

fn meaning_of(client: u64, operation: Operation<'_>) -> u64 {
    let name = Name {
        client,
        number: 70_000 * client,
        first: 70_000 * client,
    };
    let request = Request::write(name, b"key", operation);
    meaning(&request.to_bytes(), &request)
}

#[test]
fn checksums_stay_the_same_in_later_versions() {
    for client in [1, 9] {
        let long = Operation::Put(b"a value with more than 16 bytes");
        assert_eq!(meaning_of(client, long), 0x5ec2_c05c_591e_2c67);
        let short = Operation::Put(b"short");
        assert_eq!(meaning_of(client, short), 0x003c_eeb1_0fed_6200);
        let compared = Operation::CompareAndSet(7, b"value");
        assert_eq!(meaning_of(client, compared), 0xdfa0_79c6_1569_f58c);
    }
}
