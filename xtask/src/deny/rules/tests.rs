//! Lists are read, and anything else is refused.

use super::*;

#[test]
fn lists_of_one_line_and_of_several_are_read() {
    let text = "# a\n[licences]\nallow = [\n  \"MIT\", # b\n  \"Zlib\",\n]\n\n[users]\na = []\n\
                # c\nb = [\"c\", \"d\"]\n[sources]\nallow = [\"e\"]\n";
    let list = |items: &[&str]| items.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let expected = Rules {
        licences: list(&["MIT", "Zlib"]),
        sources: list(&["e"]),
        users: [("a", list(&[])), ("b", list(&["c", "d"]))]
            .map(|(name, users)| (name.to_owned(), users))
            .into(),
    };
    assert_eq!(Rules::parse(text).unwrap(), expected);
}

#[test]
fn a_line_without_meaning_is_an_error() {
    for wrong in [
        "[licences]\ndeny = [\"MIT\"]",
        "[bans]\na = []",
        "[users]\na = [\"b\"",
        "[users]\na = \"b\"",
        "[users]\na = [b]",
    ] {
        assert!(Rules::parse(wrong).is_err(), "{wrong}");
    }
}
