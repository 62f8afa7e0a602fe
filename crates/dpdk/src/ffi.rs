//! The functions of `libdunlin_dpdk.so` (`native/`), found at run time, and the calls
//! to the operating system of this crate.
//!
//! Invariant: a library is never unloaded, so its functions live as long as the process. Called by
//! `library`, `eal`, `device` and `inbox`.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU8;

/// The version of the functions below.
const VERSION: u32 = 5;

/// The wish that [`Functions::open`] gets: `struct dunlin_dpdk_wish`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Wish {
    /// Packets in the pool of the device.
    pub(crate) packets: u32,
    /// Descriptors of each queue.
    pub(crate) descriptors: u32,
    /// Bytes of the longest IP packet; 0: the device's own limit.
    pub(crate) mtu: u16,
    /// Bytes of Ethernet around a packet.
    pub(crate) around: u16,
    /// The most queues of received packets.
    pub(crate) queues: u16,
    /// Whether packets to groups are wanted: 0 or 1.
    pub(crate) groups: u8,
    /// Whether it may read bytes of packets in the msgbufs: 0 or 1.
    pub(crate) lends: u8,
}

/// An open device: `struct dunlin_dpdk_device`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Facts {
    pub(crate) pool: *mut c_void,
    /// The rate of the link; 0 if the device does not report it.
    pub(crate) bytes_per_second: u64,
    /// Bytes of the longest frame.
    pub(crate) room: u32,
    /// Bytes from the handle of an empty packet to its first byte.
    pub(crate) start: u32,
    pub(crate) rx_descriptors: u32,
    /// Descriptor that becomes readable when a packet comes during [`Functions::listen`]; -1: none.
    pub(crate) bell: c_int,
    pub(crate) port: u16,
    /// Bytes of the longest IP packet.
    pub(crate) mtu: u16,
    /// Queues of received packets: one, or as many as were wished if the device has rules.
    pub(crate) queues: u16,
    pub(crate) mac: [u8; 6],
    /// Whether [`Functions::ask`] has an effect: 0 or 1.
    pub(crate) answers: u8,
    /// Whether packets may have a [`Tail`]: 0 or 1.
    pub(crate) lends: u8,
}

/// Bytes after those of a packet, which the device reads in the msgbuf: `struct dunlin_dpdk_tail`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Tail {
    /// An empty packet, to which the bytes belong meanwhile; null if there is no tail.
    pub(crate) handle: *mut c_void,
    pub(crate) bytes: *const u8,
    /// Becomes 1 when the device no longer needs the bytes.
    pub(crate) done: *const AtomicU8,
    pub(crate) len: u32,
}

// SAFETY: the pool belongs to the library, whose functions any thread may call with it.
unsafe impl Send for Facts {}
// SAFETY: as above.
unsafe impl Sync for Facts {}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal ($($type:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, by name.
        #[derive(Debug)]
        pub(crate) struct Functions {
            $($(#[$doc])* pub(crate) $name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Finds all functions in a library.
            ///
            /// # Safety
            /// The library is ours, so that its functions have these types.
            unsafe fn find(library: *mut c_void) -> Result<Self, String> {
                Ok(Self {
                    $($name: {
                        let at = symbol(library, $symbol)?;
                        // SAFETY: the caller says that the function has this type.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($type),*) $(-> $result)?,
                            >(at)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    /// The version of the functions.
    version = c"dunlin_dpdk_version"() -> u32;
    /// Starts DPDK on the calling thread. DPDK writes its messages to a descriptor.
    start = c"dunlin_dpdk_start"(c_int, *mut *mut c_char, c_int) -> c_int;
    /// Opens a device by its name, and by its arguments, which begin with the name.
    open = c"dunlin_dpdk_open"(*const c_char, *const c_char, *const Wish, *mut Facts) -> c_int;
    /// Gets up to a number of packets from a device (low half) and its queue (high half). Writes
    /// their handles and lengths. If all are of one pool, in one piece, not shared, and begin at
    /// the same distance from their handles, also writes that distance; otherwise 0, and the
    /// addresses of the first bytes.
    receive = c"dunlin_dpdk_receive"
        (u32, *mut *mut c_void, *mut *mut u8, *mut u32, u32, *mut u32) -> u32;
    /// Gets empty packets from a pool: all or none.
    take = c"dunlin_dpdk_take"(*mut c_void, *mut *mut c_void, u32) -> u32;
    /// Hands packets to a device, which takes the first of them. The list of tails has one for each
    /// packet, or is null.
    send = c"dunlin_dpdk_send"(u16, *const *mut c_void, *const u32, *const Tail, u32) -> u32;
    /// Lets a device read memory (1), or ends that permission (0).
    share = c"dunlin_dpdk_share"(u16, *mut c_void, usize, c_int) -> c_int;
    /// Gives packets back to their pools. The last number is 0 only if all are of one pool, in one
    /// piece, and not shared.
    free = c"dunlin_dpdk_free"(*const *mut c_void, u32, u32);
    /// Makes a device give back packets that it has sent.
    ask = c"dunlin_dpdk_ask"(u16);
    /// Makes the bell of a device ring when a packet comes to one of its first queues (1), or stops
    /// that (0).
    listen = c"dunlin_dpdk_listen"(u16, u16, c_int, c_int);
    /// Makes a device put the datagrams for an address in its IPv6 form and a port into a queue of
    /// their own. Returns the rule, or null.
    steer = c"dunlin_dpdk_steer"(u16, u16, *const u8, u16) -> *mut c_void;
    /// Ends a rule.
    unsteer = c"dunlin_dpdk_unsteer"(u16, *mut c_void);
    /// Packets that a device dropped, by cause, as `tally` names them.
    drops = c"dunlin_dpdk_drops"(u16, *mut [u64; 4]);
    /// Whether the link of a device is up.
    is_up = c"dunlin_dpdk_is_up"(u16) -> c_int;
    /// Empty packets in a pool.
    empty = c"dunlin_dpdk_empty"(*const c_void) -> u32;
}

/// Loads a library by its path, or by its name in the system's folders.
///
/// # Errors
/// The linker's message; or a message that the library has other functions than these.
pub(crate) fn load(path: &CStr) -> Result<Functions, String> {
    // SAFETY: the name is a string; constructors of DPDK's libraries only register drivers.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(linker_words());
    }
    // SAFETY: a library of this name is ours; the version is checked before anything is called.
    let functions = unsafe { Functions::find(library) }?;
    // SAFETY: this function takes nothing, in every version.
    let version = unsafe { (functions.version)() };
    if version != VERSION {
        return Err(format!(
            "it has version {version} of the functions, not {VERSION}; build it again"
        ));
    }
    Ok(functions)
}

fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: a live library and a string.
    let at = unsafe { libc::dlsym(library, name.as_ptr()) };
    if at.is_null() {
        return Err(linker_words());
    }
    Ok(at)
}

fn linker_words() -> String {
    // SAFETY: the string lives until this thread calls the linker again.
    let words = unsafe { libc::dlerror() };
    if words.is_null() {
        return "the linker gives no reason".to_owned();
    }
    // SAFETY: as above, and not null.
    unsafe { CStr::from_ptr(words) }
        .to_string_lossy()
        .into_owned()
}

/// Whether the kernel gave this program, by its file, rights that its user may lack.
pub(crate) fn has_rights_of_its_file() -> bool {
    // SAFETY: the function takes a number only.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Blocks all signals for the calling thread except those that its own instructions raise. The
/// threads that it starts then take no signal of the program.
pub(crate) fn block_signals() {
    // SAFETY: the set is initialised before it is used; the rest concerns this thread alone.
    unsafe {
        let mut set = MaybeUninit::uninit();
        libc::sigfillset(set.as_mut_ptr());
        let mut set = set.assume_init();
        for raised in [libc::SIGBUS, libc::SIGSEGV, libc::SIGILL, libc::SIGFPE] {
            libc::sigdelset(&raw mut set, raised);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// The processors on which any thread of this process may run.
pub(crate) fn processors() -> Vec<usize> {
    let threads = std::fs::read_dir("/proc/self/task");
    let threads = threads.into_iter().flatten().flatten();
    let numbers = threads.filter_map(|it| it.file_name().to_str()?.parse().ok());
    // The calling thread has the number 0; without `/proc` it is the only one.
    let numbers = numbers.chain([0]);
    let all: BTreeSet<usize> = numbers.flat_map(processors_of).collect();
    all.into_iter().collect()
}

/// The processors on which this thread may run; none if it has ended.
fn processors_of(thread: libc::pid_t) -> Vec<usize> {
    // SAFETY: the kernel writes at most the given bytes into the live set, and zeros are a set.
    let (set, is_known) = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let outcome = libc::sched_getaffinity(thread, size_of_val(&set), &raw mut set);
        (set, outcome == 0)
    };
    let size = usize::try_from(libc::CPU_SETSIZE).expect("1024");
    // SAFETY: the number is below the size of the set.
    let may_run = |cpu: &usize| is_known && unsafe { libc::CPU_ISSET(*cpu, &set) };
    (0..size).filter(may_run).collect()
}

/// Makes a pipe, neither end of which ever waits: the end to read, and the end to write.
pub(crate) fn pipe() -> io::Result<[OwnedFd; 2]> {
    let mut ends = [-1; 2];
    // SAFETY: the kernel writes two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened them for us.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }))
}

/// A descriptor that one thread makes readable for another (`eventfd(2)`).
#[derive(Debug)]
pub(crate) struct Event(OwnedFd);

impl Event {
    /// Makes a descriptor that is not readable.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: eventfd(2) takes numbers only.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened it for us.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes the descriptor readable.
    pub(crate) fn signal(&self) {
        let one = 1_u64;
        // SAFETY: the kernel reads the eight bytes of a live number. It refuses only at 2^64 - 1.
        unsafe { libc::write(self.number(), (&raw const one).cast(), 8) };
    }

    /// Makes the descriptor unreadable.
    pub(crate) fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: the kernel writes eight bytes to a live number.
        unsafe { libc::read(self.number(), (&raw mut count).cast(), 8) };
    }

    /// The descriptor.
    pub(crate) fn number(&self) -> c_int {
        self.0.as_raw_fd()
    }
}
