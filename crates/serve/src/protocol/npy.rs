//! Arrays in numpy's format: `.npy`, and several by name in `.npz`.

use super::request::tensor_type;
use super::{WriteError, room};
use mxrt_tensor::{DType, TensorRef, TensorType};
use std::io::{Cursor, Read, Write};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest header, in bytes, that is accepted. NumPy writes shorter ones.
const LONGEST_HEADER: usize = 1 << 16;
/// Largest number of arrays in a file, and below it the first bytes of each entry of its directory.
const MOST_ARRAYS: usize = 1000;
const ENTRY: &[u8] = b"PK\x01\x02";

/// NumPy's names of element types. It has none for BF16.
const NAMES: [(&str, DType); 12] = [
    ("|b1", DType::Bool),
    ("|u1", DType::U8),
    ("<u2", DType::U16),
    ("<u4", DType::U32),
    ("<u8", DType::U64),
    ("|i1", DType::I8),
    ("<i2", DType::I16),
    ("<i4", DType::I32),
    ("<i8", DType::I64),
    ("<f2", DType::F16),
    ("<f4", DType::F32),
    ("<f8", DType::F64),
];

/// Array of a file: its type, and its elements, row-major and little-endian.
#[derive(Debug, PartialEq, Eq)]
pub struct NpyArray<'a> {
    /// element type and shape, which need exactly the bytes of `bytes`
    pub tensor: TensorType,
    /// elements in the file
    pub bytes: &'a [u8],
}

/// Returns whether the bytes begin as a `.npy`, a `.npz` or another archive does.
pub fn is_file(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(b"PK")
}

/// Reads a `.npy`. The error is a message for the client.
pub fn read(file: &[u8]) -> Result<NpyArray<'_>, String> {
    let rest = file.strip_prefix(MAGIC).ok_or("this is no .npy: it does not begin with \\x93NUMPY")?;
    let (version, rest) = rest.split_at_checked(2).ok_or("the file ends in its head")?;
    let (length, rest) = match version[0] {
        1 => rest.split_at_checked(2).map(|(l, rest)| (usize::from(u16::from_le_bytes([l[0], l[1]])), rest)),
        2 | 3 => {
            rest.split_at_checked(4).map(|(l, rest)| (u32::from_le_bytes([l[0], l[1], l[2], l[3]]) as usize, rest))
        }
        other => return Err(format!("version {other} of the format is not known; expected 1, 2 or 3")),
    }
    .ok_or("the file ends in its head")?;
    if length > LONGEST_HEADER {
        return Err("the head of the array is too long".to_owned());
    }
    let (head, bytes) = rest.split_at_checked(length).ok_or("the file ends in its head")?;
    let head = std::str::from_utf8(head).map_err(|_| "the head of the array is no text")?;
    let tensor = header(head)?;
    if bytes.len() != tensor.bytes() {
        return Err(format!("{} bytes follow the head; type and shape make {}", bytes.len(), tensor.bytes()));
    }
    Ok(NpyArray { tensor, bytes })
}

/// Reads a header such as `{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }`.
fn header(text: &str) -> Result<TensorType, String> {
    let wrong = || "the head of the array is not as numpy writes it".to_owned();
    let value = |key: &str| {
        let place = text.find(&format!("'{key}'")).ok_or_else(wrong)?;
        let rest = text[place..].split_once(':').ok_or_else(wrong)?.1;
        Ok::<_, String>(rest.trim_start())
    };
    let name = value("descr")?.strip_prefix('\'').and_then(|rest| rest.split_once('\'')).ok_or_else(wrong)?.0;
    let dtype = NAMES.iter().find(|(known, _)| *known == name).map(|(_, dtype)| *dtype);
    let dtype =
        dtype.ok_or_else(|| format!("the type '{name}' is not supported: numbers of little-endian order are"))?;
    if !value("fortran_order")?.starts_with("False") {
        return Err("the array is in Fortran's order: save numpy.ascontiguousarray of it".to_owned());
    }
    let shape = value("shape")?.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or_else(wrong)?.0;
    let extents = shape.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let extents: Option<Vec<i64>> = extents.map(|extent| extent.parse().ok()).collect();
    tensor_type(dtype, &extents.ok_or_else(wrong)?)
}

/// Writes a `.npy`.
pub fn write(tensor: TensorRef<'_>, to: &mut Vec<u8>) -> Result<(), WriteError> {
    let name = NAMES.iter().find(|(_, dtype)| *dtype == tensor.dtype).map(|(name, _)| *name);
    let name = name.ok_or_else(|| format!("numpy has no {}", super::datatype_of(tensor.dtype)))?;
    let extents: &[usize] = tensor.shape;
    let shape: String = extents.iter().map(|extent| format!("{extent}, ")).collect();
    let shape = if extents.len() == 1 { shape.trim_end() } else { shape.trim_end_matches(", ") };
    let mut head = format!("{{'descr': '{name}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Elements begin at a multiple of 64 bytes.
    while !(MAGIC.len() + 4 + head.len() + 1).is_multiple_of(64) {
        head.push(' ');
    }
    head.push('\n');
    let length = u16::try_from(head.len()).map_err(|_| "the shape is too long".to_owned())?;
    room(to, MAGIC.len() + 4 + head.len() + tensor.bytes().len())?;
    to.extend_from_slice(MAGIC);
    to.extend_from_slice(&[1, 0]);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(head.as_bytes());
    to.extend_from_slice(tensor.bytes());
    Ok(())
}

/// Bounds on the arrays of a `.npz`.
pub struct Bounds<'a> {
    /// number of wanted arrays; one more is accepted
    pub arrays: usize,
    /// bytes of all arrays together
    pub bytes: usize,
    /// called before this many more bytes are taken; an error ends the reading
    pub charge: &'a mut dyn FnMut(usize) -> Result<(), String>,
}

/// Reads the entries of a `.npz` by name. Each is a `.npy` for [`read`].
pub fn read_npz(file: &[u8], bounds: Bounds<'_>) -> Result<Vec<(String, Vec<u8>)>, String> {
    // The archive's reader allocates memory for each entry.
    let entries = file.windows(ENTRY.len()).filter(|bytes| *bytes == ENTRY).count();
    if entries > MOST_ARRAYS {
        return Err(format!("it has more than {MOST_ARRAYS} arrays"));
    }
    let mut archive = zip::ZipArchive::new(Cursor::new(file)).map_err(|error| format!("this is no .npz: {error}"))?;
    if archive.len() > bounds.arrays + 1 {
        return Err(format!("it has {} arrays; {} are wanted", archive.len(), bounds.arrays));
    }
    let mut arrays = Vec::with_capacity(archive.len());
    let mut left = bounds.bytes as u64;
    for number in 0..archive.len() {
        let entry = archive.by_index(number).map_err(|error| error.to_string())?;
        let name = entry.name().map_err(|error| error.to_string())?.into_owned();
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        let size = entry.size();
        left = left.checked_sub(size).ok_or_else(|| format!("its arrays have more than {} bytes", bounds.bytes))?;
        let length = usize::try_from(size).map_err(|_| "an array is too large".to_owned())?;
        (bounds.charge)(length)?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(length)
            .map_err(|_| format!("there is no memory for the {length} bytes of '{name}'"))?;
        // Reads no more bytes than the archive announces.
        let read = entry.take(size).read_to_end(&mut bytes).map_err(|error| format!("'{name}': {error}"))?;
        if read as u64 != size {
            return Err(format!("'{name}' has {read} bytes, where the archive says {size}"));
        }
        arrays.push((name, bytes));
    }
    Ok(arrays)
}

/// Writes a `.npz` without compression.
pub fn write_npz<'a>(arrays: impl Iterator<Item = (&'a str, TensorRef<'a>)> + Clone) -> Result<Vec<u8>, WriteError> {
    /// Bytes of each array in the archive, without its elements and its name.
    const BESIDE: usize = 512;
    let wrong = |error: &dyn std::fmt::Display| WriteError::Wrong(error.to_string());
    let size = arrays.clone().map(|(name, tensor)| tensor.bytes().len() + 2 * name.len() + BESIDE).sum();
    let mut file = Vec::new();
    room(&mut file, size)?;
    let mut archive = zip::ZipWriter::new(Cursor::new(file));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, tensor) in arrays {
        let mut bytes = Vec::new();
        write(tensor, &mut bytes).map_err(|error| error.of(&format!("output '{name}'")))?;
        archive.start_file(format!("{name}.npy"), options).map_err(|error| wrong(&error))?;
        archive.write_all(&bytes).map_err(|error| wrong(&error))?;
    }
    archive.finish().map(Cursor::into_inner).map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxrt_tensor::Shape;

    #[test]
    fn what_is_written_is_read_again() {
        for extents in [&[][..], &[3], &[2, 3], &[0, 5]] {
            let shape = Shape::new(extents);
            let bytes: Vec<u8> = (0..shape.size() * 4).map(|byte| byte as u8).collect();
            let mut file = Vec::new();
            write(TensorRef::new(DType::F32, &shape, &bytes), &mut file).expect("an array");
            assert_eq!((file.len() - bytes.len()) % 64, 0);
            let array = read(&file).expect("an array");
            assert_eq!((array.tensor, array.bytes), (TensorType::new(DType::F32, shape), &bytes[..]));
            for end in 0..file.len() {
                assert!(read(&file[..end]).is_err(), "cut at {end}");
            }
        }
    }

    #[test]
    fn what_is_no_array_here_is_refused_with_a_word() {
        let with = |head: &str, bytes: usize| {
            let mut file = [MAGIC, &[1, 0], &(head.len() as u16).to_le_bytes(), head.as_bytes()].concat();
            file.resize(file.len() + bytes, 0);
            read(&file).map(|array| array.tensor).map_err(|error| error.to_string())
        };
        let head = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({shape}), }}")
        };
        assert!(with(&head("<f4", "False", "1,"), 4).is_ok());
        for (descr, order, shape, words) in [
            (">f4", "False", "1,", "not supported"),
            ("|O", "False", "1,", "not supported"),
            ("<f4", "True", "1,", "Fortran"),
            ("<f4", "False", "2,", "make 8"),
            ("<f4", "False", "-1,", "negative"),
            ("<f4", "False", "x", "as numpy writes"),
            ("<f4", "False", "4294967296, 4294967296", "larger than"),
        ] {
            let error = with(&head(descr, order, shape), 4).expect_err("refused");
            assert!(error.contains(words), "{error}");
        }
        assert!(with("{}", 0).is_err() && with("{'descr'", 0).is_err() && with("", 0).is_err());
    }

    #[test]
    fn several_arrays_have_names_and_a_bound() {
        let shape = Shape::new(&[100]);
        let bytes = vec![7; 400];
        let tensor = || TensorRef::new(DType::F32, &shape, &bytes);
        let file = write_npz([("a", tensor()), ("b/c", tensor())].into_iter()).expect("a file");
        let read_npz = |file: &[u8], bytes| {
            let mut charged = 0;
            let mut charge = |more: usize| {
                charged += more;
                Ok(())
            };
            let read = super::read_npz(file, Bounds { arrays: 2, bytes, charge: &mut charge });
            assert!(
                read.as_ref().is_ok_and(|arrays| arrays.iter().map(|(_, b)| b.len()).sum::<usize>() == charged)
                    || read.is_err()
            );
            read
        };
        let arrays = read_npz(&file, 2000).expect("arrays");
        assert_eq!(arrays.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b/c"]);
        assert_eq!(read(&arrays[1].1).expect("an array").bytes, &bytes[..]);
        assert!(read_npz(&file, 1000).is_err_and(|error| error.contains("more than 1000 bytes")));
        for end in [0, 10, file.len() / 2, file.len() - 1] {
            assert!(read_npz(&file[..end], 2000).is_err(), "cut at {end}");
        }
        let mut none = |_| Err("no room".to_owned());
        let full = super::read_npz(&file, Bounds { arrays: 2, bytes: 2000, charge: &mut none });
        assert_eq!(full, Err("no room".to_owned()));
        let many = [&file[..], &ENTRY.repeat(MOST_ARRAYS)].concat();
        assert!(read_npz(&many, 2000).is_err_and(|error| error.contains("more than 1000 arrays")));
        let several = write_npz((0..4).map(|_| ("a", tensor()))).expect_err("a name comes once");
        assert!(matches!(several, WriteError::Wrong(_)));
        let names = ["a", "b", "c", "d"];
        let several = write_npz(names.iter().map(|name| (*name, tensor()))).expect("a file");
        assert!(read_npz(&several, 9000).is_err_and(|error| error.contains("4 arrays; 2 are wanted")));
    }
}
