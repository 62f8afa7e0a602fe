//! The executor on whose threads handlers run.

/// An executor, such as the handle of a runtime.
///
/// It runs many futures at a time, however few threads it has: one of them lives as long as the
/// [`Offload`](crate::Offload), and hands the requests to the others. When the executor is shut
/// down, it drops all its futures, those that wait included; until then their requests wait, too.
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
