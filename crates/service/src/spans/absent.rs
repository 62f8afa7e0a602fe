//! The same types without the feature `tracing`: they keep nothing, and their functions are empty.

use std::fmt::Display;

use dunlin_core::Peer;
use dunlin_wire::{ErrorCode, ReqType};

use crate::meta::Meta;
use crate::trace::TraceParent;

/// A future in the span of its request; here the future itself, because there is no span.
pub type Traced<F> = F;

/// The span of a request: none.
#[derive(Clone, Debug, Default)]
pub struct RequestSpan(());

/// The span of a call: none.
#[derive(Debug, Default)]
pub struct CallSpan(());

/// The attempts of a call, which are not counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hops(());

impl RequestSpan {
    /// Begins no span.
    #[inline(always)]
    pub fn begin(_: &'static str, _: ReqType, _: &[u8], _: impl FnOnce() -> Option<Peer>) -> Self {
        Self(())
    }

    /// There is no span that is entered.
    #[inline(always)]
    pub fn current() -> Self {
        Self(())
    }

    /// Runs code.
    #[inline(always)]
    pub fn run<R>(&self, run: impl FnOnce() -> R) -> R {
        run()
    }

    /// Returns the future as it is.
    #[inline(always)]
    pub fn around<F>(self, future: F) -> Traced<F> {
        future
    }

    /// The request is answered with a response.
    #[inline(always)]
    pub fn on_response(&self) {}

    /// The handler answers the request with an error.
    #[inline(always)]
    pub fn on_reject(&self, _: ErrorCode) {}

    /// The request ends with an error.
    #[inline(always)]
    pub fn on_refuse(&self, _: ErrorCode) {}

    /// The request is dropped without an answer.
    #[inline(always)]
    pub fn on_drop(&self, _: impl FnOnce() -> bool) {}
}

impl CallSpan {
    /// The span of a call that is made now.
    #[inline(always)]
    pub fn new() -> Self {
        Self(())
    }

    /// The span of a copy of this call.
    #[inline(always)]
    pub fn of_copy(&self) -> Self {
        Self(())
    }

    /// Notes the method that the call calls.
    #[inline(always)]
    pub fn on_method(&mut self, _: &'static str) {}

    /// Notes that the program has added metadata with this key.
    #[inline(always)]
    pub fn on_meta(&mut self, _: &str) {}

    /// Begins no span.
    #[inline(always)]
    pub fn begin(&mut self, _: Option<ReqType>, _: Option<&mut Meta>) {}

    /// The call has ended.
    #[inline(always)]
    pub fn on_end(&self, _: Hops, _: Result<(), (&dyn Display, Option<ErrorCode>)>) {}

    /// The program drops the call before its end.
    #[inline(always)]
    pub fn on_drop(&self) {}
}

impl Hops {
    /// Counts an attempt that is sent.
    #[inline(always)]
    pub fn on_attempt(&mut self, _: impl FnOnce() -> Option<Peer>) {}
}

/// The trace `given`, because no span is entered.
#[inline(always)]
pub(crate) fn current_or(given: Option<TraceParent>) -> Option<TraceParent> {
    given
}
