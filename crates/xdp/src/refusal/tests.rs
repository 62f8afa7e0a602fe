//! Only a lack of privilege is called one, and each usual error has a sentence of its own.

use super::*;

type Sentence = fn(Option<c_int>) -> &'static str;

/// All steps, with an error that each of them has for lack of privilege.
const STEPS: [(&str, Sentence); 4] = [
    ("socket", of_socket),
    ("map", of_map),
    ("program", of_program),
    ("attachment", of_attachment),
];

#[test]
fn a_capability_is_named_only_for_a_lack_of_privilege() {
    for (step, sentence) in STEPS {
        assert!(sentence(Some(libc::EPERM)).contains("needs CAP_"), "{step}");
        for code in (0..134).filter(|code| ![libc::EPERM, libc::EACCES].contains(code)) {
            let said = sentence(Some(code));
            assert!(!said.contains("CAP_"), "{step}, {code}: {said}");
        }
        assert!(!sentence(None).contains("CAP_"), "{step}");
    }
}

#[test]
fn a_kernel_without_a_part_and_one_that_refuses_have_different_texts() {
    for (sentence, code, said) in [
        (
            of_socket as Sentence,
            libc::EAFNOSUPPORT,
            "CONFIG_XDP_SOCKETS",
        ),
        (of_socket, libc::EMFILE, "ulimit -n"),
        (of_socket, libc::ENFILE, "fs.file-max"),
        (of_socket, libc::ENOMEM, "no memory"),
        (of_map, libc::ENOSYS, "CONFIG_BPF_SYSCALL"),
        (of_map, libc::EINVAL, "CONFIG_XDP_SOCKETS"),
        (of_attachment, libc::EBUSY, "of another process"),
        (of_attachment, libc::EEXIST, "of another process"),
        (of_attachment, libc::EOPNOTSUPP, "cannot run XDP"),
        (of_attachment, libc::ERANGE, "MTU is too large"),
        (of_attachment, libc::ENODEV, "is gone"),
    ] {
        let found = sentence(Some(code));
        assert!(found.contains(said), "{code}: {found}");
        assert_ne!(found, sentence(None), "{code}");
    }
}
