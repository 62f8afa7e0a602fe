//! A function with many loops: the output behaves as before, and compilers finish within a time
//! limit.

mod programs;

use std::fmt::Write as _;
use std::process::Command;

use gopt_c::{DEFAULT_LANES, transform};
use programs::{Folder, compilers};

/// Processor time that a compiler may take, in seconds: about fifty times its usual time. When the
/// output jumped by computed `goto` alone, clang took 33 s for 40 loops, and minutes for a hundred.
const LIMIT: u32 = 90;

/// A program with this number of loops. Some of them end early.
fn program(loops: u32) -> String {
    let mut text = "#include <stdio.h>\n#include \"gopt.h\"\nstatic unsigned f(const unsigned *t, \
                    const unsigned *k, unsigned *o, int n)\n{\n    unsigned sum = 0;\n"
        .to_owned();
    for number in 0..loops {
        let stop = match number % 5 {
            3 => format!("if (v == {number}u) break;"),
            4 => format!("if (v > 600000u) return sum + {number}u;"),
            _ => String::new(),
        };
        write!(
            text,
            "    foreach (i, n) {{\n        unsigned v = k[i] + {number}u;\n        \
             g_expensive(&t[v & 63]);\n        v = v * 3 + t[v & 63];\n        {stop}\n        \
             g_expensive(&t[v & 63]);\n        o[i] += v ^ t[v & 63];\n        sum += v;\n    }}\n"
        )
        .expect("a string takes all text");
    }
    text + "    return sum;\n}\nint main(void)\n{\n    unsigned t[64], k[99], o[99] = {0};\n    \
            for (unsigned i = 0; i < 64; i++)\n        t[i] = i * 43 % 67;\n    \
            for (unsigned i = 0; i < 99; i++)\n        k[i] = i * 5 + 1;\n    \
            printf(\"%u\\n\", f(t, k, o, 99));\n    for (int i = 0; i < 99; i++)\n        \
            printf(\"%u \", o[i]);\n    return 0;\n}\n"
}

#[test]
fn a_function_with_many_loops_behaves_as_the_original() {
    let folder = Folder::new("many-same");
    // A loop that ends early may leave other items partly done, so no loop of this program ends
    // early.
    let text = program(10)
        .replace("v == 3u", "v == 1u")
        .replace("v == 8u", "v == 1u");
    for lanes in [1, DEFAULT_LANES, 100] {
        let output = transform(&text, lanes).expect("nothing in it is refused");
        for compiler in compilers() {
            let expected = folder.run(compiler, &Folder::STRICT, "original", &text);
            let result = folder.run(compiler, &Folder::STRICT, "result", &output.text);
            assert_eq!(result, expected, "{lanes} lanes, {compiler}");
        }
    }
}

#[test]
fn a_function_with_a_hundred_loops_compiles_within_its_time() {
    let output = transform(&program(100), DEFAULT_LANES).expect("nothing in it is refused");
    // A jump through an address may lead to every label, which is why clang was slow. Check that
    // there is none, also where clang is not installed.
    let jumps = output.text.lines().filter(|line| line.contains("goto *"));
    let outside_of_the_macro = jumps.filter(|line| !line.ends_with('\\')).count();
    assert_eq!(outside_of_the_macro, 0, "jumps through addresses");
    assert!(!output.text.contains("&&gopt_begin"), "addresses of labels");
    let macros = output.text.matches("GOPT_SWITCH(").count();
    assert_eq!(macros, 1, "the macro is defined and not used");
    let folder = Folder::new("many-time");
    std::fs::write(folder.path("many.c"), &output.text).expect("it is written");
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    for compiler in compilers() {
        // The limit is on the compiler's processor time, so other programs on the machine do not
        // matter.
        let script =
            format!("ulimit -t {LIMIT}; exec {compiler} -O2 {include} -c many.c -o many.o");
        let compiled = Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder.path(""))
            .output()
            .expect("a shell starts");
        let said = String::from_utf8_lossy(&compiled.stderr);
        assert!(
            compiled.status.success(),
            "{compiler}: {}\n{said}",
            compiled.status
        );
    }
}
