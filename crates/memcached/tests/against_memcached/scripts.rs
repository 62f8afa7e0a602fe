//! Scripts written by hand, in files with `---` between scripts. The test sends each line with a
//! line end, unless the line ends with `\.`; the other escapes are Rust's. `@` stands for a prefix
//! that no other script has.

/// The files.
pub(crate) const ALL: [&str; 5] = [
    include_str!("scripts/text.txt"),
    include_str!("scripts/bad.txt"),
    include_str!("scripts/meta.txt"),
    include_str!("scripts/times.txt"),
    include_str!("scripts/bad_meta.txt"),
];

/// The scripts of a file, for this prefix.
pub(crate) fn read(file: &str, prefix: &str) -> Vec<Vec<u8>> {
    let scripts = file.split("---\n");
    let scripts = scripts.map(|script| script.lines().map(line).collect::<String>());
    let scripts = scripts.enumerate();
    let scripts = scripts.map(|(number, script)| script.replace('@', &format!("{prefix}{number}")));
    scripts.map(String::into_bytes).collect()
}

/// Resolves the escapes of a line, and appends its line end.
fn line(line: &str) -> String {
    let (line, end) = match line.strip_suffix("\\.") {
        Some(line) => (line, ""),
        None => (line, "\r\n"),
    };
    let escapes = [
        ("\\n", "\n"),
        ("\\r", "\r"),
        ("\\t", "\t"),
        ("\\0", "\0"),
        ("\\x01", "\x01"),
        ("\\x7f", "\x7f"),
    ];
    let line = escapes.iter().fold(line.to_owned(), |line, (name, byte)| {
        line.replace(name, byte)
    });
    assert!(!line.contains('\\'), "`{line}` has an unknown escape");
    line + end
}

/// Scripts with long keys, lines and values.
pub(crate) fn long() -> Vec<Vec<u8>> {
    let (fits, long) = ("k".repeat(250), "k".repeat(251));
    let keys = |count: usize| -> String { (0..count).map(|at| format!(" key{at:06}")).collect() };
    let half = "v".repeat(400_000);
    let much = "v".repeat(1_100_000);
    let old = "set old 0 0 1\r\nx\r\n";
    let scripts = [
        format!("set {fits} 0 0 1\r\nx\r\nget {fits}\r\nmg {fits} v k\r\nget {fits} {fits}\r\n"),
        format!("set {long} 0 0 1\r\nx\r\nincr {long} 1\r\ntouch {long} 0\r\ndelete {long}\r\n"),
        format!("mg {long}\r\nms {long} 1\r\nx\r\nmd {long}\r\nma {long}\r\nme {long}\r\n"),
        format!("set {long} 0 0 1 noreply\r\nx\r\n"),
        format!("set key000777 0 0 1\r\nx\r\nget{}\r\n", keys(1000)),
        format!("get {long}\r\n"),
        format!("get a {long} b\r\n"),
        format!("gat 0 {long}\r\n"),
        format!("gets{} {long}\r\n", keys(3000)),
        format!("gets{}\r\n", keys(3000)),
        format!("set big 0 0 400000\r\n{half}\r\nget big\r\nget big big big\r\nmg big s v\r\n"),
        "append big 0 0 3\r\nabc\r\nget big\r\n".to_owned(),
        format!("{old}set old 0 0 1100000\r\n{much}\r\nget old\r\n"),
        format!("{old}add old 0 0 1100000\r\n{much}\r\nget old\r\n"),
        format!("{old}ms old 1100000\r\n{much}\r\nmg old v\r\n"),
        format!("{old}set old 0 0 1100000 noreply\r\n{much}\r\nget old\r\n"),
    ];
    scripts.map(String::into_bytes).into()
}
