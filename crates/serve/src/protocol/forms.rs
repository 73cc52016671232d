//! Bodies in the form of clients of MXNet Model Server: forms with a part for each input, and JSON
//! without shapes.

use super::{request::MAX_AXES, short};
use memchr::memmem::find;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Longest boundary that RFC 2046 allows.
const BOUNDARY: usize = 70;

/// Value of an input in a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// name of the input; empty if the body does not give it
    pub name: String,
    /// bytes of the value
    pub content: &'a [u8],
    /// whether the content is JSON
    pub json: bool,
}

/// Reads a body of `multipart/form-data`, at most `most` parts. The error is a message for the
/// client.
pub fn multipart<'a>(content_type: &str, body: &'a [u8], most: usize) -> Result<Vec<Field<'a>>, String> {
    let boundary = parameter(content_type, "boundary").filter(|boundary| (1..=BOUNDARY).contains(&boundary.len()));
    let boundary = boundary.ok_or_else(|| {
        format!("multipart/form-data without a boundary of 1 to {BOUNDARY} characters in the content type")
    })?;
    let line = format!("--{boundary}").into_bytes();
    let cut = || "multipart/form-data: the body ends within a part".to_owned();
    let start = find(body, &line).ok_or_else(|| format!("multipart/form-data: there is no line --{boundary}"))?;
    let mut rest = &body[start + line.len()..];
    let separator = [b"\r\n", &line[..]].concat();
    let mut fields = Vec::new();
    while !rest.starts_with(b"--") {
        if fields.len() == most {
            return Err(format!("multipart/form-data: more than {most} parts; the model has as many inputs"));
        }
        let head = find(rest, b"\r\n\r\n").ok_or_else(cut)?;
        let end = head + 4 + find(&rest[head + 4..], &separator).ok_or_else(cut)?;
        fields.push(part(&rest[..head], &rest[head + 4..end])?);
        rest = &rest[end + separator.len()..];
    }
    Ok(fields)
}

/// Reads a part of a form with these headers.
fn part<'a>(head: &[u8], content: &'a [u8]) -> Result<Field<'a>, String> {
    let head = std::str::from_utf8(head).map_err(|_| "multipart/form-data: a header is not text")?;
    let header = |name: &str| {
        let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let name = header("content-disposition").and_then(|value| parameter(value, "name")).unwrap_or_default();
    let json = header("content-type").is_some_and(is_json);
    Ok(Field { name: name.to_owned(), content, json })
}

/// Returns whether a content type is JSON.
pub fn is_json(content_type: &str) -> bool {
    content_type.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Returns whether a content type is CSV.
pub fn is_csv(content_type: &str) -> bool {
    content_type.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/csv"))
}

/// Bytes that [`csv`] makes at most of a body.
pub fn csv_len(body: &[u8], row: Option<&[usize]>) -> usize {
    let numbers = 1 + body.iter().filter(|byte| matches!(byte, b',' | b'\n')).count();
    // Each number may begin and end a list of every axis, and has a comma.
    let lists = 2 * row.map_or(1, <[usize]>::len) + 1;
    body.len().saturating_add(numbers.saturating_mul(lists)).saturating_add(2)
}

/// Makes lists of JSON of lines of CSV: a list for each row, nested by the extents of a row if they
/// are given. They are appended to `lists`, which has room for [`csv_len`] bytes. The error is a
/// message for the client.
pub fn csv(body: &[u8], row: Option<&[usize]>, mut lists: String) -> Result<String, String> {
    let text = std::str::from_utf8(body).map_err(|_| "the CSV is not UTF-8".to_owned())?;
    // Spreadsheets begin a file with the mark of its byte order.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let wanted = row.and_then(|row| row.iter().try_fold(1_usize, |all, extent| all.checked_mul(*extent)));
    lists.push('[');
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    for (number, line) in lines {
        let columns = line.split(',').count();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != columns) {
            return Err(format!("line {} of the CSV has {columns} columns; expected {wanted}", number + 1));
        }
        lists.push_str(if lists.len() > 1 { ",[" } else { "[" });
        let inner = row.filter(|row| row.len() > 1);
        for (column, cell) in line.split(',').enumerate() {
            let cell = cell.trim();
            if cell.parse::<f64>().is_err() {
                let (line, column) = (number + 1, column + 1);
                return Err(format!(
                    "line {line}, column {column} of the CSV is '{}', which is no number",
                    short(cell)
                ));
            }
            // The inner lists that begin or end at this number.
            let sizes = || inner.into_iter().flat_map(|row| (1..row.len()).map(|axis| row[axis..].iter().product()));
            let begins = sizes().filter(|size: &usize| column % size == 0).count();
            let ends = sizes().filter(|size: &usize| (column + 1) % size == 0).count();
            lists.push_str(if column > 0 { "," } else { "" });
            lists.extend(std::iter::repeat_n('[', begins));
            lists.push_str(cell);
            lists.extend(std::iter::repeat_n(']', ends));
        }
        lists.push(']');
    }
    lists.push(']');
    if lists.len() == 2 { Err("the CSV has no line".to_owned()) } else { Ok(lists) }
}

/// Returns whether a content type is `multipart/form-data`.
pub fn is_form(content_type: &str) -> bool {
    content_type.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("multipart/form-data"))
}

/// Returns the value of a parameter in a header, without quotes.
fn parameter<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let mut parts = header.split(';').skip(1).filter_map(|part| part.split_once('='));
    parts.find(|(known, _)| known.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().trim_matches('"'))
}

/// Reads JSON: lists of numbers for the only input, or an object with the lists of at most `most`
/// inputs by name, which may be the only member of a list. The error is a message for the client.
pub fn json(body: &[u8], most: usize) -> Result<Vec<Field<'_>>, String> {
    let wrong = |error: serde_json::Error| format!("the JSON of the body: {error}");
    let text = std::str::from_utf8(body).map_err(|_| "the JSON of the body is not UTF-8".to_owned())?;
    let whole: &RawValue = serde_json::from_str(text).map_err(wrong)?;
    let object = text.trim_start().strip_prefix('[').unwrap_or(text).trim_start().starts_with('{');
    if !object {
        return Ok(vec![Field { name: String::new(), content: whole.get().as_bytes(), json: true }]);
    }
    let mut text = serde_json::Deserializer::from_str(whole.get());
    text.deserialize_any(Objects(most)).map_err(wrong)
}

/// Longest name of an input that is copied; no model has a longer one.
const MOST_NAME: usize = 16 << 10;

/// Name of an input in an object.
struct InputName(String);

impl<'de> Deserialize<'de> for InputName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<InputName, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = InputName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an input")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<InputName, E> {
                match name.len() {
                    length if length > MOST_NAME => {
                        Err(E::custom(format!("a name of {length} bytes is none of an input")))
                    }
                    _ => Ok(InputName(name.to_owned())),
                }
            }
        }
        from.deserialize_str(Name)
    }
}

/// Deserializer of an object, or of a list with one object.
struct Objects(usize);

impl<'de> Visitor<'de> for Objects {
    type Value = Vec<Field<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lists of numbers, or an object with the inputs by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields: Vec<Field<'de>> = Vec::new();
        while let Some(InputName(name)) = map.next_key::<InputName>()? {
            if fields.len() == self.0 {
                return Err(A::Error::custom(format!("more than {} inputs, which the model has", self.0)));
            }
            if fields.iter().any(|field| field.name == name) {
                return Err(A::Error::custom(format!("the input '{}' is given twice", short(&name))));
            }
            let value = map.next_value::<&'de RawValue>()?;
            fields.push(Field { name, content: value.get().as_bytes(), json: true });
        }
        Ok(fields)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let only = list.next_element::<&'de RawValue>()?.ok_or_else(|| A::Error::custom("an empty list"))?;
        if list.next_element::<serde::de::IgnoredAny>()?.is_some() {
            return Err(A::Error::custom("several objects in one list: send a request for each"));
        }
        let mut inner = serde_json::Deserializer::from_str(only.get());
        inner.deserialize_any(Objects(self.0)).map_err(A::Error::custom)
    }
}

/// Returns the shape of nested lists, by the first list of each level. The other lists are checked
/// when their elements are read.
pub fn extents(text: &str) -> Result<Vec<usize>, String> {
    let (mut shape, mut open, mut in_word) = (Vec::new(), Vec::new(), false);
    for byte in text.bytes() {
        match byte {
            b'[' => {
                count(&mut open);
                if open.len() == MAX_AXES {
                    return Err(format!("the lists are nested deeper than {MAX_AXES}"));
                }
                open.push(0);
                if shape.len() < open.len() {
                    shape.push(None);
                }
            }
            b']' => {
                if let (Some(elements), Some(extent)) = (open.pop(), shape.get_mut(open.len())) {
                    extent.get_or_insert(elements);
                }
            }
            b',' | b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => {
                if !in_word {
                    count(&mut open);
                }
                in_word = true;
                continue;
            }
        }
        in_word = false;
    }
    let shape: Option<Vec<usize>> = shape.into_iter().collect();
    shape.filter(|shape| !shape.is_empty()).ok_or_else(|| "expected lists of numbers".to_owned())
}

/// Counts an element of the innermost open list.
fn count(open: &mut [usize]) {
    if let Some(innermost) = open.last_mut() {
        *innermost += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "multipart/form-data; boundary=\"X\"";

    fn field<'a>(name: &str, content: &'a str, json: bool) -> Field<'a> {
        Field { name: name.to_owned(), content: content.as_bytes(), json }
    }

    #[test]
    fn parts_of_a_form_are_read_without_their_headers() {
        let body = "before\r\n--X\r\nContent-Disposition: form-data; name=\"a\"; filename=\"k.jpg\"\r\n\
            Content-Type: image/jpeg\r\n\r\nJPEG\r\n--X\r\ncontent-disposition: form-data; name=b\r\n\
            content-type: application/json; charset=utf-8\r\n\r\n[1]\r\n--X--\r\n";
        let read = multipart(FORM, body.as_bytes(), 2);
        assert_eq!(read, Ok(vec![field("a", "JPEG", false), field("b", "[1]", true)]));
        let error = multipart(FORM, body.as_bytes(), 1).expect_err("an error");
        assert!(error.contains("more than 1 parts"), "{error}");
    }

    #[test]
    fn a_form_that_is_cut_anywhere_is_an_error() {
        let body = b"--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nJPEG\r\n--X--";
        for end in 0..body.len() - 2 {
            assert!(multipart(FORM, &body[..end], 9).is_err(), "{end}");
        }
        assert_eq!(multipart(FORM, body, 9), Ok(vec![field("a", "JPEG", false)]));
        assert!(multipart("multipart/form-data", body, 9).is_err());
        assert!(multipart(&format!("multipart/form-data; boundary={}", "X".repeat(71)), body, 9).is_err());
    }

    #[test]
    fn json_is_lists_or_an_object_of_lists() {
        assert_eq!(json(b" [[1, 2]]", 1), Ok(vec![field("", "[[1, 2]]", true)]));
        let both = Ok(vec![field("a", "[1]", true), field("b", "[[2]]", true)]);
        assert_eq!(json(br#"{"a": [1], "b": [[2]]}"#, 2), both);
        assert_eq!(json(br#"[{"a": [1], "b": [[2]]}]"#, 2), both);
        for (wrong, words) in [
            (&br#"{"a": [1], "b": [2]}"#[..], "more than 1 inputs"),
            (br#"{"a": [1]"#, "EOF"),
            (br#"[{"a": [1]}, {"a": [1]}]"#, "a request for each"),
            (b"\xff", "UTF-8"),
        ] {
            let error = json(wrong, 1).expect_err("an error");
            assert!(error.contains(words), "{error}");
        }
        assert!(json(br#"{"a": [1], "a": [2]}"#, 2).expect_err("an error").contains("given twice"));
    }

    #[test]
    fn lines_of_csv_are_rows_in_the_extents_of_the_input() {
        assert_eq!(csv(b"1, 2.5\r\n3,4\n\n", None, String::new()).as_deref(), Ok("[[1,2.5],[3,4]]"));
        assert_eq!(csv(b"1,2,3,4", Some(&[1, 2, 2]), String::new()).as_deref(), Ok("[[[[1,2],[3,4]]]]"));
        for (body, words) in [
            (&b"1,2\n3"[..], "line 2 of the CSV has 1 columns; expected 2"),
            (b"1,two", "line 1, column 2 of the CSV is 'two'"),
            (b"\n", "no line"),
            (b"\xff", "UTF-8"),
        ] {
            let error = csv(body, Some(&[2]), String::new()).expect_err("an error");
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn lists_of_csv_have_at_most_the_bytes_that_are_charged() {
        for body in ["1", "1\n2\n", "1\n2", "1.5,2\n3,4\n", ",\n"] {
            for row in [None, Some(&[1][..]), Some(&[2]), Some(&[1; 15]), Some(&[1, 2, 1])] {
                let most = csv_len(body.as_bytes(), row);
                let made = csv(body.as_bytes(), row, String::new()).unwrap_or_default();
                assert!(made.len() <= most, "{body:?} {row:?}: {} > {most}", made.len());
            }
        }
    }

    #[test]
    fn shapes_are_those_of_the_first_lists() {
        assert_eq!(extents("[[1, 2.5e1,3], [4,5,6]]"), Ok(vec![2, 3]));
        assert_eq!(extents("[[[1]],[[2]]]"), Ok(vec![2, 1, 1]));
        assert_eq!(extents("[]"), Ok(vec![0]));
        assert_eq!(extents("[true,false]"), Ok(vec![2]));
        assert!(extents("1").is_err());
        assert!(extents(&"[".repeat(40)).is_err());
    }
}
