//! Compiles the proto. No protoc is needed.

use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    if std::env::var_os("CARGO_FEATURE_GRPC").is_none() {
        return Ok(());
    }
    let files = protox::compile(["frazil/v1/ids.proto"], ["proto"])?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(out.join("frazil.v1.bin"), files.encode_to_vec())?;
    // Who connects and who listens is up to the client and the server.
    tonic_prost_build::configure().build_transport(false).compile_fds(files)?;
    Ok(())
}
