//! Records of SageMaker's own algorithms, such as the linear learner: `x-recordio-protobuf`. Each
//! record has the features of one row, dense, or as keys and values.

mod writer;

use crate::grpc::fields::{Fields, Value, wrong};
use crate::refusal::Refusal;
use crate::refusal::room;
pub(crate) use writer::write;

/// First bytes of a record.
const MAGIC: [u8; 4] = 0xced7_230a_u32.to_le_bytes();
/// Bits of the second word that are the length of the record. The others mark parts of one.
const LENGTH: u32 = (1 << 29) - 1;

/// Content type of records.
pub(crate) const CONTENT_TYPE: &str = "application/x-recordio-protobuf";

/// Returns whether a content type is that of such records.
pub(crate) fn is_recordio(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case(CONTENT_TYPE) || kind.eq_ignore_ascii_case("x-recordio-protobuf")
}

/// Reads all records as rows of `columns` numbers; `None`: as many as the first record says.
/// Returns the number of columns, and the numbers as float32 in little-endian order. `charge` is
/// told of the bytes of each row before they are taken.
pub(crate) fn rows(
    mut body: &[u8],
    columns: Option<usize>,
    mut charge: impl FnMut(usize) -> Result<(), Refusal>,
) -> Result<(usize, Vec<u8>), Refusal> {
    let (mut columns, mut to) = (columns, Vec::new());
    while !body.is_empty() {
        let tensor = Tensor::of_record(record(&mut body)?)?;
        let said = tensor.columns()?;
        let wanted = *columns.get_or_insert(said);
        if said != wanted {
            return Err(wrong(format!("a record has {said} features; expected {wanted}")));
        }
        let bytes = wanted.checked_mul(4).ok_or_else(|| wrong("a record has too many features"))?;
        let count = tensor.count()?;
        if count > wanted {
            return Err(wrong(format!("a record has {count} values for {wanted} features")));
        }
        // A row, and the keys of its values.
        charge(bytes.saturating_add(count.saturating_mul(size_of::<usize>())))?;
        crate::refusal::room(&mut to, bytes)?;
        tensor.write(&mut to, bytes)?;
    }
    let columns = columns.filter(|_| !to.is_empty());
    columns.map(|columns| (columns, to)).ok_or_else(|| wrong("it has no record with features"))
}

/// Rows of a csr matrix, whose values are float32 in little-endian order.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CsrRows {
    pub(crate) values: Vec<u8>,
    pub(crate) columns: Vec<i64>,
    pub(crate) pointers: Vec<i64>,
}

/// Reads all records as rows of a csr matrix with `columns` columns. `charge` is told of the bytes
/// of each row before they are taken.
pub(crate) fn csr_rows(
    mut body: &[u8],
    columns: usize,
    mut charge: impl FnMut(usize) -> Result<(), Refusal>,
) -> Result<CsrRows, Refusal> {
    let mut rows = CsrRows { pointers: vec![0], ..CsrRows::default() };
    while !body.is_empty() {
        let tensor = Tensor::of_record(record(&mut body)?)?;
        let said = tensor.extent()?;
        if said.is_some_and(|said| said != columns) {
            return Err(wrong(format!("a record has {} features; expected {columns}", said.unwrap_or_default())));
        }
        let count = tensor.count()?;
        // A value, its column, and both while they are sorted; and a row pointer.
        charge(count.saturating_mul(28).saturating_add(8))?;
        let keys = tensor.keys(count, columns)?;
        let (mut row, mut number) = (Vec::new(), 0);
        room(&mut row, count)?;
        tensor.each(|value| {
            row.push((keys.get(number).copied().unwrap_or(number), value));
            number += 1;
        })?;
        row.sort_by_key(|(column, _)| *column);
        room(&mut rows.values, count.saturating_mul(size_of::<f32>()))?;
        room(&mut rows.columns, count)?;
        room(&mut rows.pointers, 1)?;
        rows.values.extend(row.iter().flat_map(|(_, value)| value.to_le_bytes()));
        rows.columns.extend(row.iter().map(|(column, _)| *column as i64));
        rows.pointers.push(rows.columns.len() as i64);
    }
    if rows.pointers.len() == 1 { Err(wrong("it has no record with features")) } else { Ok(rows) }
}

/// Takes the next record from the body.
fn record<'a>(body: &mut &'a [u8]) -> Result<&'a [u8], Refusal> {
    let cut = || wrong("the body ends inside of a record");
    let (head, rest) = body.split_first_chunk::<8>().ok_or_else(cut)?;
    if head[..4] != MAGIC {
        return Err(wrong("it has no record of RecordIO at its place"));
    }
    let word = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    if word & !LENGTH != 0 {
        return Err(wrong("a record is in several parts, which are not supported: write each row as one record"));
    }
    let length = word as usize;
    let content = rest.get(..length).ok_or_else(cut)?;
    // Records begin at multiples of four bytes. The last one may lack its padding.
    *body = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    Ok(content)
}

/// Features of a record, in its bytes.
#[derive(Default)]
struct Tensor<'a> {
    /// bytes of a value: 4 for float32 and int32, 8 for float64
    size: usize,
    is_integer: bool,
    message: &'a [u8],
}

impl<'a> Tensor<'a> {
    /// Finds the features `values` of a record, or the only ones that it has.
    fn of_record(record: &'a [u8]) -> Result<Tensor<'a>, Refusal> {
        let mut found: Option<Tensor<'a>> = None;
        for field in Fields(record) {
            let (1, entry) = field? else { continue };
            let (mut name, mut value) = ("", None);
            for field in Fields(entry.message()?) {
                match field? {
                    (1, text) => name = text.text()?,
                    (2, message) => value = Some(message.message()?),
                    _ => {}
                }
            }
            let (true, Some(value)) = (name == "values" || name.is_empty(), value) else {
                return Err(wrong(format!("the features '{}' are not supported; 'values' are", super::short(name))));
            };
            found = Some(Tensor::of_value(value)?);
        }
        found.ok_or_else(|| wrong("a record has no features"))
    }

    fn of_value(value: &'a [u8]) -> Result<Tensor<'a>, Refusal> {
        let (number, value) = Fields(value).next().ok_or_else(|| wrong("features without values"))??;
        let (size, is_integer) = match number {
            2 => (4, false),
            3 => (8, false),
            7 => (4, true),
            _ => return Err(wrong("features are float32, float64 or int32")),
        };
        Ok(Tensor { size, is_integer, message: value.message()? })
    }

    fn fields(&self, number: u32) -> impl Iterator<Item = Result<Value<'a>, Refusal>> + use<'a> {
        let of = move |field: Result<(u32, Value<'a>), Refusal>| match field {
            Ok((found, value)) => (found == number).then_some(Ok(value)),
            Err(refusal) => Some(Err(refusal)),
        };
        Fields(self.message).filter_map(of)
    }

    /// Returns the extent of a row: of its shape if it gives one, otherwise the number of values.
    fn columns(&self) -> Result<usize, Refusal> {
        self.extent()?.map_or_else(|| self.count(), Ok)
    }

    /// Returns the extent of a row, if it gives a shape.
    fn extent(&self) -> Result<Option<usize>, Refusal> {
        let mut last = None;
        for value in self.fields(3) {
            value?.varints(|extent| {
                last = Some(extent);
                Ok(())
            })?;
        }
        let extent =
            last.map(|extent| usize::try_from(extent).map_err(|_| wrong("the shape of a record is too large")));
        extent.transpose()
    }

    fn count(&self) -> Result<usize, Refusal> {
        let mut count = 0;
        self.each(|_| count += 1)?;
        Ok(count)
    }

    fn each(&self, mut take: impl FnMut(f32)) -> Result<(), Refusal> {
        for value in self.fields(1) {
            let value = value?;
            match (self.is_integer, self.size) {
                // Values of int32 are varints of 64 bits, where negative ones are sign-extended.
                (true, _) => value.varints(|number| {
                    take(number as i32 as f32);
                    Ok(())
                })?,
                (false, 4) => {
                    value.fixed::<4>(|bytes| take(f32::from_le_bytes(bytes.try_into().unwrap_or_default())))?
                }
                (false, _) => {
                    value.fixed::<8>(|bytes| take(f64::from_le_bytes(bytes.try_into().unwrap_or_default()) as f32))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the place of each value; none if the values fill the row.
    fn keys(&self, count: usize, columns: usize) -> Result<Vec<usize>, Refusal> {
        let mut keys = Vec::new();
        for value in self.fields(2) {
            value?.varints(|key| {
                if keys.len() == count {
                    return Err(wrong(format!("a record has more than {count} keys, and {count} values")));
                }
                crate::refusal::room(&mut keys, 1)?;
                keys.push(usize::try_from(key).unwrap_or(usize::MAX));
                Ok(())
            })?;
        }
        // A row of zeros has no values, and only its shape tells how many.
        let is_zeros = count == 0 && self.extent()?.is_some();
        if keys.is_empty() && count != columns && !is_zeros {
            return Err(wrong(format!("a record has {count} values for {columns} features")));
        }
        if !keys.is_empty() && keys.len() != count {
            return Err(wrong(format!("a record has {} keys and {count} values", keys.len())));
        }
        if let Some(key) = keys.iter().find(|key| **key >= columns) {
            return Err(wrong(format!("a record has the key {key}; there are {columns} features")));
        }
        Ok(keys)
    }

    /// Appends the row, `bytes` long. Numbers without keys fill it; keys say the places of others.
    fn write(&self, to: &mut Vec<u8>, bytes: usize) -> Result<(), Refusal> {
        let begin = to.len();
        let keys = self.keys(self.count()?, bytes / 4)?;
        to.resize(begin + bytes, 0);
        let mut number = 0;
        self.each(|value| {
            let place = begin + 4 * keys.get(number).copied().unwrap_or(number);
            to[place..place + 4].copy_from_slice(&value.to_le_bytes());
            number += 1;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames messages as records.
    fn framed(records: &[Vec<u8>]) -> Vec<u8> {
        let mut body = Vec::new();
        for record in records {
            body.extend(MAGIC);
            body.extend((record.len() as u32).to_le_bytes());
            body.extend(record);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        body
    }

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }

    fn row(tensor: &[u8]) -> Vec<u8> {
        field(1, &[field(1, b"values"), field(2, &field(2, tensor))].concat())
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn rows_are_dense_or_have_keys() {
        let dense = row(&field(1, &floats(&[1.0, -2.0, 0.5])));
        let sparse = row(&[field(1, &floats(&[4.0])), field(2, &[2]), field(3, &[3])].concat());
        let (columns, numbers) = rows(&framed(&[dense, sparse]), None, |_| Ok(())).expect("rows");
        assert_eq!((columns, numbers), (3, floats(&[1.0, -2.0, 0.5, 0.0, 0.0, 4.0])));
    }

    #[test]
    fn rows_of_a_csr_matrix_have_the_values_of_records_in_the_order_of_their_columns() {
        let dense = row(&field(1, &floats(&[1.0, -2.0, 0.5])));
        let sparse = row(&[field(1, &floats(&[4.0, 5.0])), field(2, &[2, 0])].concat());
        let rows = csr_rows(&framed(&[dense, sparse.clone()]), 3, |_| Ok(())).expect("rows");
        let wanted = CsrRows {
            values: floats(&[1.0, -2.0, 0.5, 5.0, 4.0]),
            columns: vec![0, 1, 2, 0, 2],
            pointers: vec![0, 3, 5],
        };
        assert_eq!(rows, wanted);
        for (columns, words) in [(2, "the key 2"), (0, "the key 2")] {
            let error = csr_rows(&framed(std::slice::from_ref(&sparse)), columns, |_| Ok(())).expect_err("an error");
            assert!(error.message.contains(words), "{error:?}");
        }
        assert!(csr_rows(&[], 3, |_| Ok(())).is_err());
    }

    #[test]
    fn a_row_of_zeros_has_a_shape_and_no_values() {
        let zeros = row(&[field(2, &[]), field(3, &[3])].concat());
        let sparse = row(&[field(1, &floats(&[4.0])), field(2, &[2]), field(3, &[3])].concat());
        let body = framed(&[zeros, sparse]);
        let dense = rows(&body, Some(3), |_| Ok(())).expect("rows");
        assert_eq!(dense, (3, floats(&[0.0, 0.0, 0.0, 0.0, 0.0, 4.0])));
        let rows = csr_rows(&body, 3, |_| Ok(())).expect("rows");
        assert_eq!((rows.columns, rows.pointers), (vec![2], vec![0, 0, 1]));
        let nothing = framed(&[row(&field(1, &[]))]);
        let error = csr_rows(&nothing, 3, |_| Ok(())).expect_err("neither values nor a shape");
        assert!(error.message.contains("0 values for 3 features"), "{error:?}");
    }

    #[test]
    fn wrong_records_are_refused_before_memory_is_taken() {
        let dense = row(&field(1, &floats(&[1.0, 2.0])));
        let huge =
            row(&[field(1, &floats(&[4.0])), field(2, &[1]), field(3, &[0xff, 0xff, 0xff, 0xff, 0x7f])].concat());
        let key = row(&[field(1, &floats(&[4.0])), field(2, &[9]), field(3, &[2])].concat());
        for (records, words) in [
            (vec![dense.clone(), row(&field(1, &floats(&[1.0])))], "a record has 1 features; expected 2"),
            (vec![huge], "features; expected 2"),
            (vec![key], "the key 9"),
            (vec![vec![]], "no features"),
        ] {
            let error = rows(&framed(&records), Some(2), |_| Ok(())).expect_err("an error");
            assert!(error.message.contains(words), "{error:?}");
        }
        let whole = framed(&[dense]);
        for end in 1..whole.len() {
            assert!(rows(&whole[..end], Some(2), |_| Ok(())).is_err(), "{end}");
        }
    }
}
