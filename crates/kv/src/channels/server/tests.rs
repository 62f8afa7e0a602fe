//! The reasons of calls that fail: only those that show something about the server let a get be a
//! miss.

use std::io::{Error as IoError, ErrorKind};

use dunlin_hub::{HubError, Reasons};

use super::*;

fn lost(reason: CloseReason, ran: Ran) -> ChannelError {
    ChannelError::Call {
        error: CallError::Rpc(RpcError::SessionClosed(reason, ran)),
        ran,
    }
}

#[test]
fn the_end_of_the_hub_is_not_taken_for_the_end_of_the_server() {
    let ended = Failed::With(Error::Ended);
    assert_eq!((gone(true), gone(false)), (ended, Failed::Down));
    let at_end = lost(CloseReason::EndpointClosed, Ran::No);
    for is_read in [true, false] {
        assert_eq!(failed(&ChannelError::Closed, is_read), ended);
        assert_eq!(failed(&at_end, is_read), ended);
        let none = ChannelError::NoServer(Reasons::default());
        assert_eq!(failed(&none, is_read), Failed::Down);
    }
    // A channel could not be opened, as the hub of the process has ended.
    let none = ChannelError::Hub(Box::new(HubError::Thread(IoError::from(ErrorKind::Other))));
    assert_eq!((failed(&none, true), failed(&none, false)), (ended, ended));
    // A write that was sent may have happened.
    let sent = lost(CloseReason::EndpointClosed, Ran::Unknown);
    assert_eq!(failed(&sent, true), ended);
    assert_eq!(failed(&sent, false), Failed::With(Error::Unknown));
    assert!(Error::from(ended).to_string().contains("client"));
}
