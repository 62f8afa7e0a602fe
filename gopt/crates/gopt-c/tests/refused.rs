//! Sources that the tool refuses, and the places that its messages name. Each case has a `@` before
//! the place; the test removes it before the tool gets the text.

use gopt_c::{DEFAULT_LANES, Severity, transform};

/// A batched function whose lane has this body.
fn lane(body: &str) -> String {
    format!("void f(int *t, int *out, int n)\n{{\n    foreach (i, n) {{\n{body}\n    }}\n}}\n")
}

fn refused(marked: &str, reason: &str) {
    let at = marked.find('@').expect("a case says where it is wrong");
    let text = marked.replacen('@', "", 1);
    let line = text[..at].matches('\n').count() + 1;
    let column = at - text[..at].rfind('\n').map_or(0, |newline| newline + 1) + 1;
    let faults = transform(&text, DEFAULT_LANES).expect_err(marked);
    let first = &faults[0];
    assert_eq!(
        (first.line, first.column),
        (line, column),
        "{first}\n{marked}"
    );
    assert!(first.reason.contains(reason), "{first}\n{marked}");
    assert_eq!(first.severity, Severity::Refused);
    let source_line = text.lines().nth(line - 1).unwrap_or("");
    assert_eq!(first.source_line, source_line);
    let shown = first.render("in.c");
    assert!(
        shown.starts_with(&format!("in.c:{line}:{column}: error: ")),
        "{shown}"
    );
}

#[test]
fn jumps_over_the_border_of_a_lane() {
    let out = lane("        if (t[i]) @goto done;\n        g_expensive(t);") + "";
    refused(
        &out.replace("    }\n}", "    }\ndone:\n    return;\n}"),
        "out of a lane",
    );
    let into = lane("here:\n        g_expensive(t);")
        .replace("{\n    foreach", "{\n    @goto here;\n    foreach");
    refused(&into, "into a lane");
    refused(&lane("        @goto nowhere;"), "not in the function");
    let two = "void f(int *t, int n) { foreach (i, n) { @goto x; } foreach (j, n) { x: ; } }";
    refused(two, "out of a lane");
    refused(
        &lane("        t[0] = ({ @continue; 1; });"),
        "inside of an expression",
    );
    refused(&lane("        void *p = &&l; @goto *p; l: ;"), "computed");
}

#[test]
fn addresses_that_leave_a_lane() {
    let escapes = [
        "int x = 1; int **q = (int **)t; *q = @&x;",
        "struct s { int *p; } *s = (void *)t; int x; s->p = @&x;",
        "int x[3]; ((int **)out)[i] = @x;",
        "int x, *p = &x; ((int **)out)[i] = @p + 1;",
        "int x; static int *kept; kept = @&x;",
        "struct { int a, b[2]; } s; ((int **)out)[i] = @s.b + 0; ((int **)out)[i] = &s.a;",
        "struct { int *a, b; } s; int x; s.a = &x; ((int **)out)[i] = @s.a; out[i] = s.b;",
        "int x; ((long *)out)[i] = @(long)(t[0] ? &x : 0);",
    ];
    for body in &escapes[..5] {
        refused(&lane(body), "the address of a local of the lane");
    }
    for body in &escapes[6..] {
        refused(&lane(body), "the address of a local of the lane");
    }
    let returned = lane("        int x[2]; g_expensive(t); @return x;").replace("void f", "int *f");
    refused(&returned, "the address of a local of the lane is returned");
}

#[test]
fn uses_of_an_address_that_stay_in_the_lane() {
    for body in [
        "int x = 1; out[i] = hash(&x); g_expensive(t);",
        "char b[8]; char *e = b + 3; g_expensive(t); out[i] = e - b;",
        "int x, *p = &x; *p = 3; g_expensive(t); out[i] = *p + p[0];",
        "int x, y; int *p = t[0] ? &x : &y; g_expensive(t); out[i] = p == &x;",
        "struct { int *a, b; } s; int x; s.a = &x; g_expensive(t); out[i] = s.b + *s.a;",
    ] {
        transform(&lane(body), DEFAULT_LANES).expect(body);
    }
}

#[test]
fn declarations_that_no_array_can_stand_for() {
    let refuse = |body: &str, reason: &str| refused(&lane(body), reason);
    refuse("int @v[n]; g_expensive(t); v[0] = 1;", "variable length");
    refuse("int k = t[0]; int @v[2][k + 1];", "variable length");
    refuse(
        "__auto_type @x = t[0]; g_expensive(t); out[i] = x;",
        "type by name",
    );
    refuse(
        "int @x __attribute__((aligned(64))) = 1; g_expensive(t); out[i] = x;",
        "attribute",
    );
    refuse(
        "_Alignas(64) int @x = 1; g_expensive(t); out[i] = x;",
        "attribute",
    );
    refuse("int @x __attribute__((cleanup(f))) = 1;", "cleanup");
    let global = "int size = 3;\n".to_owned() + &lane("int @v[size]; g_expensive(t); v[0] = 1;");
    refused(&global, "variable length");
}

#[test]
fn names_that_clash() {
    let refuse = |body: &str, reason: &str| refused(&lane(body), reason);
    refuse("int @gopt_lane = 1;", "names that begin with `gopt_`");
    refuse("int x = 1; int @x = 2;", "declared twice");
    refuse("int @foreach = 1;", "word of gopt");
    refused(
        &("#define x 3\n".to_owned() + &lane("int @x = 1;")),
        "name of a macro",
    );
    refused(
        &("@#define GOPT_NEXT 3\n".to_owned() + &lane("g_expensive(t);")),
        "names that begin",
    );
    refuse(
        "struct s { int a; } x; { struct @s { int b; } y; }",
        "used elsewhere",
    );
    refused(
        &("struct s { int a; };\n".to_owned() + &lane("struct @s { int b; };")),
        "elsewhere",
    );
    let after = "void f(int *t, int n) { int i; foreach (@i, n) { g_expensive(t); } t[i] = 1; }";
    refused(after, "read after the loop");
    let last = "int f(int *t, int n) { int v; foreach (i, n) { @v = t[i]; } return v; }";
    refused(last, "the item that ran last");
}

#[test]
fn loops_and_marks_where_they_mean_nothing() {
    let refuse = |body: &str, reason: &str| refused(&lane(body), reason);
    refuse("@foreach (j, 3) { }", "inside of a lane");
    refuse("out[i] = (@g_expensive(t), 1);", "statement of its own");
    refuse("@g_expensive(t, n);", "one address");
    refuse("@g_expensive();", "one address");
    refuse(
        "out[i] = ({ @g_expensive(t); 1; });",
        "statement expression",
    );
    refuse("@i++;", "must not change the index");
    refuse("@i = 3;", "must not change the index");
    refused(
        "void f(int *t) { @g_expensive(t); }\nvoid g(int n) { foreach (i, n) { } }",
        "outside",
    );
    refused("void f(int n) { @foreach (i, n) n++; }", "needs braces");
    refused(
        "void f(int n) { @foreach (i) { } }",
        "foreach (index, count)",
    );
    refused(
        "void f(int n) { @foreach (1, n) { } }",
        "foreach (index, count)",
    );
    refused("@int f(void);\n", "no `foreach`");
}

#[test]
fn macros_that_hide_what_matters() {
    let with = |define: &str, body: &str| format!("{define}\n{}", lane(body));
    refused(&with("#define OUT() return", "@OUT();"), "hides a `return`");
    refused(
        &with("#define SKIP(x) if (x) continue", "@SKIP(t[i]);"),
        "hides a `continue`",
    );
    refused(
        &with(
            "#define GO(x) g_expensive(x)\n#define ON(x) GO(x)",
            "@ON(t);",
        ),
        "g_expensive",
    );
    let by_name = "#define KEY (node->key)";
    refused(
        &with(
            by_name,
            "struct n *node = 0; g_expensive(node); out[i] = @KEY;",
        ),
        "by name",
    );
}

#[test]
fn text_that_is_no_c() {
    refused("void f(int n) { foreach (i, n) { int @= ; } }", "no");
    refused("void f(int n) { @/* no end", "no end");
    let split = "void f(int n) {\n#ifdef A\n  foreach (i, n) {\n#else\n  \
                 for (int i = 0; i < n; i++) {\n#endif\n  }\n}\n";
    let faults = transform(split, DEFAULT_LANES).expect_err("two open braces and one closed");
    assert!(faults[0].line > 1);
    for (text, reason) in [("", "empty"), (" \n\t", "empty"), ("int x;\0", "value 0")] {
        let faults = transform(text, DEFAULT_LANES).expect_err(reason);
        assert!(faults[0].reason.contains(reason), "{}", faults[0]);
    }
    for lanes in [0, 1025, usize::MAX] {
        let faults = transform(&lane("g_expensive(t);"), lanes).expect_err("an absurd batch");
        assert!(
            faults[0].reason.contains("batch must be 1 to 1024"),
            "{}",
            faults[0]
        );
    }
}

#[test]
fn nesting_without_end_is_refused() {
    for (open, close) in [("(", ")"), ("{", "}")] {
        let (open, close) = (open.repeat(100_000), close.repeat(100_000));
        let text = lane(&format!(
            "{open}{}{close};",
            if open.starts_with('(') { "1" } else { "" }
        ));
        let faults = transform(&text, DEFAULT_LANES).expect_err("too deep");
        assert!(
            faults[0].reason.contains("nested more than 400 deep"),
            "{}",
            faults[0]
        );
    }
}

/// The tool either transforms a text, or refuses it and names a place in the text.
#[test]
fn every_prefix_of_a_program_is_answered() {
    let text = include_str!("corpus/declare.c");
    for end in (0..text.len()).step_by(41) {
        let prefix = &text[..text.floor_char_boundary(end)];
        if let Err(faults) = transform(prefix, DEFAULT_LANES) {
            let lines = prefix.lines().count() + 1;
            assert!(faults.iter().all(|fault| fault.line <= lines));
        }
    }
}
