//! Arrays in numpy's format: `.npy`, and several by name in `.npz`.

use super::request::tensor_type;
use mxrt_tensor::{DType, TensorRef, TensorType};
use std::io::{Cursor, Read, Write};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Headers of longer text are none of numpy's.
const LONGEST_HEADER: usize = 1 << 16;
/// Arrays of a file.
const MOST_ARRAYS: usize = 1000;

/// What numpy calls the element types. BF16 has no name there.
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

/// An array of a file: its type, and its elements, row-major and little-endian.
#[derive(Debug, PartialEq, Eq)]
pub struct NpyArray<'a> {
    /// element type and shape, whose bytes are those of `bytes`
    pub tensor: TensorType,
    /// the elements
    pub bytes: &'a [u8],
}

/// Reads a `.npy`. The error is a text for the client.
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

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }`.
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
pub fn write(tensor: TensorRef<'_>, to: &mut Vec<u8>) -> Result<(), String> {
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
    let length = u16::try_from(head.len()).map_err(|_| "the shape is too long")?;
    to.extend_from_slice(MAGIC);
    to.extend_from_slice(&[1, 0]);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(head.as_bytes());
    to.extend_from_slice(tensor.bytes());
    Ok(())
}

/// Arrays of a `.npz` by name, each a `.npy` for [`read`]. At most `limit` bytes come out of it.
pub fn read_npz(file: &[u8], limit: usize) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut archive = zip::ZipArchive::new(Cursor::new(file)).map_err(|error| format!("this is no .npz: {error}"))?;
    if archive.len() > MOST_ARRAYS {
        return Err(format!("it has more than {MOST_ARRAYS} arrays"));
    }
    let mut arrays = Vec::new();
    let mut left = limit as u64;
    for number in 0..archive.len() {
        let entry = archive.by_index(number).map_err(|error| error.to_string())?;
        let name = entry.name().map_err(|error| error.to_string())?.into_owned();
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        let mut bytes = Vec::new();
        let read = entry.take(left + 1).read_to_end(&mut bytes).map_err(|error| format!("'{name}': {error}"))?;
        left = left.checked_sub(read as u64).ok_or_else(|| format!("its arrays have more than {limit} bytes"))?;
        arrays.push((name, bytes));
    }
    Ok(arrays)
}

/// Writes a `.npz`, without compression.
pub fn write_npz<'a>(arrays: impl Iterator<Item = (&'a str, TensorRef<'a>)>) -> Result<Vec<u8>, String> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, tensor) in arrays {
        let mut bytes = Vec::new();
        write(tensor, &mut bytes).map_err(|error| format!("output '{name}': {error}"))?;
        archive.start_file(format!("{name}.npy"), options).map_err(|error| error.to_string())?;
        archive.write_all(&bytes).map_err(|error| error.to_string())?;
    }
    archive.finish().map(Cursor::into_inner).map_err(|error| error.to_string())
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
        let arrays = read_npz(&file, 2000).expect("arrays");
        assert_eq!(arrays.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b/c"]);
        assert_eq!(read(&arrays[1].1).expect("an array").bytes, &bytes[..]);
        assert!(read_npz(&file, 1000).is_err_and(|error| error.contains("more than 1000 bytes")));
        for end in [0, 10, file.len() / 2, file.len() - 1] {
            assert!(read_npz(&file[..end], 2000).is_err(), "cut at {end}");
        }
    }
}
