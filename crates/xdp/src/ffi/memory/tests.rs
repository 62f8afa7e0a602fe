//! Memory that may shrink is refused.

use super::*;

#[test]
fn only_memory_of_the_right_length_that_cannot_shrink_is_accepted() {
    let memory = sealed(8192).unwrap();
    assert!(check_sealed(memory.as_fd(), 8192).is_ok());
    assert!(check_sealed(memory.as_fd(), 4096).is_err());
    assert!(check_sealed(memory.as_fd(), 16384).is_err());
    let file = File::from(memory);
    assert!(file.set_len(4096).is_err());
    assert!(file.set_len(16384).is_err());
    // SAFETY: the name ends with a zero byte.
    let open = unsafe { libc::memfd_create(c"open".as_ptr(), libc::MFD_ALLOW_SEALING) };
    let open = super::super::own(open).unwrap();
    File::from(open.try_clone().unwrap()).set_len(8192).unwrap();
    let why = check_sealed(open.as_fd(), 8192).unwrap_err();
    assert!(why.to_string().contains("may shrink"), "{why}");
    // A file has no seals.
    let file = File::open("/proc/self/exe").unwrap();
    assert!(check_sealed(file.as_fd(), 8192).is_err());
}
