//! GNU C: the constructs that the tool accepts, and its messages about those that only the
//! preprocessor understands.

mod programs;

use gopt_c::{DEFAULT_LANES, transform};
use programs::{Folder, compilers};

fn lane(before: &str, body: &str) -> String {
    format!(
        "{before}\nvoid f(int *t, int *out, int n)\n{{\n    foreach (i, n) {{\n        {body}\n    \
         }}\n}}\n"
    )
}

#[track_caller]
fn refused(marked: &str, reasons: &[&str]) {
    let at = marked.find('@').expect("a case says where it is wrong");
    let text = marked.replacen('@', "", 1);
    let line = text[..at].matches('\n').count() + 1;
    let column = at - text[..at].rfind('\n').map_or(0, |newline| newline + 1) + 1;
    let faults = transform(&text, DEFAULT_LANES).expect_err(marked);
    let first = &faults[0];
    assert_eq!(
        (first.line, first.column),
        (line, column),
        "{first}\n{text}"
    );
    for reason in reasons {
        assert!(first.reason.contains(reason), "{first}\n{text}");
    }
}

const MARK: &str = "g_expensive(&t[i]); out[i] = t[i];";

#[test]
fn a_macro_that_stands_like_an_attribute_is_named() {
    let define = "#define ALIGNED __attribute__((aligned(8)))";
    let remedy = ["the macro `ALIGNED`", "--preprocess"];
    let field = format!("struct {{ int a @ALIGNED; }} s; s.a = 1; {MARK} out[i] += s.a;");
    refused(&lane(define, &field), &remedy);
    refused(&lane("#include \"aligned.h\"", &field), &remedy);
    refused(
        &lane(define, &format!("int a @ALIGNED = 1; {MARK} out[i] += a;")),
        &remedy,
    );
}

#[test]
fn a_macro_with_a_type_as_argument_is_named() {
    let body = format!("struct node *p = @container_of(&t[i], struct node, link); {MARK} (void)p;");
    refused(
        &lane("", &body),
        &["`container_of` has a type as an argument", "--preprocess"],
    );
}

#[test]
fn a_word_over_two_lines_is_named() {
    refused(
        &lane("", &format!("int na@\\\nme = 1; {MARK} out[i] += name;")),
        &["a backslash divides this word", "--preprocess"],
    );
}

#[test]
fn a_computed_goto_in_a_function_with_a_lane_is_named() {
    let computed = "    void *p = &&l;\nl:\n    if (n < 0)\n        @goto *p;\n    foreach";
    let text = lane("", MARK).replace("    foreach", computed);
    refused(&text, &["a computed `goto`", "`switch`"]);
}

#[test]
fn text_that_is_no_c_is_offered_the_preprocessor() {
    refused(
        "void f(int n) { foreach (i, n) { int @= ; } }",
        &["--preprocess"],
    );
}

/// One program with every construct. It does the same before and after the transformation.
const PROGRAM: &str = r#"
#include <stdio.h>
#include "gopt.h"
#define ALIGNED __attribute__((aligned(8)))

struct field { int a ALIGNED; int b; };
static const struct field known[2] = { { .a = 1 }, { .a = 2 } };
static _Thread_local int quiet;
enum { FEW = 3, MANY = 500 };

static int interpret(const char *code)
{
    static const void *const jump[] = { &&stop, &&up };
    int value = 0;
    goto *jump[*code == 'u'];
up:
    value++;
    code++;
    goto *jump[*code == 'u'];
stop:
    return value;
}

static void find(const unsigned *t, const unsigned *k, unsigned *out, int n)
{
    _Thread_local static int calls;
    calls++;
    foreach (i, n) {
        double _Complex z = k[i];
        unsigned r = t[k[i] & 63];
        g_expensive(&t[(r + 1) & 63]);
        switch (t[(r + 1) & 63]) {
        case 0 ... FEW:
            r += 1;
            break;
        case 100 ... MANY:
            r += 2;
            break;
        default:
            r += known[r & 1].a;
        }
        out[i] = r + \
            (unsigned)__real__ z;
    }
    quiet = calls;
}

int main(void)
{
    unsigned t[64], k[99], out[99];
    for (unsigned i = 0; i < 64; i++)
        t[i] = i * 37 % 211;
    for (unsigned i = 0; i < 99; i++)
        k[i] = i * 7;
    find(t, k, out, 99);
    for (int i = 0; i < 99; i++)
        printf("%u ", out[i]);
    printf("%d %d\n", interpret("uuu"), quiet);
    return 0;
}
"#;

#[test]
fn programs_in_gnu_c_do_the_same_before_and_after() {
    let folder = Folder::new("gnu");
    let output = transform(PROGRAM, DEFAULT_LANES).expect("nothing in it is refused");
    for compiler in compilers() {
        let expected = folder.run(compiler, &["-Wall", "-Wextra"], "original", PROGRAM);
        assert!(
            expected.stdout.starts_with("3 ") || expected.stdout.len() > 99,
            "{expected:?}"
        );
        let result = folder.run(compiler, &["-Wall", "-Wextra"], "result", &output.text);
        assert_eq!(result, expected, "{compiler}");
    }
}

#[test]
fn a_local_whose_life_crosses_no_other_mark_gets_no_array() {
    let text = lane(
        "",
        "int a = i & 63; while (a) { g_expensive(&t[a]); int r = t[a]; a = r >> 1; }",
    );
    let output = transform(&text, DEFAULT_LANES).expect("it is not refused");
    assert!(output.text.contains("int r = t["), "{}", output.text);
    assert!(!output.text.contains("gopt_of_r"), "{}", output.text);
    let twice = "int r = t[i]; g_expensive(&t[i]); out[i] = r;";
    let output = transform(&lane("", twice), DEFAULT_LANES).expect("it is not refused");
    assert!(output.text.contains("gopt_of_r"), "{}", output.text);
}

#[test]
fn line_markers_name_the_place_of_a_message() {
    let text = "# 1 \"in.c\"\n# 1 \"head.h\" 1 3\nnot C at all (\n# 7 \"in.c\" 2\n\
                void f(int *t, int n)\n{\n    foreach (i, n) {\n        return (t;\n    }\n}\n";
    let faults = transform(text, DEFAULT_LANES).expect_err("a parenthesis is open");
    assert_eq!(
        (faults[0].file.as_deref(), faults[0].line),
        (Some("in.c"), 10)
    );
    let shown = faults[0].render("preprocessed");
    assert!(shown.starts_with("in.c:10:"), "{shown}");
}
