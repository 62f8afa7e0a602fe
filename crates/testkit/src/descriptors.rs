//! Raises the limit of open files, for tests with thousands of connections.

use super::skip;

/// Lets this process and its children open this number of files. Prints the reason and returns
/// false if the system does not permit it: only root can raise the hard limit.
pub fn allow(wanted: u64) -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` lives until the call returns.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let before = limit.rlim_max;
    limit.rlim_cur = limit.rlim_cur.max(wanted);
    limit.rlim_max = limit.rlim_max.max(wanted);
    // SAFETY: as above.
    let is_allowed = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0;
    if !is_allowed {
        let error = std::io::Error::last_os_error();
        skip(&format!(
            "{wanted} open files are needed, and the hard limit is {before}: {error}"
        ));
    }
    is_allowed
}
