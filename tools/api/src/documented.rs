//! The published libraries, as rustdoc describes them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::{Fallible, root};

/// A published library.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) name: String,
    /// What rustdoc wrote about it.
    json: PathBuf,
}

impl Library {
    /// Its public items, one per line. What is hidden from the documentation is no part of it, and what every type or
    /// a derive gives is left out.
    pub(crate) fn api(&self) -> Fallible<String> {
        let api = public_api::Builder::from_rustdoc_json(&self.json)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(true)
            .build()
            .map_err(|error| format!("{}: {error}; Rust 1.95 is needed", self.json.display()))?;
        Ok(api.to_string())
    }
}

/// Documents all published libraries with all their features, in one pass.
pub(crate) fn libraries() -> Fallible<Vec<Library>> {
    let metadata = metadata()?;
    let packages = metadata.packages.iter().filter(|package| package.is_published_library());
    let names: Vec<&str> = packages.map(|package| package.name.as_str()).collect();
    document(&names)?;
    let directory = Path::new(&metadata.target_directory).join("doc");
    let json = |name: &str| directory.join(format!("{}.json", name.replace('-', "_")));
    let library = |name: &&str| Library { name: (*name).to_owned(), json: json(name) };
    Ok(names.iter().map(library).collect())
}

fn document(names: &[&str]) -> Fallible<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args([
        "doc",
        "--quiet",
        "--offline",
        "--no-deps",
        "--lib",
        "--all-features",
    ]);
    for name in names {
        cargo.args(["--package", name]);
    }
    // The format is unstable, which rustdoc alone must look over: build scripts ask for the variable that allows it,
    // and everything would be built anew.
    cargo.env("RUSTDOC", root().join("tools/api/rustdoc-json"));
    cargo.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json");
    match cargo.status()?.success() {
        true => Ok(()),
        false => Err("the crates cannot be documented".into()),
    }
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: String,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    /// The registries that it may be published to, if not all.
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
}

impl Package {
    fn is_published_library(&self) -> bool {
        let is_library = |target: &Target| target.kind.iter().any(|kind| kind == "lib");
        self.publish.as_ref().is_none_or(|to| !to.is_empty()) && self.targets.iter().any(is_library)
    }
}

fn metadata() -> Fallible<Metadata> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["metadata", "--format-version=1", "--no-deps", "--offline"]);
    let output = cargo.output()?;
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout)?),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}
