//! Addresses in the forms that people write.

use super::*;

#[test]
fn a_host_without_a_port_gets_the_usual_port() {
    for (written, meant) in [
        ("127.0.0.1", "127.0.0.1:31850"),
        ("127.0.0.1:7", "127.0.0.1:7"),
        ("::1", "[::1]:31850"),
        ("[::1]", "[::1]:31850"),
        ("[::1]:7", "[::1]:7"),
    ] {
        assert_eq!(
            resolve(written).unwrap(),
            meant.parse().unwrap(),
            "{written}"
        );
    }
    for wrong in ["", "host:port", "127.0.0.1:99999", ":7:"] {
        let why = resolve(wrong).unwrap_err().to_string();
        assert!(why.contains("is not a HOST:PORT"), "{wrong}: {why}");
    }
}
