//! The generated code, held to the proto.

use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message;

/// Set to write the files anew.
const WRITE: &str = "FRAZIL_WRITE_GENERATED";
const FILES: [&str; 2] = ["frazil.v1.rs", "frazil.v1.bin"];

#[test]
fn the_generated_code_is_that_of_the_proto() {
    let kept = root().join("src/generated");
    let made = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("generated");
    generate(&made);
    for name in FILES {
        let made = fs::read(made.join(name)).unwrap();
        if env::var_os(WRITE).is_some() {
            fs::write(kept.join(name), made).unwrap();
            continue;
        }
        // Without the contents: there are thousands of lines.
        assert!(
            fs::read(kept.join(name)).unwrap() == made,
            "src/generated/{name} is not what proto/ says: run this test with {WRITE}=1"
        );
    }
}

fn generate(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let files = protox::compile(["frazil/v1/ids.proto"], [root().join("proto")]).unwrap();
    fs::write(folder.join("frazil.v1.bin"), files.encode_to_vec()).unwrap();
    // Who connects and who listens is up to the client and the server.
    let generator = tonic_prost_build::configure().build_transport(false).out_dir(folder);
    generator.compile_fds(files).unwrap();
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
