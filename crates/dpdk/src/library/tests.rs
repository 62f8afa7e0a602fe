//! The places of the library, and the words of errors, without DPDK.

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
