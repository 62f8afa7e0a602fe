//! The output of `perf`.

use super::*;

#[test]
fn a_count_is_the_first_field_of_its_line() {
    let text = "29,,raw_syscalls:sys_enter,1400000,100.00,,\n";
    assert_eq!(count(text), Some(29.0));
    assert_eq!(
        count("<not counted>,,raw_syscalls:sys_enter,0,0.00,,"),
        None
    );
    assert_eq!(count("perf: command not found"), None);
}
