//! Handlers on a runtime, whose handle is their executor.

use dunlin::service::SendService;
use dunlin::{Offload, OffloadedRequest, Spawn};
use tokio::runtime::Handle;

/// A tokio runtime as the executor of handlers; each handler is a task.
#[derive(Clone, Debug)]
pub struct Tokio(pub Handle);

impl Spawn for Tokio {
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(future);
    }
}

/// Puts the handlers of a service on a tokio runtime. The service is one with the option `send`:
/// for a trait `Kv` with the attribute `service(send)`, a `KvSendServer`.
///
/// ```
/// use dunlin::service::{Context, Postcard};
/// use dunlin::{Server, service};
/// use dunlin_tokio::OnTokio;
///
/// #[service(codec = Postcard, send)]
/// trait Names {
///     #[method(1)]
///     fn length(name: String) -> usize;
/// }
///
/// struct Lengths;
///
/// impl NamesSend for Lengths {
///     async fn length(&self, name: String, _: Context<'_>) -> usize {
///         tokio::task::yield_now().await;
///         name.len()
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
/// let handle = runtime.handle().clone();
/// let server = Server::builder()
///     .service(move |_thread| NamesSendServer(Lengths).on(&handle))
///     .start("127.0.0.1:0")?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
pub trait OnTokio: SendService<OffloadedRequest> + Sized {
    /// The service with its handlers on this runtime, for `ServerBuilder::service` and
    /// `Local::serve_typed`. If the runtime is shut down, requests whose handlers have begun end
    /// with `HANDLER_FAILED`, and all later requests with `SHUTTING_DOWN`.
    fn on(self, runtime: &Handle) -> Offload<Self> {
        Offload::new(self, Tokio(runtime.clone()))
    }
}

impl<S: SendService<OffloadedRequest>> OnTokio for S {}
