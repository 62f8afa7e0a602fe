//! The executor on whose threads handlers run.

/// An executor, such as the handle of a runtime.
///
/// ```
/// use std::pin::Pin;
/// use std::sync::mpsc::SyncSender;
///
/// use dunlin_offload::Spawn;
///
/// /// Threads that take futures out of a queue and run them.
/// struct Threads(SyncSender<Pin<Box<dyn Future<Output = ()> + Send>>>);
///
/// impl Spawn for Threads {
///     fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
///         // If the threads have ended, this drops the future.
///         let _ = self.0.send(Box::pin(future));
///     }
/// }
/// ```
pub trait Spawn: Send + Sync + 'static {
    /// Runs a future until it ends. An executor that cannot run it, because it has been shut down,
    /// drops it.
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static);
}
