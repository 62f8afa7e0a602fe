//! Compiles the service of the gRPC peer with `protox`: `protoc` need not be installed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=echo.proto");
    let service = protox::compile(["echo.proto"], ["."])?;
    // Cloning a large field shares its bytes instead of copying them.
    tonic_prost_build::configure()
        .bytes(".")
        .compile_fds(service)?;
    Ok(())
}
