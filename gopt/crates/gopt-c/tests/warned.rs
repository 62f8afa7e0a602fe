//! The tool warns of places that lanes share. Each case has a `@` before the place; the test
//! removes it before the tool gets the text.

use gopt_c::{DEFAULT_LANES, Severity, transform};

/// A batched function with this lane; `file` and `function` are declarations in the file and in the
/// function.
fn program(file: &str, function: &str, lane: &str) -> String {
    format!(
        "{file}\nvoid f(const int *t, const int *k, int *o, int n)\n{{\n{function}\n    \
         foreach (i, n) {{\n{lane}\n    }}\n}}\n"
    )
}

/// Lines, columns and reasons of the warnings.
fn warnings(text: &str) -> Vec<(usize, usize, String)> {
    let output = transform(text, DEFAULT_LANES).expect(text);
    let warnings = output.warnings.into_iter();
    warnings
        .map(|it| {
            assert_eq!(it.severity, Severity::Warning);
            (it.line, it.column, it.reason)
        })
        .collect()
}

#[track_caller]
fn warned(marked: &str, reason: &str) {
    let at = marked.find('@').expect("a case says where the danger is");
    let text = marked.replacen('@', "", 1);
    let line = text[..at].matches('\n').count() + 1;
    let column = at - text[..at].rfind('\n').map_or(0, |newline| newline + 1) + 1;
    let found = warnings(&text);
    let [(found_line, found_column, said)] = &found[..] else {
        panic!("not one warning but {found:?}\n{text}");
    };
    assert_eq!(
        (*found_line, *found_column),
        (line, column),
        "{said}\n{text}"
    );
    assert!(said.contains(reason), "{said}");
}

const READ: &str = "g_expensive(&t[k[i]]); o[i] = t[k[i]] + ";

#[test]
fn a_static_local_that_is_read_after_a_mark_is_warned_of() {
    let reason = "all lanes share `last`: another item may change it";
    let lane = format!("@last = k[i]; {READ}last;");
    warned(&program("", "    static int last;", &lane), reason);
    warned(
        &program("", "", &format!("static int last;\n{lane}")),
        reason,
    );
}

#[test]
fn a_global_that_is_read_after_a_mark_is_warned_of() {
    let reason = "all lanes share `last`: another item may change it";
    let lane = format!("@last = k[i]; {READ}last;");
    for global in [
        "static int last;",
        "extern int last;",
        "#include \"last.h\"",
    ] {
        warned(&program(global, "", &lane), reason);
    }
    let conditional = "if (k[i]) @last = k[i];\n g_expensive(t); if (k[i] > 1) o[i] = last;";
    warned(&program("int last;", "", conditional), reason);
}

#[test]
fn a_member_of_a_shared_struct_is_warned_of() {
    let reason = "all lanes share `s`: another item may change it";
    let lane = format!("@s.last = k[i]; {READ}s.last;");
    warned(
        &program("static struct { int last, x; } s;", "", &lane),
        reason,
    );
    warned(
        &program("", "    struct { int last, x; } s;", &lane),
        reason,
    );
}

#[test]
fn an_element_that_items_share_is_warned_of() {
    let reason = "all lanes share `a`: another item may change it";
    for index in ["0", "k[i] & 7", "i % 8", "j", "i + j"] {
        let lane = format!("int j = k[n - 1]; (void)j;\n@a[{index}] = k[i]; {READ}a[{index}];");
        warned(&program("static int a[8];", "", &lane), reason);
        warned(&program("", "    int a[8];", &lane), reason);
    }
}

#[test]
fn a_value_that_code_after_the_loop_may_see_is_warned_of() {
    let reason = "the order in which items run";
    warned(
        &program("int last;", "", "g_expensive(t); @last = t[k[i]];"),
        reason,
    );
    let lane = "g_expensive(t); if (t[k[i]] > most) @most = t[k[i]];";
    warned(&program("", "    int most = 0;", lane), reason);
}

#[test]
fn an_update_that_is_read_after_a_mark_is_warned_of() {
    let lane = format!("@count += k[i]; {READ}count;");
    warned(
        &program("int count;", "", &lane),
        "another item may change it",
    );
    let lane = format!("@count++; {READ}count;");
    warned(
        &program("", "    int count = 0;", &lane),
        "another item may change it",
    );
}

#[test]
fn what_no_other_item_can_spoil_is_not_warned_of() {
    for (file, function, lane) in [
        (
            "int count;",
            "",
            "g_expensive(t); count += t[k[i]]; count++;",
        ),
        (
            "int count;",
            "",
            "while (t[o[i]]) { g_expensive(t); count++; o[i]--; }",
        ),
        ("int seen[8];", "", "g_expensive(t); seen[t[k[i]] & 7]++;"),
        (
            "int a[99];",
            "",
            "a[i] = 1; g_expensive(t); a[i] += t[k[i]]; o[i] = a[i];",
        ),
        (
            "int a[99][2];",
            "",
            "a[i][1] = 1; g_expensive(t); o[i] = a[i][1];",
        ),
        ("int size;", "", "g_expensive(&t[size]); o[i] = t[size];"),
        ("int a[9];", "", "g_expensive(t); a[t[k[i]] & 7] = 1;"),
        (
            "",
            "    int v;",
            "v = k[i]; g_expensive(&t[v]); o[i] = t[v];",
        ),
        (
            "",
            "",
            "int v = k[i]; g_expensive(&t[v]); v = t[v]; o[i] = v;",
        ),
    ] {
        let text = program(file, function, lane);
        assert_eq!(warnings(&text), [], "{text}");
    }
}
