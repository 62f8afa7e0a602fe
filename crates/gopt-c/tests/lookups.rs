//! The look-ups that come with the tool: transformed, all three forms give the same answers, and
//! the driver prints what it prints without the tool.

mod programs;

use std::path::Path;
use std::process::Command;

use programs::{Folder, compilers};

const LOOKUPS: [&str; 4] = ["pointer-chasing", "cuckoo", "ipv4", "mica"];

#[test]
fn the_three_forms_agree() {
    let folder = Folder::new("lookups");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("lookups");
    for name in LOOKUPS {
        let text = std::fs::read_to_string(from.join(format!("{name}.c"))).expect("it is there");
        let output = dunlin_gopt_c::transform(&text, 16).expect("it is not refused");
        assert_eq!((output.loops, output.warnings.len()), (1, 0), "{name}");
        std::fs::write(folder.path(&format!("{name}.c")), output.text).expect("it is written");
    }
    for compiler in compilers() {
        let original = run(compiler, &from, &from, &folder);
        let result = run(compiler, &folder.path(""), &from, &folder);
        assert_eq!(original, result, "{compiler}");
    }
}

fn run(compiler: &str, sources: &Path, from: &Path, folder: &Folder) -> String {
    let program = folder.path("program");
    let mut command = Command::new(compiler);
    command.args(["-O2"]).args(Folder::STRICT);
    command
        .arg("-I")
        .arg(from)
        .arg("-I")
        .arg(from.join("../include"));
    command.arg("-o").arg(&program).arg(from.join("driver.c"));
    let files = LOOKUPS.map(|name| sources.join(format!("{name}.c")));
    let status = command
        .args(files)
        .status()
        .expect("the compiler can be started");
    assert!(status.success(), "{compiler}");
    let ran = Command::new(&program)
        .output()
        .expect("the program can be started");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{printed}");
    assert_eq!(printed.lines().count(), LOOKUPS.len());
    printed
}
