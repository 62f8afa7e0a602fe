//! The fields of control messages, and errors, as lines of a vector.

use dunlin_wire::control::{
    Account, ControlError, Hello, Message, Serving, SessionRef, SessionSide,
};

use crate::text::Block;

pub(super) fn with_error(block: Block, error: ControlError) -> Block {
    match error {
        ControlError::Short(field) => block.with("error", "Short").with("field", field.name()),
        ControlError::Value(field) => block.with("error", "Value").with("field", field.name()),
        other => block.with("error", format!("{other:?}")),
    }
}

pub(super) fn with_fields(block: Block, message: &Message<'_>) -> Block {
    match message {
        Message::Hello(hello) => with_hello(block.with("type", "Hello"), hello),
        Message::HelloAck(hello) => with_hello(block.with("type", "HelloAck"), hello),
        Message::Lookup(lookup) => block
            .with("type", "Lookup")
            .with("attempt", lookup.attempt.0)
            .with("target", lookup.target.0),
        Message::InsightRead(read) => block
            .with("type", "InsightRead")
            .with("offset", read.offset)
            .with("length", read.len),
        Message::Insight(insight) => block
            .with("type", "Insight")
            .with("offset", insight.offset)
            .with_bytes("bytes", insight.bytes),
        Message::Found(found) => block
            .with("type", "Found")
            .with("attempt", found.attempt.0)
            .with("target", found.target.0)
            .with_bytes("endpoint", &found.endpoint.0),
        Message::Connect(connect) => {
            let block = block
                .with("type", "Connect")
                .with("attempt", connect.attempt.0);
            with_side(block.with("target", connect.target.0), &connect.client)
        }
        Message::Accept(accept) => {
            let block = block
                .with("type", "Accept")
                .with("attempt", accept.attempt.0);
            with_side(block, &accept.server)
        }
        Message::Refuse(refuse) => block
            .with("type", "Refuse")
            .with("attempt", refuse.attempt.0)
            .with("code", format!("{:?}", refuse.code))
            .with_text("detail", refuse.detail),
        Message::Nonce { nonce } => block.with("type", "Nonce").with("nonce", nonce),
        Message::Disconnect(session) => with_session(block.with("type", "Disconnect"), session),
        Message::DisconnectAck(session) => {
            with_session(block.with("type", "DisconnectAck"), session)
        }
        Message::Reset { session, reason } => {
            with_session(block.with("type", "Reset"), session).with("reason", format!("{reason:?}"))
        }
        Message::Inquiry(inquiry) => {
            let block = with_session(block.with("type", "Inquiry"), &inquiry.session);
            let requests = inquiry.requests.iter();
            requests.fold(block, |block, request| block.with("request", request.0))
        }
        Message::Account(account) => {
            let block = with_session(block.with("type", "Account"), &account.session);
            with_fates(block.with("away", account.away), account)
        }
        Message::Serving(serving) => with_serving(block.with("type", "Serving"), serving),
        Message::Proof { secret } => block.with("type", "Proof").with("secret", secret),
        Message::Heartbeat { counter } => block.with("type", "Heartbeat").with("counter", counter),
        Message::HeartbeatAck { counter } => {
            block.with("type", "HeartbeatAck").with("counter", counter)
        }
        Message::Goodbye { reason } => block
            .with("type", "Goodbye")
            .with("reason", format!("{reason:?}")),
    }
}

fn with_serving(block: Block, serving: &Serving) -> Block {
    let block = block
        .with("draining", serving.draining)
        .with("endpoints", serving.endpoints);
    match serving.health {
        None => block,
        Some(index) => block.with("health", index.0),
    }
}

fn with_fates(block: Block, account: &Account<'_>) -> Block {
    account.fates.iter().fold(block, |block, (request, fate)| {
        let block = block.with("request", request.0);
        block.with("fate", format!("{fate:?}"))
    })
}

fn with_hello(block: Block, hello: &Hello<'_>) -> Block {
    block
        .with("min_version", hello.min_version)
        .with("max_version", hello.max_version)
        .with("features", hello.features.0)
        .with_bytes("boot_id", &hello.boot_id.0)
        .with("incarnation", hello.incarnation.0)
        .with("port", hello.port)
        .with_text("unix_name", hello.unix_name)
}

fn with_side(block: Block, side: &SessionSide<'_>) -> Block {
    let block = block
        .with_bytes("endpoint", &side.endpoint.0)
        .with("session", side.session.0)
        .with("token", side.token.0)
        .with("window", side.window())
        .with("credits", side.credits)
        .with("data_size", side.data_size)
        .with("max_message", side.max_message)
        .with("first_req", side.first_req.0)
        .with("offers", side.offers.as_slice().len());
    side.offers.as_slice().iter().fold(block, |block, offer| {
        block
            .with("offer_kind", offer.kind.0)
            .with("offer_fds", offer.fds)
            .with_bytes("offer_bytes", offer.bytes)
    })
}

fn with_session(block: Block, session: &SessionRef) -> Block {
    block
        .with("session", session.session.0)
        .with("token", session.token.0)
}
