//! Sessions as futures see them: made, watched, and made again after a loss.

use std::rc::Rc;

use dunlin_core::{CloseReason, Session, SessionEvent};
use dunlin_nexus::{ConnectOptions, Resolve};

use crate::caller::Caller;
use crate::events::Events;
use crate::look_up::look_up;
use crate::not_connected::NotConnected;
use crate::state::State;
use crate::wishes::Wish;

/// A session that is being made. Dropping this ends it.
struct Opening {
    state: Rc<State>,
    wish: Rc<Wish>,
    session: Option<Session>,
}

impl Caller {
    /// Makes a session with the first endpoint of a server, and waits until it is connected. The
    /// server is an address or a name (`"host:port"`), which is looked up in a thread of its own,
    /// or a resolver of the program. Dropping the future ends the session.
    ///
    /// ```
    /// use std::time::Duration;
    /// use dunlin_local::Caller;
    ///
    /// /// Greets the server, and connects again after each loss of the session.
    /// async fn greet_for_ever(cx: Caller) {
    ///     loop {
    ///         match cx.connect("greeter.example:31850").await {
    ///             Ok(session) => {
    ///                 // Calls on `session`, and meanwhile:
    ///                 let reason = cx.closed(session).await;
    ///                 println!("the session has ended: {reason:?}");
    ///             }
    ///             // It names the address and the reason.
    ///             Err(error) => println!("{error}"),
    ///         }
    ///         cx.sleep(Duration::from_millis(100)).await;
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// See [`NotConnected`]. A server that does not listen yet is tried for five seconds.
    pub async fn connect(&self, server: impl Resolve) -> Result<Session, NotConnected> {
        self.connect_with(server, ConnectOptions::default()).await
    }

    /// Like [`Self::connect`], with options.
    ///
    /// # Errors
    /// As for [`Self::connect`], and options out of range.
    pub async fn connect_with(
        &self,
        server: impl Resolve,
        options: ConnectOptions,
    ) -> Result<Session, NotConnected> {
        let to = look_up(server).await.map_err(NotConnected::Address)?;
        let mut opening = Opening {
            wish: self.wish(to, options),
            state: Rc::clone(self.state()),
            session: None,
        };
        let begun =
            std::future::poll_fn(|context| opening.wish.poll(&opening.state.current, context));
        let session = begun.await?;
        opening.session = Some(session);
        self.connected(session).await?;
        opening.session = None;
        Ok(session)
    }

    /// Waits until a session has ended; returns the reason. `None`: it had ended already, is
    /// another endpoint's, or this endpoint is gone.
    pub async fn closed(&self, session: Session) -> Option<CloseReason> {
        let mut events = self.events();
        if self.session_info(session).is_err() {
            return None;
        }
        // From here on its end is among the events, unless too many other events come before this
        // task runs.
        loop {
            match events.next().await? {
                SessionEvent::Closed {
                    session: ended,
                    reason,
                } if ended == session => return Some(reason),
                _ if events.missed() > 0 && self.session_info(session).is_err() => return None,
                _ => {}
            }
        }
    }

    /// The sessions of this endpoint that open and close from now on, including sessions that peers
    /// make.
    pub fn events(&self) -> Events {
        Events::new(Rc::clone(self.state()))
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let session = self.wish.give_up().or(self.session);
        if let Some(session) = session {
            // It may have ended already.
            let _ = self.state.with(|cx| cx.disconnect(session));
        }
    }
}
