//! How options decide the end of operations for servers that are down.

use clap::Parser;
use dunlin::kv::WhenDown;

use super::ServerArgs;

#[derive(clap::Parser)]
struct Command {
    #[command(flatten)]
    server: ServerArgs,
}

fn when_down(options: &[&str]) -> WhenDown {
    let words = [&["kv"][..], options].concat();
    Command::try_parse_from(words).unwrap().server.when_down()
}

#[test]
fn operations_wait_for_the_only_server_and_fail_with_several() {
    assert_eq!(when_down(&[]), WhenDown::Wait);
    assert_eq!(when_down(&["--server", "a"]), WhenDown::Wait);
    assert_eq!(when_down(&["--server", "a,b"]), WhenDown::Fail);
    // The name may have many addresses, and each address is a server.
    assert_eq!(when_down(&["--server", "dns+a"]), WhenDown::Fail);
    let wanted = ["--server", "dns+a", "--when-down", "wait"];
    assert_eq!(when_down(&wanted), WhenDown::Wait);
}
