//! The generated code, held to the proto.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Set to write the files anew.
const WRITE: &str = "FRAZIL_WRITE_GENERATED";
const FILES: [&str; 2] = ["etcdserverpb.rs", "mvccpb.rs"];

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
        // Without the contents: there are hundreds of lines.
        assert!(
            fs::read(kept.join(name)).unwrap() == made,
            "src/generated/{name} is not what proto/ says: run this test with {WRITE}=1"
        );
    }
}

fn generate(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let files = protox::compile(["etcdserverpb/rpc.proto"], [root().join("proto")]).unwrap();
    let generator = tonic_prost_build::configure().build_transport(false).build_server(false);
    generator.out_dir(folder).compile_fds(files).unwrap();
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
