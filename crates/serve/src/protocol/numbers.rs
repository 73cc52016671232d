//! Elements of tensors as JSON numbers.

use super::{WriteError, datatype_of, room, short};
use mxrt_tensor::{DType, Shape};

/// Element type that JSON can express.
trait Number: Sized {
    /// Parses a word. Returns `None` if it is no value of the type.
    fn parse(word: &str) -> Option<Self>;
    fn store(self, to: &mut [u8]);
    /// Writes the value. Returns false if JSON cannot express it.
    fn write(from: &[u8], to: &mut Vec<u8>) -> bool;
}

macro_rules! number {
    ($($type:ty: $usable:expr;)*) => {$(
        impl Number for $type {
            fn parse(word: &str) -> Option<$type> {
                let usable: fn(&$type) -> bool = $usable;
                word.parse().ok().filter(usable)
            }

            fn store(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_le_bytes());
            }

            fn write(from: &[u8], to: &mut Vec<u8>) -> bool {
                let usable: fn(&$type) -> bool = $usable;
                let Ok(bytes) = from.try_into() else { return false };
                let value = <$type>::from_le_bytes(bytes);
                usable(&value) && serde_json::to_writer(to, &value).is_ok()
            }
        }
    )*};
}

number! {
    u8: |_| true;
    u16: |_| true;
    u32: |_| true;
    u64: |_| true;
    i8: |_| true;
    i16: |_| true;
    i32: |_| true;
    i64: |_| true;
    f32: |value| value.is_finite();
    f64: |value| value.is_finite();
}

/// Element of type `BOOL`.
struct Truth(u8);

impl Number for Truth {
    fn parse(word: &str) -> Option<Truth> {
        match word {
            "true" => Some(Truth(1)),
            "false" => Some(Truth(0)),
            _ => None,
        }
    }

    fn store(self, to: &mut [u8]) {
        to.fill(self.0);
    }

    fn write(from: &[u8], to: &mut Vec<u8>) -> bool {
        to.extend_from_slice(if from == [0] { b"false" } else { b"true" });
        true
    }
}

/// Reads `text`, a value in JSON's grammar, into the elements of a tensor.
///
/// The elements are one flat list, or nested lists with the tensor's shape.
pub fn read(text: &str, dtype: DType, shape: &Shape, to: &mut [u8]) -> Result<(), String> {
    match dtype {
        DType::Bool => read_as::<Truth>(text, dtype, shape, to),
        DType::U8 => read_as::<u8>(text, dtype, shape, to),
        DType::U16 => read_as::<u16>(text, dtype, shape, to),
        DType::U32 => read_as::<u32>(text, dtype, shape, to),
        DType::U64 => read_as::<u64>(text, dtype, shape, to),
        DType::I8 => read_as::<i8>(text, dtype, shape, to),
        DType::I16 => read_as::<i16>(text, dtype, shape, to),
        DType::I32 => read_as::<i32>(text, dtype, shape, to),
        DType::I64 => read_as::<i64>(text, dtype, shape, to),
        DType::F32 => read_as::<f32>(text, dtype, shape, to),
        DType::F64 => read_as::<f64>(text, dtype, shape, to),
        DType::F16 | DType::BF16 => Err(only_binary(dtype)),
    }
}

/// Writes the elements of a tensor as one flat list.
pub fn write(bytes: &[u8], dtype: DType, to: &mut Vec<u8>) -> Result<(), WriteError> {
    match dtype {
        DType::Bool => write_as::<Truth>(bytes, dtype, to),
        DType::U8 => write_as::<u8>(bytes, dtype, to),
        DType::U16 => write_as::<u16>(bytes, dtype, to),
        DType::U32 => write_as::<u32>(bytes, dtype, to),
        DType::U64 => write_as::<u64>(bytes, dtype, to),
        DType::I8 => write_as::<i8>(bytes, dtype, to),
        DType::I16 => write_as::<i16>(bytes, dtype, to),
        DType::I32 => write_as::<i32>(bytes, dtype, to),
        DType::I64 => write_as::<i64>(bytes, dtype, to),
        DType::F32 => write_as::<f32>(bytes, dtype, to),
        DType::F64 => write_as::<f64>(bytes, dtype, to),
        DType::F16 | DType::BF16 => Err(only_binary(dtype).into()),
    }
}

fn only_binary(dtype: DType) -> String {
    format!("JSON has no {}: use binary data ('binary_data_size', 'binary_data')", datatype_of(dtype))
}

/// Position in the nested lists.
pub(super) struct Position<'a> {
    shape: &'a [usize],
    /// number of elements or lists read so far, for each list that is open
    counts: Vec<usize>,
    /// whether lists are nested; known after the first inner list or number
    nested: Option<bool>,
}

impl<'a> Position<'a> {
    pub(super) fn new(shape: &'a [usize]) -> Position<'a> {
        Position { shape, counts: Vec::new(), nested: None }
    }

    pub(super) fn open(&mut self) -> Result<(), String> {
        if let Some(outer) = self.counts.last_mut() {
            *outer += 1;
            if self.nested == Some(false) || self.counts.len() >= self.shape.len() {
                return Err(self.wrong());
            }
            self.nested = Some(true);
        }
        self.counts.push(0);
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<(), String> {
        let count = self.counts.pop();
        // The number of elements of a flat list is checked at the end.
        let fits = self.nested != Some(true) || count == self.shape.get(self.counts.len()).copied();
        if fits { Ok(()) } else { Err(self.wrong()) }
    }

    pub(super) fn element(&mut self) -> Result<(), String> {
        let depth = self.counts.len();
        let Some(count) = self.counts.last_mut() else { return Err("'data' is no list".to_owned()) };
        *count += 1;
        let nested = *self.nested.get_or_insert(false);
        if nested && depth != self.shape.len() { Err(self.wrong()) } else { Ok(()) }
    }

    fn wrong(&self) -> String {
        format!("the lists in 'data' do not have the shape {:?}", self.shape)
    }
}

fn read_as<T: Number>(text: &str, dtype: DType, shape: &Shape, to: &mut [u8]) -> Result<(), String> {
    let (wanted, width) = (shape.size(), dtype.size());
    let mut place = Position::new(shape);
    let mut elements = to.chunks_exact_mut(width);
    let mut read = 0;
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let mut length = 1;
        match first {
            b' ' | b'\t' | b'\n' | b'\r' | b',' => {}
            b'[' => place.open()?,
            b']' => place.close()?,
            b'"' => return Err(format!("'data' holds a string; expected numbers of the type {}", datatype_of(dtype))),
            b'{' => return Err("'data' holds an object; expected numbers".to_owned()),
            _ => {
                length = rest.find([',', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(rest.len()).max(1);
                let word = &rest[..length];
                place.element()?;
                let value = T::parse(word).ok_or_else(|| {
                    format!("element {read} is {}, which is no number of type {}", short(word), datatype_of(dtype))
                })?;
                let element = elements.next().ok_or_else(|| format!("'data' has more than {wanted} elements"))?;
                value.store(element);
                read += 1;
            }
        }
        rest = &rest[length..];
    }
    if read == wanted { Ok(()) } else { Err(format!("'data' has {read} elements; the shape says {wanted}")) }
}

fn write_as<T: Number>(bytes: &[u8], dtype: DType, to: &mut Vec<u8>) -> Result<(), WriteError> {
    /// Upper bound on the characters of a number, its comma and the end of the list.
    const LONGEST: usize = 40;
    room(to, LONGEST)?;
    to.push(b'[');
    for (i, element) in bytes.chunks_exact(dtype.size()).enumerate() {
        room(to, LONGEST)?;
        if i > 0 {
            to.push(b',');
        }
        if !T::write(element, to) {
            let words = format!("element {i} is NaN or infinite, which JSON has no number for: ask for binary data");
            return Err(words.into());
        }
    }
    to.push(b']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(text: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let shape = Shape::new(shape);
        let mut bytes = vec![0; shape.size() * 4];
        read(text, DType::F32, &shape, &mut bytes)?;
        Ok(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }

    #[test]
    fn lists_are_plain_or_have_the_shape() {
        assert_eq!(floats("[1, 2.5,-3e2 ,0]", &[2, 2]), Ok(vec![1.0, 2.5, -300.0, 0.0]));
        assert_eq!(floats("[[1,2],[3,4]]", &[2, 2]), Ok(vec![1.0, 2.0, 3.0, 4.0]));
        assert_eq!(floats("[[[7]]]", &[1, 1, 1]), Ok(vec![7.0]));
        assert_eq!(floats("[]", &[0]), Ok(vec![]));
        let wrong = ["[[1,2,3],[4]]", "[1,[2,3],4]", "[[1,2],3,4]", "[[[1],[2]],[[3],[4]]]", "[[1,2,3,4]]", "7"];
        for text in wrong {
            assert!(floats(text, &[2, 2]).is_err(), "{text}");
        }
        assert!(floats("[1,2,3]", &[2, 2]).is_err_and(|e| e.contains("3 elements; the shape says 4")));
        assert!(floats("[1,2,3,4,5]", &[2, 2]).is_err_and(|e| e.contains("more than 4")));
    }

    #[test]
    fn numbers_that_the_type_lacks_are_errors() {
        for text in ["[1e39]", "[-1e39]", "[null]", "[true]", "[\"1\"]", "[{}]"] {
            assert!(floats(text, &[1]).is_err(), "{text}");
        }
        let mut byte = [0];
        for text in ["[256]", "[-1]", "[1.0]", "[1e1]", "[18446744073709551616]"] {
            assert!(read(text, DType::U8, &Shape::new(&[1]), &mut byte).is_err(), "{text}");
        }
        read("[255]", DType::U8, &Shape::new(&[1]), &mut byte).expect("a byte");
        assert_eq!(byte, [255]);
        assert!(read("[1]", DType::F16, &Shape::new(&[1]), &mut [0, 0]).is_err_and(|e| e.contains("FP16")));
    }

    #[test]
    fn what_is_written_is_read_as_the_same_bits() {
        let values = [0.1f32, -0.0, f32::MIN_POSITIVE, f32::MAX, 1.0e-45, 16_777_217.0, 1.0 / 3.0];
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut text = Vec::new();
        write(&bytes, DType::F32, &mut text).expect("finite");
        let text = String::from_utf8(text).expect("text");
        let mut again = vec![0; bytes.len()];
        read(&text, DType::F32, &Shape::new(&[values.len()]), &mut again).expect("numbers");
        assert_eq!(again, bytes, "{text}");
        assert!(write(&f32::NAN.to_le_bytes(), DType::F32, &mut Vec::new()).is_err());
        let mut text = Vec::new();
        write(&[0, 1, 1], DType::Bool, &mut text).expect("truths");
        assert_eq!(text, b"[false,true,true]");
    }
}
