//! Lines in which memcached lists its keys.

use super::listing;

#[test]
fn a_line_of_the_list_has_key_and_expiry() {
    let line = "key=a%20%25b exp=1900000000 la=1 cas=2 fetch=no cls=1 size=60";
    assert_eq!(listing(line).unwrap(), (b"a %b".to_vec(), 1_900_000_000));
    assert_eq!(listing("key=a exp=-1 la=1").unwrap(), (b"a".to_vec(), 0));
    for wrong in [
        "key=a",
        "key=a%2 exp=1",
        "key=a exp=x",
        "exp=1 key=a",
        "key=%zz exp=1",
    ] {
        assert!(listing(wrong).is_err(), "{wrong}");
    }
}
