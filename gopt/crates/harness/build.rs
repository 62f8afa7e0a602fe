//! Passes the name of cargo's profile to the crate, for its rows. The only place where cargo shows
//! the name is the path of the folder that it gives to this program.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // target/PROFILE/build/harness-HASH/out
    let out = env::var("OUT_DIR").unwrap_or_default();
    let profile = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.and_then(|name| name.to_str()).unwrap_or("unknown");
    println!("cargo::rustc-env=HARNESS_PROFILE={profile}");
}
