//! Which image serves which GPU.

/// Images by target.
static IMAGES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// Whether this build has any image; without one there are no kernels to offer.
pub(crate) fn present() -> bool {
    !IMAGES.is_empty()
}

/// The image for a compute capability, or why there is none.
pub(crate) fn image(capability: (i32, i32)) -> Result<&'static [u8], String> {
    let (major, minor) = capability;
    // Code for 8.0 runs on all of 8, and so on; PTX serves what came later.
    let target = match capability {
        (7, 5) => "sm_75",
        (8, _) => "sm_80",
        (9, _) => "sm_90",
        (10, _) => "sm_100",
        (12, _) => "sm_120",
        (major, _) if major >= 8 => "compute_80",
        _ => return Err(format!("mxrt has no kernels for GPUs of compute capability {major}.{minor}: it needs 7.5")),
    };
    let found = IMAGES.iter().find(|(name, _)| *name == target).map(|(_, image)| *image);
    found.ok_or_else(|| {
        format!(
            "this build of mxrt has no image of its kernels for {target}, which a GPU of compute capability \
             {major}.{minor} needs; build it after scripts/cuda_images.py"
        )
    })
}
