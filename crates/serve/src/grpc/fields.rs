//! Fields of a protobuf message, read in place: lists are never longer than their reader accepts.

use crate::refusal::Refusal;
use prost::encoding::{WireType, decode_key, decode_varint};

/// Value of a field, by its wire type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
    /// text, bytes, a message, or packed numbers
    Bytes(&'a [u8]),
}

/// Iterator over the fields of a message: their numbers and values, in the order of the message.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

/// Makes the refusal of a malformed message.
pub(crate) fn wrong(words: impl std::fmt::Display) -> Refusal {
    Refusal::invalid(format!("the message: {words}"))
}

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Refusal> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(|| wrong("it ends inside of a field"))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let bytes = self.bytes(N)?;
        bytes.try_into().map_err(|_| wrong("it ends inside of a field"))
    }

    fn field(&mut self) -> Result<(u32, Value<'a>), Refusal> {
        let (number, kind) = decode_key(&mut self.0).map_err(wrong)?;
        let value = match kind {
            WireType::Varint => Value::Varint(decode_varint(&mut self.0).map_err(wrong)?),
            WireType::ThirtyTwoBit => Value::Fixed32(self.fixed()?),
            WireType::SixtyFourBit => Value::Fixed64(self.fixed()?),
            WireType::LengthDelimited => {
                let length = decode_varint(&mut self.0).map_err(wrong)?;
                Value::Bytes(self.bytes(usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            WireType::StartGroup | WireType::EndGroup => return Err(wrong("it has a group, which proto3 has not")),
        };
        Ok((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Value<'a> {
    fn of_another_type() -> Refusal {
        wrong("a field has another type than in the protocol")
    }

    pub(crate) fn message(self) -> Result<&'a [u8], Refusal> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(Value::of_another_type()),
        }
    }

    pub(crate) fn text(self) -> Result<&'a str, Refusal> {
        std::str::from_utf8(self.message()?).map_err(|_| wrong("a text is not of UTF-8"))
    }

    pub(crate) fn varint(self) -> Result<u64, Refusal> {
        match self {
            Value::Varint(value) => Ok(value),
            _ => Err(Value::of_another_type()),
        }
    }

    /// Visits the numbers of a repeated field, which has one of them, or several packed.
    pub(crate) fn varints(self, mut take: impl FnMut(u64) -> Result<(), Refusal>) -> Result<(), Refusal> {
        match self {
            Value::Varint(value) => take(value),
            Value::Bytes(mut rest) => {
                while !rest.is_empty() {
                    take(decode_varint(&mut rest).map_err(wrong)?)?;
                }
                Ok(())
            }
            _ => Err(Value::of_another_type()),
        }
    }

    /// Visits the bytes of each number of a repeated field with elements of four or eight bytes.
    pub(crate) fn fixed<const N: usize>(self, mut take: impl FnMut(&[u8])) -> Result<(), Refusal> {
        match self {
            Value::Fixed32(bytes) if N == 4 => take(&bytes),
            Value::Fixed64(bytes) if N == 8 => take(&bytes),
            Value::Bytes(bytes) if bytes.len().is_multiple_of(N) => bytes.chunks_exact(N).for_each(take),
            _ => return Err(Value::of_another_type()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_their_order_or_refused() {
        let message = [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1d, 1, 2, 3, 4, 0x21, 1, 2, 3, 4, 5, 6, 7, 8];
        let read: Result<Vec<_>, _> = Fields(&message).collect();
        let wanted = [
            (1, Value::Varint(150)),
            (2, Value::Bytes(b"hi")),
            (3, Value::Fixed32([1, 2, 3, 4])),
            (4, Value::Fixed64([1, 2, 3, 4, 5, 6, 7, 8])),
        ];
        assert_eq!(read.expect("fields"), wanted);
        for end in (0..message.len()).filter(|end| ![0, 3, 7, 12].contains(end)) {
            assert!(Fields(&message[..end]).any(|field| field.is_err()), "cut at {end}");
        }
        for wrong in [&[0x0b][..], &[0x0c], &[0x00, 1], &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]] {
            assert!(Fields(wrong).all(|field| field.is_err()), "{wrong:?}");
        }
    }

    #[test]
    fn repeated_numbers_come_one_by_one_or_together() {
        let mut found = Vec::new();
        for value in [Value::Varint(300), Value::Bytes(&[1, 0xac, 0x02])] {
            value
                .varints(|value| {
                    found.push(value);
                    Ok(())
                })
                .expect("numbers");
        }
        assert_eq!(found, [300, 1, 300]);
        assert!(Value::Bytes(&[0xff]).varints(|_| Ok(())).is_err());
        assert!(Value::Bytes(&[1, 2, 3]).fixed::<4>(|_| ()).is_err());
        assert!(Value::Varint(1).fixed::<4>(|_| ()).is_err());
    }
}
