//! Source of the kernels, for what is compiled at run time.

use lzma_rust2::LzmaReader;
use mxrt_cuda::KernelSource;
use std::io::Read;
use std::sync::OnceLock;

/// Names and contents of the files, each ended by a zero, compressed.
static FILES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/source.lzma"));

/// All kernels are compiled as the images are.
const OPTIONS: &[&str] = &["--std=c++17", "--fmad=true"];
/// Chains round after every function, as kernels do that take a chain as data.
const CHAIN_OPTIONS: &[&str] = &["--std=c++17", "--fmad=false"];
const MAIN: &str = "kernels.cu";
/// The files that a chain includes, directly or indirectly.
const OF_CHAINS: [&str; 4] = ["apply.h", "device.h", "functions.h", "types.h"];

fn files() -> &'static [(String, String)] {
    static TEXT: OnceLock<Vec<(String, String)>> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut all = String::new();
        // What the build wrote can be read; without it nothing compiles, which the compiler says.
        let _ = LzmaReader::new_mem_limit(FILES, u32::MAX, None).and_then(|mut from| from.read_to_string(&mut all));
        let parts: Vec<&str> = all.split('\0').collect();
        parts.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
    })
}

/// The source of all kernels.
pub(crate) fn kernels() -> KernelSource {
    let (mut main, mut others) = (String::new(), Vec::new());
    for (name, text) in files() {
        match name == MAIN {
            true => main.clone_from(text),
            false => others.push((name.as_str(), text.as_str())),
        }
    }
    KernelSource::new(MAIN, main, others, OPTIONS)
}

/// The source of a chain: one kernel.
pub(crate) fn chain(main: String) -> KernelSource {
    let used = files().iter().filter(|(name, _)| OF_CHAINS.contains(&name.as_str()));
    KernelSource::new(
        "chain.cu",
        main,
        used.map(|(name, text)| (name.as_str(), text.as_str())).collect(),
        CHAIN_OPTIONS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_the_files() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda");
        let count = std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(files().len(), count);
        for (name, text) in files() {
            assert_eq!(*text, std::fs::read_to_string(folder.join(name)).unwrap(), "{name}");
        }
        assert!(OF_CHAINS.iter().all(|used| files().iter().any(|(name, _)| name == used)));
    }
}
