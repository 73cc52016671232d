//! The images that `images.txt` lists as those of the present text. Part of the build script and of
//! the tests.

use sha2::{Digest, Sha256};

/// End of the name of an image.
pub const SUFFIX: &str = ".image.lzma";
const LIST: &str = "images.txt";
/// Options and version of the compiler in `scripts/cuda_images.py`, parts of the text's hash.
const COMPILED_WITH: [&str; 4] = ["--std=c++17", "--ptxas-options=-v", "--fmad=true", "12.9"];

/// Names of the images.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// images of the text
    pub current: Vec<String>,
    /// images of another text, and images that the list does not have
    pub stale: Vec<String>,
}

fn hex(parts: &[&[u8]]) -> String {
    let digest = parts.iter().fold(Sha256::new(), |hash, part| hash.chain_update(part)).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash of the text, as in the list.
pub fn text_hash(sources: &[(String, Vec<u8>)]) -> String {
    let mut parts: Vec<&[u8]> = Vec::new();
    for (name, text) in sources {
        parts.extend([name.as_bytes(), b"\n", text, b"\0"]);
    }
    for (i, option) in COMPILED_WITH.iter().enumerate() {
        parts.extend([if i == 0 { &b""[..] } else { b"\0" }, option.as_bytes()]);
    }
    hex(&parts)
}

/// Compares the files of the folder of images with its list. All files are sorted by name.
pub fn of_text(sources: &[(String, Vec<u8>)], images: &[(String, Vec<u8>)]) -> Listed {
    let list = images.iter().find(|(name, _)| name == LIST).map_or(&[][..], |(_, text)| text);
    let list = String::from_utf8_lossy(list);
    let is_listed = |name: &str, hash: String| list.lines().any(|line| line == format!("{name} {hash}"));
    let of_text = is_listed("text", text_hash(sources));
    let mut found = Listed::default();
    for (name, image) in images {
        let Some(target) = name.strip_suffix(SUFFIX) else { continue };
        let is_current = of_text && is_listed(target, hex(&[image]));
        (if is_current { &mut found.current } else { &mut found.stale }).push(name.clone());
    }
    found
}
