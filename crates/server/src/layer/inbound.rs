//! A request on its way through the layers of a server.

use dunlin_core::Session;
use dunlin_local::ServiceRequest;
use dunlin_service::{Context, Error, IncomingRequest, Refusal, context_of};
use dunlin_wire::{ErrorCode, ReqType};

/// A request before its handler has it. A layer passes it on, or answers it with
/// [`Self::reject`]. If it is dropped, the client gets [`ErrorCode::OVERLOADED`].
#[must_use = "dropping it refuses the request"]
#[derive(Debug)]
pub struct Inbound {
    /// Present until the request is answered or passed on.
    request: Option<ServiceRequest>,
    name: &'static str,
}

const HERE: &str = "only what consumes the request takes it";

impl Inbound {
    pub(crate) const fn new(request: ServiceRequest, name: &'static str) -> Self {
        Self {
            request: Some(request),
            name,
        }
    }

    /// The facts about the request, as the handler gets them: metadata, deadline, the method's
    /// name. `None` if the metadata or the deadline cannot be read; the code that the attribute
    /// makes then refuses the request.
    pub fn context(&self) -> Option<Context<'_>> {
        context_of(self.request(), self.name).ok()
    }

    /// The method's name, with its service: `Kv.get`.
    pub const fn method(&self) -> &'static str {
        self.name
    }

    /// The request type: the method's number, with the highest bit set if there are metadata or a
    /// deadline.
    pub fn req_type(&self) -> ReqType {
        self.request().req_type()
    }

    /// The session on which the request came.
    pub fn session(&self) -> Session {
        self.request().session()
    }

    /// The bytes of the request, which are the message and, before it, the metadata.
    pub fn data(&self) -> &[u8] {
        self.request().data()
    }

    /// Answers with an error code, as a handler does: see [`IncomingRequest::reject`].
    ///
    /// # Errors
    /// If the endpoint is gone.
    pub fn reject(mut self, code: ErrorCode) -> Result<(), Error> {
        self.take().reject(code)
    }

    /// Takes the request for the handler.
    pub(crate) fn take(&mut self) -> ServiceRequest {
        self.request.take().expect(HERE)
    }

    fn request(&self) -> &ServiceRequest {
        self.request.as_ref().expect(HERE)
    }
}

impl Drop for Inbound {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            // Without an endpoint, no client waits.
            let _ = request.refuse(Refusal::Overloaded);
        }
    }
}
