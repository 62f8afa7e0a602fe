//! Another user of this host, for tests that run as root: a thread whose sockets belong to that
//! user.
//!
//! Invariant: only that thread, and the threads that it starts, act as the user.

/// A user without rights.
pub const STRANGER: u32 = 65_534;

/// Runs `task` in a thread of its own, as this user. A process that is not root can name only its
/// own user.
///
/// # Panics
/// If the kernel refuses, or the task panics.
pub fn as_user<R: Send>(user: u32, task: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let acting = scope.spawn(|| {
            // SAFETY: the call takes no pointers, and affects only this thread.
            unsafe { libc::setfsuid(user) };
            // SAFETY: as above. No user has this number, so the call only returns the present one.
            let now = unsafe { libc::setfsuid(u32::MAX) };
            assert_eq!(
                u32::try_from(now),
                Ok(user),
                "only root can be another user"
            );
            task()
        });
        match acting.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
