//! The choice of an image for a GPU.

use crate::source;
use lzma_rust2::LzmaReader;
use std::io::Read;

/// The oldest major of compute capability that the text compiles for.
const OLDEST: i32 = 6;

/// Compressed images by target.
static IMAGES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// Images in the folder of the crate that were not those of its text when it was built.
const STALE: &str = env!("MXRT_STALE_IMAGES");

/// The image for a compute capability, or why there is none.
pub(crate) fn image(capability: (i32, i32)) -> Result<Vec<u8>, String> {
    let (major, minor) = capability;
    // Code for 8.0 runs on all of 8, and so on; PTX serves what came later.
    let target = match capability {
        (7, 5) => "sm_75",
        (8, _) => "sm_80",
        (9, 0) => "sm_90a",
        (9, _) => "compute_80",
        (10, _) => "sm_100",
        (12, _) => "sm_120",
        (major, _) if major > 8 => "compute_80",
        (major, _) if major >= OLDEST => return compiled(capability),
        _ => {
            return Err(format!(
                "mxrt has no kernels for a GPU of compute capability {major}.{minor}: it needs {OLDEST}.0 or more; \
                 compute on the CPU"
            ));
        }
    };
    let Some((_, image)) = IMAGES.iter().find(|(name, _)| *name == target) else {
        if STALE.split(' ').any(|name| name.strip_suffix(".image.lzma") == Some(target)) {
            return Err(format!(
                "the image of mxrt's kernels for {target} is of another version of their text, so this build was made \
                 without it; build it after scripts/cuda_images.py"
            ));
        }
        return Err(format!(
            "this build of mxrt has no image of its kernels for {target}, which a GPU of compute capability \
             {major}.{minor} needs; build it after scripts/cuda_images.py"
        ));
    };
    let mut code = Vec::new();
    LzmaReader::new_mem_limit(*image, u32::MAX, None)
        .and_then(|mut reader| reader.read_to_end(&mut code))
        .map_err(|error| format!("the image of {target} in this build is damaged: {error}"))?;
    // Text for the driver's compiler ends with a zero.
    code.push(0);
    Ok(code)
}

/// The code for a GPU that is older than the images, or why it cannot be had.
fn compiled(capability: (i32, i32)) -> Result<Vec<u8>, String> {
    mxrt_cuda::compile(&source::kernels(), capability).map_err(|why| {
        let (major, minor) = capability;
        format!(
            "this build of mxrt has no image of its kernels for a GPU of compute capability {major}.{minor}, and they \
             cannot be compiled: {why}; install NVRTC (pip install 'mxrt[cuda12]'), or compute on the CPU"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listed::{Listed, of_text};
    use std::path::Path;

    fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> = entries
            .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
            .collect();
        files.sort();
        files
    }

    #[test]
    fn images_of_another_text_are_left_out() {
        let (mut sources, mut images) = (files("cuda"), files("images"));
        let names: Vec<String> =
            images.iter().map(|(name, _)| name.clone()).filter(|name| name.ends_with(".lzma")).collect();
        assert_eq!(of_text(&sources, &images), Listed { current: names.clone(), stale: vec![] });
        // An image that the list does not have.
        let (name, image) = images.iter_mut().find(|(name, _)| name.starts_with("sm_80")).unwrap();
        image.push(0);
        let name = name.clone();
        let found = of_text(&sources, &images);
        assert_eq!((found.current.len(), found.stale), (names.len() - 1, vec![name]));
        sources[3].1.push(b'\n');
        assert_eq!(of_text(&sources, &files("images")), Listed { current: vec![], stale: names.clone() });
        let without: Vec<_> = files("images").into_iter().filter(|(name, _)| name != "images.txt").collect();
        assert_eq!(of_text(&files("cuda"), &without), Listed { current: vec![], stale: names });
    }

    #[test]
    fn the_list_of_images_names_no_folder() {
        // A copy of the crate in another folder, which may go away, can share the list.
        let list = include_str!(concat!(env!("OUT_DIR"), "/images.rs"));
        assert!(list.contains("/images/sm_80.image.lzma") && !list.contains(env!("CARGO_MANIFEST_DIR")), "{list}");
    }

    #[test]
    fn every_target_has_an_image_and_older_gpus_an_error() {
        for (capability, first) in [
            ((7, 5), &b"\x7fELF"[..]),
            ((8, 6), b"\x7fELF"),
            ((9, 0), b"\x7fELF"),
            ((10, 3), b"\x7fELF"),
            ((12, 1), b"\x7fELF"),
            ((11, 0), b"//"),
            ((13, 0), b"//"),
        ] {
            let code = image(capability).unwrap();
            assert!(code.starts_with(first) && code.len() > 100_000, "{capability:?}: {} bytes", code.len());
        }
        assert!(image((5, 2)).unwrap_err().contains("no kernels for a GPU of compute capability 5.2: it needs 6.0"));
    }
}
