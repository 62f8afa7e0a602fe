//! Sentences about the kernel's refusals: the step that failed, and the missing capability or part
//! of the kernel, as far as the error number shows it.
//!
//! Pure. Called by `socket` and `steering`.

use libc::c_int;

/// Why the kernel makes no AF_XDP socket (`socket(2)`).
pub(crate) fn of_socket(code: Option<c_int>) -> &'static str {
    match code {
        Some(libc::EPERM | libc::EACCES) => {
            "the kernel opens no AF_XDP socket; it needs CAP_NET_RAW"
        }
        Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT) => {
            "the kernel has no AF_XDP sockets (it was built without CONFIG_XDP_SOCKETS)"
        }
        Some(libc::EMFILE) => "no descriptor is free for an AF_XDP socket (raise ulimit -n)",
        Some(libc::ENFILE) => {
            "the system has no free descriptor for an AF_XDP socket (fs.file-max)"
        }
        Some(libc::ENOBUFS | libc::ENOMEM) => "the kernel has no memory for an AF_XDP socket",
        _ => "the kernel opens no AF_XDP socket",
    }
}

/// Why the kernel makes no map (`bpf(2)`, `BPF_MAP_CREATE`).
pub(crate) fn of_map(code: Option<c_int>) -> &'static str {
    match code {
        Some(libc::EPERM) => "the kernel makes no map; it needs CAP_BPF and CAP_NET_ADMIN",
        // The kernel does not know the kind of one of the two maps.
        Some(libc::EINVAL) => {
            "the kernel has no maps of AF_XDP sockets (it was built without CONFIG_XDP_SOCKETS)"
        }
        Some(libc::ENOSYS) => "the kernel has no bpf() (it was built without CONFIG_BPF_SYSCALL)",
        Some(libc::ENOMEM) => "the kernel has no memory for a map",
        _ => "the kernel makes no map",
    }
}

/// Why the kernel does not load the program (`BPF_PROG_LOAD`).
pub(crate) fn of_program(code: Option<c_int>) -> &'static str {
    match code {
        Some(libc::EPERM) => {
            "the kernel refuses the steering program; it needs CAP_BPF and CAP_NET_ADMIN"
        }
        Some(libc::ENOMEM) => "the kernel has no memory for the steering program",
        _ => "the kernel refuses the steering program",
    }
}

/// Why the kernel does not attach the program to the interface (`BPF_LINK_CREATE`).
pub(crate) fn of_attachment(code: Option<c_int>) -> &'static str {
    match code {
        Some(libc::EBUSY | libc::EEXIST) => "the interface has an XDP program of another process",
        Some(libc::EOPNOTSUPP) => "the driver of the interface cannot run XDP",
        Some(libc::ERANGE) => "the interface's MTU is too large for native XDP",
        Some(libc::EPERM) => "the program cannot be attached; it needs CAP_NET_ADMIN",
        Some(libc::ENODEV | libc::EINVAL) => {
            "the program cannot be attached: the interface is gone, or takes no link of XDP"
        }
        Some(libc::ENOMEM) => "the driver has no memory for native XDP",
        _ => "the program cannot be attached",
    }
}

#[cfg(test)]
mod tests;
