//! Finds `libdunlin_dpdk.so`, the part of this crate that is linked with DPDK. Programs are not
//! linked with DPDK, so they also start where it is missing.
//!
//! The search: the file that the environment variable [`VARIABLE`] names; if it is not set, the
//! folder of the program, the folder `lib` next to that, and the system's folders (`ld.so(8)`). If
//! the kernel started the program with more rights than its user has, the program searches nowhere:
//! its user could name any file, and DPDK's option `-d` loads further ones. Called by `eal`.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::ffi::{self, Functions};

/// The name of the library.
pub const NAME: &str = "libdunlin_dpdk.so";

/// The environment variable that names the file of the library.
pub const VARIABLE: &str = "DUNLIN_DPDK_LIBRARY";

/// Loads the library.
///
/// # Errors
/// As [`find`].
pub(crate) fn load() -> io::Result<Functions> {
    search().map(|(functions, _)| functions)
}

/// Loads the library without starting DPDK, and returns its place: a path, or its name if it is in
/// a folder of the system.
///
/// # Errors
/// `PermissionDenied` if the program's file gives it capabilities or another user (`AT_SECURE` of
/// `getauxval(3)`), because its user could borrow these rights with another library.
/// `NotFound` if no place has a library that loads; after its first line, the text has a line for
/// each place, with the reason.
///
/// ```
/// if let Err(error) = dunlin_dpdk::library::find() {
///     assert!(error.to_string().contains(dunlin_dpdk::library::VARIABLE));
/// }
/// ```
pub fn find() -> io::Result<PathBuf> {
    search().map(|(_, place)| place)
}

fn search() -> io::Result<(Functions, PathBuf)> {
    if ffi::has_rights_of_its_file() {
        let what = "the file of this program gives it capabilities or another user, so it loads no \
                    library that its user can choose: remove these rights from the file, and start \
                    the program as root or with AmbientCapabilities= of systemd";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    let program = std::env::current_exe().ok();
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    load_from(places(named, program.as_deref()))
}

/// The places to search, in order.
fn places(named: Option<PathBuf>, program: Option<&Path>) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named];
    }
    let mut places = Vec::new();
    if let Some(folder) = program.and_then(Path::parent) {
        places.push(folder.join(NAME));
        places.extend(folder.parent().map(|above| above.join("lib").join(NAME)));
    }
    // A name without a folder makes the linker search the system's folders.
    places.push(PathBuf::from(NAME));
    places
}

fn load_from(places: Vec<PathBuf>) -> io::Result<(Functions, PathBuf)> {
    let mut reasons = String::new();
    for place in places {
        let is_path = place.components().count() > 1;
        let why = match CString::new(place.as_os_str().as_bytes()) {
            _ if is_path && !place.exists() => "no such file".to_owned(),
            Ok(path) => match ffi::load(&path) {
                Ok(functions) => return Ok((functions, place)),
                Err(why) => why,
            },
            Err(_) => "the path has a zero byte".to_owned(),
        };
        let place = place.display();
        reasons += &format!("\n  {place}: {why}");
    }
    let what = format!(
        "{NAME} cannot be loaded; crates/dpdk/native/build.sh builds it where DPDK is installed; \
         if it lies in another place, set {VARIABLE} to its path:{reasons}"
    );
    Err(io::Error::new(io::ErrorKind::NotFound, what))
}

#[cfg(test)]
mod tests;
