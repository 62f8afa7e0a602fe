//! A request on its way through the layers of a server.

use std::hint::cold_path;

use dunlin_core::Session;
use dunlin_local::ServiceRequest;
use dunlin_service::{Context, Error, IncomingRequest, Refusal, context_of};
use dunlin_wire::{ErrorCode, ReqType};

/// A request before its handler has it. A layer passes it on, or answers it with
/// [`Self::reject`]. If it is dropped, the client gets [`ErrorCode::OVERLOADED`].
#[must_use = "dropping it refuses the request"]
#[derive(Debug)]
pub struct Inbound {
    request: Unread,
    name: &'static str,
}

/// A request that no handler has read. If it is dropped, it is refused.
#[derive(Debug)]
pub(super) struct Unread(ServiceRequest);

const HERE: &str = "only what consumes the request takes it";

impl Inbound {
    #[inline]
    pub(crate) const fn new(request: ServiceRequest, name: &'static str) -> Self {
        Self {
            request: Unread(request),
            name,
        }
    }

    /// The facts about the request, as the handler gets them: metadata, deadline, the method's
    /// name. `None` if the metadata or the deadline cannot be read; the code that the attribute
    /// makes then refuses the request.
    pub fn context(&self) -> Option<Context<'_>> {
        context_of(&self.request.0, self.name).ok()
    }

    /// The method's name, with its service: `Kv.get`.
    pub const fn method(&self) -> &'static str {
        self.name
    }

    /// The request type: the method's number, with the highest bit set if there are metadata or a
    /// deadline.
    pub fn req_type(&self) -> ReqType {
        self.request.0.req_type()
    }

    /// The session on which the request came.
    pub fn session(&self) -> Session {
        self.request.0.session()
    }

    /// The bytes of the request, which are the message and, before it, the metadata.
    pub fn data(&self) -> &[u8] {
        self.request.0.data()
    }

    /// Answers with an error code, as a handler does: see [`IncomingRequest::reject`].
    ///
    /// # Errors
    /// If the endpoint is gone.
    pub fn reject(mut self, code: ErrorCode) -> Result<(), Error> {
        self.request.take().expect(HERE).reject(code)
    }

    #[inline]
    pub(super) fn into_unread(self) -> Unread {
        self.request
    }
}

impl Unread {
    /// Takes the request for the handler; `None` if that has been done before.
    #[inline]
    pub(super) fn take(&mut self) -> Option<ServiceRequest> {
        self.0.take()
    }
}

impl Drop for Unread {
    #[inline]
    fn drop(&mut self) {
        if let Some(request) = self.0.take() {
            cold_path();
            // Without an endpoint, no client waits.
            let _ = request.refuse(Refusal::Overloaded);
        }
    }
}
