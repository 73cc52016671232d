//! Elements of the type BYTES: as JSON strings, and in the binary form of the protocol, where each
//! element is its length in four bytes, little-endian, and its bytes.

use super::numbers::Position;
use super::{WriteError, room, short};
use mxrt_tensor::Shape;

/// Bytes of the length of an element.
pub(crate) const LENGTH: usize = 4;

/// Returns a bound on the bytes of the elements in `text`: an element has quotes and a comma there,
/// and four bytes for its length in the binary form.
pub fn bound(text: &str, shape: &Shape) -> usize {
    text.len().saturating_add(shape.size())
}

/// Reads `text`, a value in JSON's grammar, and appends its elements in the binary form. They are
/// one flat list, or nested lists with the tensor's shape.
pub fn read(text: &str, shape: &Shape, to: &mut Vec<u8>) -> Result<(), String> {
    let (mut place, wanted) = (Position::new(shape), shape.size());
    let (mut read, mut rest) = (0, text);
    while let Some(first) = rest.bytes().next() {
        let mut length = 1;
        match first {
            b' ' | b'\t' | b'\n' | b'\r' | b',' => {}
            b'[' => place.open()?,
            b']' => place.close()?,
            b'"' => {
                length = end_of_string(rest);
                place.element()?;
                if read == wanted {
                    return Err(format!("'data' has more than {wanted} elements"));
                }
                let element: String =
                    serde_json::from_str(&rest[..length]).map_err(|error| format!("element {read}: {error}"))?;
                push(element.as_bytes(), to).map_err(|error| format!("element {read}: {error}"))?;
                read += 1;
            }
            _ => {
                let end = rest.find([',', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(rest.len());
                return Err(format!("element {read} is {}, which is no string", short(&rest[..end])));
            }
        }
        rest = &rest[length..];
    }
    if read == wanted { Ok(()) } else { Err(format!("'data' has {read} elements; the shape says {wanted}")) }
}

/// Returns the length of the string that `text` begins with, with its quotes.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// Appends an element in the binary form.
pub(crate) fn push(element: &[u8], to: &mut Vec<u8>) -> Result<(), String> {
    let length = u32::try_from(element.len()).map_err(|_| "it is longer than 4 GiB".to_owned())?;
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(element);
    Ok(())
}

/// Iterator over elements in the binary form. Bytes that are no element are an error, and the end.
struct Elements<'a>(&'a [u8]);

impl<'a> Iterator for Elements<'a> {
    type Item = Result<&'a [u8], ()>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let element = self
            .0
            .split_first_chunk::<LENGTH>()
            .and_then(|(length, rest)| rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?));
        match element {
            Some((element, rest)) => {
                self.0 = rest;
                Some(Ok(element))
            }
            None => {
                self.0 = &[];
                Some(Err(()))
            }
        }
    }
}

/// Checks that these bytes are the elements of a tensor of this shape.
pub fn check(bytes: &[u8], shape: &Shape) -> Result<(), String> {
    let mut count = 0;
    for element in Elements(bytes) {
        element.map_err(|()| format!("element {count} is cut: it is four bytes with its length, and its bytes"))?;
        count += 1;
    }
    let wanted = shape.size();
    if count == wanted { Ok(()) } else { Err(format!("the data has {count} strings; the shape says {wanted}")) }
}

/// Writes elements in the binary form as one flat list of JSON.
pub fn write(bytes: &[u8], to: &mut Vec<u8>) -> Result<(), WriteError> {
    room(to, 2)?;
    to.push(b'[');
    for (number, element) in Elements(bytes).enumerate() {
        let text = element.ok().and_then(|element| std::str::from_utf8(element).ok());
        let no_text = || WriteError::Wrong(format!("element {number} is no UTF-8 text: ask for binary data"));
        let text = text.ok_or_else(no_text)?;
        // The longest escape of a byte has six.
        room(to, text.len().saturating_mul(6).saturating_add(4))?;
        if number > 0 {
            to.push(b',');
        }
        serde_json::to_writer(&mut *to, text).map_err(|error| WriteError::Wrong(error.to_string()))?;
    }
    to.push(b']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(text: &str, shape: &[usize]) -> Result<Vec<u8>, String> {
        let (shape, mut bytes) = (Shape::new(shape), Vec::new());
        read(text, &shape, &mut bytes)?;
        assert!(bytes.len() <= bound(text, &shape));
        check(&bytes, &shape).map(|()| bytes)
    }

    #[test]
    fn strings_are_read_flat_or_nested_and_written_as_they_were() {
        let wanted = b"\x01\0\0\0a\0\0\0\0\x03\0\0\0\"\\]\x04\0\0\0\xf0\x9f\x98\x80";
        assert_eq!(binary(r#"["a", "", "\"\\]", "\ud83d\ude00"]"#, &[4]), Ok(wanted.to_vec()));
        assert_eq!(binary(r#"[["a",""],["\"\\]","😀"]]"#, &[2, 2]), Ok(wanted.to_vec()));
        assert_eq!(binary("[]", &[0]), Ok(Vec::new()));
        let mut text = Vec::new();
        write(wanted, &mut text).expect("text");
        assert_eq!(std::str::from_utf8(&text), Ok(r#"["a","","\"\\]","😀"]"#));
    }

    #[test]
    fn what_is_no_string_or_too_many_is_an_error() {
        let wrong = [
            (r#"["a"]"#, "1 elements; the shape says 2"),
            (r#"["a", "b", "c"]"#, "more than 2"),
            (r#"["a", 7]"#, "element 1 is 7, which is no string"),
            (r#"["a", null]"#, "null, which is no string"),
            (r#"["a", "\ud800"]"#, "element 1:"),
            (r#"[["a", "b"]]"#, "the shape [2]"),
            (r#""a""#, "no list"),
        ];
        for (text, words) in wrong {
            assert!(binary(text, &[2]).is_err_and(|error| error.contains(words)), "{text}");
        }
    }

    #[test]
    fn binary_data_that_is_cut_or_miscounted_is_an_error() {
        let two = b"\x01\0\0\0a\x02\0\0\0bc";
        assert_eq!(check(two, &Shape::new(&[2])), Ok(()));
        assert!(check(two, &Shape::new(&[3])).is_err_and(|error| error.contains("has 2 strings; the shape says 3")));
        for end in (1..two.len()).filter(|end| *end != 5) {
            assert!(check(&two[..end], &Shape::new(&[2])).is_err_and(|e| e.contains("is cut")), "cut at {end}");
        }
        assert!(check(b"\xff\xff\xff\xff", &Shape::new(&[1])).is_err());
        assert!(write(b"\x01\0\0\0\xff", &mut Vec::new()).is_err());
    }
}
