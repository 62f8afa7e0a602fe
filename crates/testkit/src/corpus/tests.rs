//! Lines of a corpus are read correctly. The tests of `life` replay the corpus of the endpoint, and
//! the tests of `dunlin-wire` replay the corpora of packets and of control messages.

use super::bytes;

#[test]
fn a_line_is_an_input_or_is_refused() {
    assert_eq!(bytes("00ff1A"), Some(vec![0, 255, 26]));
    assert_eq!(bytes(""), Some(Vec::new()));
    for wrong in ["0", "0g", "+1", "00 ff"] {
        assert_eq!(bytes(wrong), None, "{wrong}");
    }
}
