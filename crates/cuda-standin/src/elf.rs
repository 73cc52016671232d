//! The difference between a library of the host and an image for a GPU.

/// Bytes of the header of a file of 64 bits.
const HEADER: usize = 64;
/// The machine of images.
const CUDA: u16 = 190;

/// An image as the compiler would give it for a GPU: one that the driver takes, without code.
pub(crate) fn of_a_gpu() -> Vec<u8> {
    let mut header = vec![0; HEADER];
    header[..4].copy_from_slice(b"\x7fELF");
    header[18..20].copy_from_slice(&CUDA.to_le_bytes());
    header
}

/// The whole file, if it is one for the host's machine.
///
/// # Safety
/// `image` begins with a header, and is as long as that says.
pub(crate) unsafe fn of_the_host<'a>(image: *const u8) -> Option<&'a [u8]> {
    // SAFETY: contract.
    let header = unsafe { std::slice::from_raw_parts(image, HEADER) };
    let number = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    if number(18) == CUDA {
        return None;
    }
    // The table of sections is the last thing that linkers write.
    let table = u64::from_le_bytes(header[40..48].try_into().ok()?) as usize;
    let bytes = table + usize::from(number(58)) * usize::from(number(60));
    // SAFETY: contract.
    Some(unsafe { std::slice::from_raw_parts(image, bytes) })
}
