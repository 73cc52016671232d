//! Files that are often in the place of models, recognised by how they begin.

/// Bytes from which files are recognised.
pub(crate) const HEAD: usize = 512;

/// The first bytes of files, with a description and advice.
const KINDS: &[(&[u8], &str)] = &[
    (
        b"version https://git-lfs",
        "It is a pointer of Git LFS, which stands for the file: run `git lfs pull` in its repository",
    ),
    (b"<!DOCTYPE", HTML),
    (b"<!doctype", HTML),
    (b"<html", HTML),
    (b"<HTML", HTML),
    (b"<?xml", "It is XML, such as a server's answer to a download that was refused: download the file again"),
    (b"\x1f\x8b", "It is compressed by gzip: unpack it first, by gunzip or tar"),
    (b"BZh", "It is compressed by bzip2: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "It is compressed by zstd: unpack it first"),
    (b"\xfd7zXZ\0", "It is compressed by xz: unpack it first"),
    (b"\x04\x22\x4d\x18", "It is compressed by lz4: unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "It is a 7z archive: unpack it first"),
    (b"Rar!\x1a\x07", "It is a RAR archive: unpack it first"),
    (b"PK\x03\x04", "It is a zip archive: unpack it first (mxrt serve takes packed models)"),
    (b"\x89HDF", "It is HDF5, such as Keras writes: convert the model where it was made"),
    (b"\x93NUMPY", "It is an array of numpy: read it with mx.nd.array(numpy.load(path))"),
    (b"\x89PNG", IMAGE),
    (b"\xff\xd8\xff", IMAGE),
    (b"GIF8", IMAGE),
    (b"%PDF", "It is a PDF"),
    (b"\x7fELF", "It is a program or a library"),
    (b"\xef\xbb\xbf", MARK),
    (b"\xff\xfe", MARK),
    (b"\xfe\xff", MARK),
    (b"\x80\x02", PICKLE),
    (b"\x80\x03", PICKLE),
    (b"\x80\x04", PICKLE),
    (b"\x80\x05", PICKLE),
    (b"404: Not Found", REFUSED),
    (b"{\"message\"", REFUSED),
    (b"{\"error\"", REFUSED),
    (b"<", "It is HTML or XML, such as a server's answer to a download that failed: download the file again"),
];
/// Bytes at a position, with a description and advice: those of files that are no text.
const INSIDE: &[(usize, &[u8], &str)] = &[
    (0, b"\x0a\x23\xd7\xce", "It is RecordIO: read it with mx.recordio or an iterator of mx.io"),
    (4, b"TFL3", "It is a model of TensorFlow Lite: convert the model where it was made"),
    (7, b"\0{\"", "It looks like a safetensors file: pass the .params file that MXNet wrote"),
    (257, b"ustar", "It is a tar archive: unpack it first (mxrt serve takes packed models)"),
];
/// Ends of the name of the first entry of a zip archive, with a description and advice.
const ZIPPED: &[(&[u8], &str)] = &[
    (
        b"data.pkl",
        "It is a file of PyTorch: pass the files that MXNet wrote, or read it with torch.load and write its \
         arrays with mx.nd.save",
    ),
    (b".npy", "It holds arrays of numpy (.npz): read them with numpy.load and write them with mx.nd.save"),
];
pub(crate) const IMAGE: &str = "It is an image";
const HTML: &str = "It is HTML, such as the page of a download that failed: download the file again";
const REFUSED: &str = "It is a server's answer to a download that failed: download the file again";
const MARK: &str = "It begins with a byte order mark, as editors and shells write it: copy the file again, as bytes";
const PICKLE: &str = "It is a pickle of Python: read it with pickle.load, if you trust where it is from";
const ONNX: &str = "It looks like an ONNX model: pass the files that MXNet wrote";

/// Describes a file of another kind by its first bytes, with advice; `None` for what is unknown.
pub fn recognise(head: &[u8]) -> Option<&'static str> {
    let text = head.trim_ascii_start();
    if let Some((_, advice)) = first_entry(head).and_then(|name| ZIPPED.iter().find(|(end, _)| name.ends_with(end))) {
        return Some(advice);
    }
    // A pointer of Git LFS is recognised by its first word where no more was read.
    let known = KINDS.iter().find(|(start, _)| {
        text.starts_with(start) || (text.len() >= 8 && text.len() < start.len() && start.starts_with(text))
    });
    let inside = INSIDE.iter().find(|(at, bytes, _)| head.get(*at..).is_some_and(|rest| rest.starts_with(bytes)));
    // The version of ONNX, and then the name of who wrote it, or the graph.
    let onnx = matches!(head, [0x08, 3..=20, 0x12 | 0x3a, ..]);
    let found = known.map(|(_, advice)| *advice).or(onnx.then_some(ONNX));
    found.or(inside.map(|(_, _, advice)| *advice))
}

/// The name of the first entry of a zip archive.
fn first_entry(head: &[u8]) -> Option<&[u8]> {
    let header = head.strip_prefix(b"PK\x03\x04")?;
    let length = u16::from_le_bytes([*header.get(22)?, *header.get(23)?]);
    header.get(26..)?.get(..length.into())
}

#[cfg(test)]
mod tests {
    use super::recognise;

    /// The beginning of a zip archive.
    fn zip(first: &str) -> Vec<u8> {
        let lengths = [first.len() as u8, 0, 0, 0];
        [b"PK\x03\x04", [0; 22].as_slice(), &lengths, first.as_bytes(), b"content"].concat()
    }

    #[test]
    fn files_of_others_are_recognised_by_their_first_bytes() {
        for (head, word) in [
            (&b"version https://git-lfs.github.com/spec/v1\n"[..], "Git LFS"),
            (b"version ", "Git LFS"),
            (b"\n <!DOCTYPE html>", "HTML"),
            (b"\x1f\x8b\x08\0", "gzip"),
            (b"PK\x03\x04", "zip"),
            (&zip("model/part.txt"), "zip"),
            (&zip("archive/data.pkl"), "torch.load"),
            (&zip("arr_0.npy"), "numpy.load"),
            (b"\x08\x07\x12\x07pytorch", "ONNX"),
            (b"\x80\x04\x95", "pickle"),
            (b"\xfd7zXZ\0\0", "xz"),
            (b"\x18\0\0\0TFL3", "TensorFlow Lite"),
            (b"\x40\0\0\0\0\0\0\0{\"fc_weight\"", "safetensors"),
            (&[[0; 257].as_slice(), b"ustar"].concat(), "tar"),
            (b"\x0a\x23\xd7\xce\x08\0\0\0", "RecordIO"),
            (b"\xef\xbb\xbf{}", "byte order mark"),
            (b"<center>403 Forbidden</center>", "HTML"),
            (b"404: Not Found", "download"),
        ] {
            assert!(recognise(head).is_some_and(|advice| advice.contains(word)), "{head:?}");
        }
    }

    #[test]
    fn what_mxnet_writes_is_not_taken_for_something_else() {
        for head in [&b"{\"nodes\": []}"[..], b"{\"attr\":{\"a\": 1}}", b"\x12\x01\0\0\0\0\0\0", b"", b"version"] {
            assert_eq!(recognise(head), None, "{head:?}");
        }
    }
}
