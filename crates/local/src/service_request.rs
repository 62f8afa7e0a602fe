//! A request for a typed service, before one of its methods runs.
//!
//! Only such a request can be refused: the client then knows that no method has run, and a channel
//! repeats the call (rule W13). A handler of the program gets an [`OwnedRequest`], which cannot be
//! refused. So `dunlin` does not export [`serve_method_of_service`].

use dunlin_core::{Nanos, Session};
use dunlin_msgbuf::MsgBuf;
use dunlin_nexus::Open;
use dunlin_service::{Error, IncomingRequest, Refusal};
use dunlin_wire::{ErrorCode, ReqType};

use crate::caller::Caller;
use crate::local::Local;
use crate::request::OwnedRequest;

/// A request for a typed service. The code that the attribute `service` makes reads the request,
/// and answers it with the method's return value, or refuses it.
#[must_use = "dropping it answers the client with an error"]
#[derive(Debug)]
pub struct ServiceRequest(OwnedRequest);

impl ServiceRequest {
    /// Takes the request out of here; `None` if it was taken before. Nothing else may be called
    /// after that.
    #[inline]
    pub fn take(&mut self) -> Option<Self> {
        self.0.take().map(Self)
    }

    /// As [`OwnedRequest::take_buf`].
    ///
    /// # Errors
    /// If it was taken before.
    pub fn take_buf(&mut self) -> Result<MsgBuf, Error> {
        self.0.take_buf()
    }

    /// As [`OwnedRequest::reply_from`].
    ///
    /// # Errors
    /// If the endpoint is gone.
    pub fn reply_from(self, buf: MsgBuf) -> Result<(), Error> {
        self.0.reply_from(buf)
    }
}

impl IncomingRequest for ServiceRequest {
    #[inline]
    fn data(&self) -> &[u8] {
        self.0.data()
    }

    #[inline]
    fn req_type(&self) -> ReqType {
        self.0.req_type()
    }

    #[inline]
    fn session(&self) -> Session {
        self.0.session()
    }

    fn now(&self) -> Nanos {
        self.0.now()
    }

    #[inline(always)]
    fn reply(self, len: usize, write: impl FnOnce(&mut [u8])) -> Result<(), Error> {
        self.0.reply_with(len, write)
    }

    fn reject(self, code: ErrorCode) -> Result<(), Error> {
        self.0.reject(code)
    }

    fn refuse(self, why: Refusal) -> Result<(), Error> {
        self.0.refuse(why.code())
    }
}

/// Registers a handler for the requests of one method of a service, with the name of their spans.
/// For the crates of Dunlin that stand between an endpoint and a service.
pub fn serve_method_of_service<T, H, F>(
    local: &mut Local<T>,
    req_type: ReqType,
    name: &'static str,
    mut handler: H,
) where
    T: Open,
    H: FnMut(ServiceRequest, Caller) -> F + 'static,
    F: Future<Output = Result<(), Error>> + 'static,
{
    local.serve_method(req_type, name, move |request, caller| {
        handler(ServiceRequest(request), caller)
    });
}
