//! Comments are found; text that only looks like a comment is not.

use super::super::tree::File;
use super::lines;

fn texts(path: &str, text: &str) -> Vec<(usize, String)> {
    let file = File {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let lines = lines(&file).into_iter();
    lines
        .map(|line| (line.number, line.text.to_owned()))
        .collect()
}

fn comments(text: &str) -> Vec<String> {
    texts("a.rs", text)
        .into_iter()
        .map(|(_, text)| text)
        .collect()
}

#[test]
fn comments_of_all_kinds_are_prose() {
    let text = "//! One.\n/// Two.\nfn a() {} // Three.\n/* Four,\n * and /* more */ of it. */\n";
    assert_eq!(
        comments(text),
        ["One.", "Two.", "Three.", "Four,", "and /* more */ of it."]
    );
}

#[test]
fn literals_are_not_prose() {
    for code in [
        r#"let a = "// no";"#,
        r#"let a = "\"// no";"#,
        "let a = r\"\\\"; let b = \"// no\";",
        "let a = br#\"\"// no\"#;",
        "let a = ('\"', '\\'', '// no', '\\u{22}');",
        "fn a<'a>(b: &'a str) { f('\"') }",
        "\"two\n// lines\"",
    ] {
        let text = format!("{code} // Yes.");
        let found = comments(&text);
        let expected = if code.contains("'// no'") { 2 } else { 1 };
        assert!(
            found.len() <= expected && found.last().unwrap().ends_with("Yes."),
            "{found:?}"
        );
    }
}

#[test]
fn code_in_prose_is_left_out() {
    let text = "//! One.\n//! ```\n//! two();\n//! ```\n//! Three.\n";
    assert_eq!(comments(text), ["One.", "Three."]);
    let page = "# One\n```sh\ntwo\n```\nthree\n";
    assert_eq!(
        texts("a.md", page),
        [(1, "# One".to_owned()), (5, "three".to_owned())]
    );
    assert_eq!(texts("a.toml", "# one\n"), []);
}

#[test]
fn a_doc_comment_opens_with_its_first_line() {
    let text = "/// One\n/// two.\nfn a() {}\n// Three.\n/// Four.\nfn b() {}\n";
    let file = File {
        path: "a.rs".to_owned(),
        text: text.to_owned(),
    };
    let opens: Vec<bool> = lines(&file).iter().map(|line| line.opens_doc).collect();
    assert_eq!(opens, [true, false, false, true]);
}
