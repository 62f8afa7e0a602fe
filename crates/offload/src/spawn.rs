//! The executor on whose threads handlers run.

/// An executor, such as the handle of a runtime.
///
/// It must run many futures at a time, even on one thread: one future lives as long as the
/// [`Offload`](crate::Offload) and spawns another one for each request. An executor that is shut
/// down must drop all its futures, including those that wait: their requests end only then.
///
/// ```
/// use dunlin_offload::Spawn;
///
/// # mod runtime {
/// #     #[derive(Clone)]
/// #     pub struct Handle;
/// #     impl Handle {
/// #         pub fn launch(&self, _: impl Future<Output = ()> + Send + 'static) {}
/// #     }
/// # }
/// /// The handle of a runtime.
/// struct OnRuntime(runtime::Handle);
///
/// impl Spawn for OnRuntime {
///     fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
///         // If the runtime has been shut down, this drops the future.
///         self.0.launch(future);
///     }
/// }
/// ```
pub trait Spawn: Send + Sync + 'static {
    /// Runs a future until it ends, without waiting for it. An executor that cannot run it, because
    /// it has been shut down, drops it.
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static);
}
