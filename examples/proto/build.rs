//! Compiles the messages with `protox`, which is written in Rust, so `protoc` need not be
//! installed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=greeter.proto");
    let messages = protox::compile(["greeter.proto"], ["."])?;
    prost_build::Config::new().compile_fds(messages)?;
    Ok(())
}
