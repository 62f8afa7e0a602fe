//! Unpacked inputs equal the packed ones; invalid lines are refused.

use super::*;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("xtask-corpus-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn inputs_are_unpacked_as_they_were_packed() {
    let folder = folder("pack");
    let (file, files) = (folder.join("a.hex"), folder.join("files"));
    let inputs: Inputs = [(2, vec![0, 255]), (1, vec![7]), (0, Vec::new())].into();
    write(&file, &inputs).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "\n07\n00ff\n");
    assert_eq!(read(&file).unwrap(), inputs);
    for _ in 0..2 {
        unpack(&inputs, &files).unwrap();
        assert_eq!(folder_inputs(&files).unwrap(), inputs);
        // A file of an earlier corpus, which must be gone after unpacking again.
        fs::write(files.join("9999"), "old").unwrap();
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_input_is_added_once() {
    let folder = folder("add");
    let file = folder.join("a.hex");
    fs::write(&file, "07\n00ff\n").unwrap();
    for _ in 0..2 {
        add(&file, [(2, vec![0, 1])].into()).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "07\n0001\n00ff\n");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn lines_that_are_not_hexadecimal_are_refused() {
    for wrong in ["0", "0g", "+1", "00 ff", "é0"] {
        assert!(bytes(wrong).is_err(), "{wrong}");
    }
}
