//! Bytes survive being shown and read again.

use super::*;

const HEX: Form = Form { hex: true };
const PLAIN: Form = Form { hex: false };

#[test]
fn all_bytes_survive_as_digits() {
    let all: Vec<u8> = (0..=255).collect();
    let shown = String::from_utf8(HEX.show(&all).into_owned()).unwrap();
    assert!(shown.starts_with("000102") && shown.ends_with("feff"));
    assert_eq!(HEX.read(&shown).unwrap(), all);
    assert_eq!(HEX.read("fE").unwrap(), [0xfe]);
    for wrong in ["f", "0g", "+1", "é"] {
        assert!(HEX.read(wrong).is_err(), "{wrong}");
    }
    assert_eq!(PLAIN.read("f").unwrap(), b"f");
    assert_eq!(&*PLAIN.show(b"\xff"), b"\xff");
}

#[test]
fn an_object_has_text_as_text_and_other_bytes_as_digits() {
    let mut object = json!({});
    PLAIN.add(&mut object, "key", b"a");
    PLAIN.add(&mut object, "value", b"a\xff");
    assert_eq!(object, json!({ "key": "a", "value_hex": "61ff" }));
    HEX.add(&mut object, "key", b"a");
    assert_eq!(object["key_hex"], "61");
}

#[test]
fn a_shell_takes_the_option_with_which_a_command_goes_on() {
    let after = |form: Form, key: &[u8]| form.argument("--after", key);
    assert_eq!(after(PLAIN, b"user/7"), "--after=user/7");
    assert_eq!(after(PLAIN, b"it's $1"), r"--after='it'\''s $1'");
    assert_eq!(after(PLAIN, b"a\xff"), "--after=61ff and --hex");
    assert_eq!(after(PLAIN, b"a\n"), "--after=610a and --hex");
    assert_eq!(after(HEX, b"a"), "--after=61");
}
