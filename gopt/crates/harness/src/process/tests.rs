//! The errors that a parent gets from a child that has ended.

use super::*;

/// A child that runs `script` instead of a role, and has ended.
fn ended(script: &str) -> Process {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    let role = Role::new("role", |_| Ok(()));
    let mut process = Process::spawn_by(command, role, Seat::default(), &()).unwrap();
    // `Child::wait` would close the input.
    while process.child.try_wait().unwrap().is_none() {
        std::thread::sleep(GLANCE);
    }
    process
}

#[test]
fn a_message_to_an_ended_child_fails_with_its_status() {
    let error = ended("read params; exit 3").send(&1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "role ended without a report: exit status: 3"
    );
}

#[test]
fn a_message_to_an_ended_child_fails_with_its_last_words() {
    let script = r#"read params; echo '{"said":7}'; echo '{"failed":"no memory"}'"#;
    let error = ended(script).send(&1).unwrap_err();
    assert_eq!(error.to_string(), "role: no memory");
}
