//! Embeds the images that `scripts/cuda_images.py` made; without them it builds as well.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=images");
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("images");
    let mut text = "&[\n".to_owned();
    let mut files: Vec<_> = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    files.sort();
    for file in &files {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(target) = name.strip_suffix(".image.lzma") {
            let _ = writeln!(text, "    ({target:?}, include_bytes!({:?})),", file.display().to_string());
        }
    }
    text.push_str("]\n");
    let out = Path::new(&std::env::var("OUT_DIR").unwrap_or_default()).join("images.rs");
    if let Err(error) = std::fs::write(&out, text) {
        panic!("{}: {error}", out.display());
    }
}
