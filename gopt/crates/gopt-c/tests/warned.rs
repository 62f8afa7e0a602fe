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

/// A pointer to a struct and one to words, from outside of the lanes.
const POINTERS: [&str; 2] = [
    "struct state { int last, other; struct { int a, b; } in; }; struct state *state_of(int);\n\
     int *words_of(int);",
    "    struct state *s = state_of(n); int *w = words_of(n);",
];

#[test]
fn a_place_that_items_share_through_a_pointer_is_warned_of() {
    let [file, function] = POINTERS;
    for (written, read) in [
        ("s->last", "s->last"),
        ("(*s).last", "s->last"),
        ("s->in.a", "s->in.a"),
        ("s[0].last", "s->last"),
        ("*w", "*w"),
        ("w[0]", "w[0]"),
        ("w[k[i] & 7]", "w[k[i] & 7]"),
        ("w[i % 8]", "w[i % 8]"),
    ] {
        let reason = format!("all lanes share `{written}`: another item may change it");
        let lane = format!("@{written} = k[i]; {READ}{read};");
        warned(&program(file, function, &lane), &reason);
        let lane = format!("{READ}0; @{written} = k[i]; g_expensive(t); o[i] += {read};");
        warned(&program(file, function, &lane), &reason);
    }
    let whole = format!("@s->in.a = k[i]; {READ}0; struct state copy = *s; o[i] = copy.in.a;");
    warned(
        &program(file, function, &whole),
        "all lanes share `s->in.a`",
    );
    let global = format!("{file}\nstatic struct state *s;");
    let lane = format!("@s->last += k[i]; {READ}s->last;");
    warned(&program(&global, "", &lane), "all lanes share `s->last`");
    let last = "g_expensive(t); @*w = t[k[i]];";
    warned(
        &program(file, function, last),
        "the order in which items run",
    );
}

#[test]
fn places_that_items_do_not_share_through_a_pointer_are_not_warned_of() {
    let [file, function] = POINTERS;
    for lane in [
        // Another field, and an element of its own.
        "g_expensive(t); w[k[i]] = s->other;",
        "s->in.a += k[i]; g_expensive(t); o[i] = s->in.b;",
        "w[i] = k[i]; g_expensive(t); o[i] = w[i];",
        "w[2 * i + 1] = k[i]; g_expensive(t); o[i] = w[2 * i + 1];",
        "s[i].in.a = k[i]; g_expensive(t); o[i] = s[i].in.a;",
        // Addresses, and updates alone.
        "w[k[i]]++; g_expensive(&w[k[i]]); g_expensive(&w[t[k[i]]]); w[t[k[i]]]++;",
        "s->last++; g_expensive(t); s->last += t[k[i]];",
        // A pointer of the item.
        "struct state *p = &s[k[i]]; p->last = i; g_expensive(p); o[i] = p->last;",
        // The value is read before the others run.
        "g_expensive(t); w[k[i]] = i; o[i] = w[k[i]];",
    ] {
        let text = program(file, function, lane);
        assert_eq!(warnings(&text), [], "{text}");
    }
    // Each item sets the pointer first, so each lane has its own.
    let own = "p = &s[k[i]]; p->last = i; g_expensive(p); o[i] = p->last;";
    let function = format!("{function} struct state *p;");
    let text = program(file, &function, own);
    assert_eq!(warnings(&text), [], "{text}");
}

#[test]
fn writes_that_no_other_item_can_spoil_get_no_warning() {
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
        ("int a[99];", "", "a[i]++; g_expensive(t); o[i] = a[i];"),
        (
            "",
            "",
            "o[i] += k[i]; g_expensive(&t[o[i]]); o[i] += t[o[i]];",
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
