//! Finds `libdunlin_dpdk.so`, the part of this crate that is linked with DPDK. Programs are not, so
//! they start without DPDK too.
//!
//! The search: the file that the environment variable [`VARIABLE`] names; if it is not set, the
//! folder of the program, the folder `lib` next to that, and the system's folders (`ld.so(8)`).
//! Called by `eal`.

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
/// `NotFound`, with the places and the reason for each of them.
pub(crate) fn load() -> io::Result<Functions> {
    search().map(|(functions, _)| functions)
}

/// Loads the library without starting DPDK, and returns its place: a path, or its name if it is in
/// a folder of the system.
///
/// # Errors
/// `NotFound`, with a line for each place and its reason after the first line.
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
            Err(_) => "a path has no zero".to_owned(),
        };
        let place = place.display();
        reasons += &format!("\n  {place}: {why}");
    }
    let what = format!(
        "{NAME} cannot be loaded; crates/dpdk/native/build.sh builds it where DPDK is installed, \
         and {VARIABLE} names it elsewhere:{reasons}"
    );
    Err(io::Error::new(io::ErrorKind::NotFound, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_file_is_the_only_place() {
        let named = PathBuf::from("/a/b.so");
        let program = Path::new("/usr/bin/program");
        assert_eq!(places(Some(named.clone()), Some(program)), [named]);
        let places = places(None, Some(program));
        let texts: Vec<_> = places.iter().map(|place| place.to_str().unwrap()).collect();
        let folder = "/usr/bin/libdunlin_dpdk.so";
        let lib = "/usr/lib/libdunlin_dpdk.so";
        assert_eq!(texts, [folder, lib, NAME]);
    }

    #[test]
    fn an_error_names_each_place_and_the_way_out() {
        let places = ["/nothing/here.so", "libdunlin_no_such_library.so"].map(PathBuf::from);
        let error = load_from(places.into()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let text = error.to_string();
        for part in [
            "/nothing/here.so: no such file",
            "libdunlin_no_such_library.so: ",
            VARIABLE,
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_library_of_another_kind_is_refused() {
        let error = load_from(vec![PathBuf::from("libc.so.6")]).unwrap_err();
        assert!(error.to_string().contains("dunlin_dpdk_version"), "{error}");
    }
}
