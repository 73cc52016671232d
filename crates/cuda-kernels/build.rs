//! Embeds the images that `scripts/cuda_images.py` made; without them it builds as well. Embeds the
//! text of the kernels too, for GPUs without an image. Makes the arguments of kernels in Rust.

#[path = "build/arguments.rs"]
mod arguments;
#[path = "build/listed.rs"]
mod listed;

use lzma_rust2::{LzmaOptions, LzmaWriter};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=images");
    println!("cargo:rerun-if-changed=cuda");
    let folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default());
    let written = images(&folder, &out.join("images.rs"))
        .and_then(|()| text(&folder.join("cuda"), &out.join("source.lzma")))
        .and_then(|()| structures(&folder.join("cuda"), &out.join("arguments.rs")));
    if let Err(error) = written {
        panic!("{}: {error}", out.display());
    }
}

/// Files and their names, in the order of these.
fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let paths = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut files: Vec<_> = paths.filter_map(|path| Some((name(&path)?, path))).collect();
    files.sort();
    files
}

/// The images of the present text. Others are left out: their kernels take other arguments than
/// those that are passed.
fn images(folder: &Path, out: &Path) -> std::io::Result<()> {
    let contents = |files: Vec<(String, PathBuf)>| -> std::io::Result<Vec<(String, Vec<u8>)>> {
        files.into_iter().map(|(name, path)| Ok((name, std::fs::read(path)?))).collect()
    };
    let (sources, images) = (contents(files(&folder.join("cuda")))?, contents(files(&folder.join("images")))?);
    let listed = listed::of_text(&sources, &images);
    for name in &listed.stale {
        println!("cargo:warning=images/{name} is not of the text of the kernels: run scripts/cuda_images.py");
    }
    println!("cargo:rustc-env=MXRT_STALE_IMAGES={}", listed.stale.join(" "));
    let mut text = "&[\n".to_owned();
    for name in listed.current {
        if let Some(target) = name.strip_suffix(listed::SUFFIX) {
            // A copy of the crate in another folder may share what is written here: the path is
            // that of the crate that is compiled.
            let path = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?})", format!("/images/{name}"));
            let _ = writeln!(text, "    ({target:?}, include_bytes!({path})),");
        }
    }
    text.push_str("]\n");
    std::fs::write(out, text)
}

/// Name and content of every file that is compiled for GPUs, each ended by a zero.
fn text(folder: &Path, out: &Path) -> std::io::Result<()> {
    let mut all = Vec::new();
    for (name, path) in files(folder) {
        all.extend([name.as_bytes(), b"\0", &std::fs::read(path)?, b"\0"].concat());
    }
    let size = all.len() as u64;
    let mut writer = LzmaWriter::new_use_header(Vec::new(), &LzmaOptions::with_preset(9), Some(size))?;
    writer.write_all(&all)?;
    std::fs::write(out, writer.finish()?)
}

/// The arguments of kernels. Headers come in the order of `kernels.cu`, after those that it includes
/// indirectly.
fn structures(folder: &Path, out: &Path) -> std::io::Result<()> {
    let mut order = Vec::new();
    include(folder, "kernels.cu", &mut order)?;
    let rust = arguments::generate(&order).map_err(std::io::Error::other)?;
    std::fs::write(out, rust)
}

/// Adds the files that a file includes, then itself, unless they are there.
fn include(folder: &Path, name: &str, order: &mut Vec<(String, String)>) -> std::io::Result<()> {
    if order.iter().any(|(known, _)| known == name) {
        return Ok(());
    }
    let text = std::fs::read_to_string(folder.join(name))?;
    let included = |line: &str| Some(line.strip_prefix("#include \"")?.strip_suffix('"')?.to_owned());
    // Tests alone have what replaces CUDA on the host.
    for other in text.lines().filter_map(included).filter(|other| other != "host.h") {
        include(folder, &other, order)?;
    }
    order.push((name.to_owned(), text));
    Ok(())
}
