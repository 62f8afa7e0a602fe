//! Where a typed client's calls go: [`Carrier`]. Each [`Link`] is one, on its sessions; a channel
//! (`dunlin::Channel`) is another, which finds sessions by itself.

use std::convert::Infallible;
use std::fmt::Debug;

use dunlin_core::Session;

use crate::error::{CallFailure, Error, Failure};
use crate::link::{Link, Unary};
use crate::method::Method;
use crate::notice::Notice;
use crate::outcome::{ErrorOf, SuccessOf};

/// Carries typed calls.
pub trait Carrier {
    /// The destination of a client's calls: a session; for a channel, `()`.
    type At: Copy + Debug;
    /// The error of an untyped call.
    type Error: CallFailure;
    /// A typed call, to be awaited.
    type Typed<'a, M: Method>: Future<
        Output = Result<SuccessOf<M>, Failure<ErrorOf<M>, Self::Error>>,
    >
    where
        Self: 'a;

    /// A notification with options, to be sent.
    type Notice<'a, M: Method>
    where
        Self: 'a;

    /// Makes a call.
    fn typed<'a, M: Method>(&'a self, at: Self::At, value: &'a M::Request) -> Self::Typed<'a, M>;

    /// Issues a call without waiting for its end.
    ///
    /// # Errors
    /// If the value cannot be encoded, or the call is refused.
    fn typed_notify<M: Method>(
        &self,
        at: Self::At,
        value: &M::Request,
    ) -> Result<(), Failure<Infallible, Self::Error>>;

    /// Prepares a call whose end is not waited for.
    fn typed_notice<'a, M: Method>(
        &'a self,
        at: Self::At,
        value: &'a M::Request,
    ) -> Self::Notice<'a, M>;
}

impl<L: Link> Carrier for L {
    type At = Session;
    type Error = Error;
    type Typed<'a, M: Method>
        = Unary<'a, L, M>
    where
        L: 'a;
    type Notice<'a, M: Method>
        = Notice<'a, L, M>
    where
        L: 'a;

    fn typed<'a, M: Method>(&'a self, at: Session, value: &'a M::Request) -> Unary<'a, L, M> {
        Unary::new(self, at, value)
    }

    fn typed_notify<M: Method>(
        &self,
        at: Session,
        value: &M::Request,
    ) -> Result<(), Failure<Infallible>> {
        Notice::<L, M>::new(self, at, value).send()
    }

    fn typed_notice<'a, M: Method>(
        &'a self,
        at: Session,
        value: &'a M::Request,
    ) -> Notice<'a, L, M> {
        Notice::new(self, at, value)
    }
}
