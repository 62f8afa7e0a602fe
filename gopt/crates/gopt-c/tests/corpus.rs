//! Every program in `tests/corpus` does the same before and after the transformation, with widths
//! below, at and above one word of the mask. All warnings of the compilers are errors.

mod programs;

use std::path::Path;

use programs::{Folder, compilers};

/// One lane, the default, and more than a word of the mask.
const LANES: [usize; 3] = [1, 16, 100];

fn check(name: &str) {
    let folder = Folder::new(name);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{name}.c"));
    let text = std::fs::read_to_string(path).expect("the corpus is there");
    for compiler in compilers() {
        let expected = folder.run(compiler, &Folder::STRICT, "original", &text);
        assert!(
            !expected.stdout.is_empty(),
            "the program must print what it did"
        );
        // One compiler checks every width; the other one checks only the widths that most users
        // choose.
        let lanes = if compiler == "gcc" {
            &LANES[..]
        } else {
            &LANES[1..2]
        };
        for &lanes in lanes {
            let output = gopt_c::transform(&text, lanes).expect("it is not refused");
            let result = folder.run(
                compiler,
                &Folder::STRICT,
                &format!("lanes-{lanes}"),
                &output.text,
            );
            assert_eq!(result, expected, "{name} with {lanes} lanes and {compiler}");
        }
    }
}

macro_rules! corpus {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        /// Without this test, a file in the folder that is missing in the list would never be
        /// checked.
        #[test]
        fn every_program_is_checked() {
            let named = [$(stringify!($name)),*];
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
            for entry in std::fs::read_dir(folder).expect("the corpus is there") {
                let path = entry.expect("a name can be read").path();
                let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
                assert!(named.contains(&name), "{name} is not in the list");
            }
        }
    };
}

corpus! { chase control declare jumps outer preprocessor shadow stops }
