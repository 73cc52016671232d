//! Parsing of attributes from text.

use super::{AttrDef, AttrKind, AttrValue, bad, unknown};
use mxrt_engine::OpError;
use smallvec::SmallVec;

/// The value that a text stands for.
pub(super) fn parse_value(def: &AttrDef, text: &str) -> Result<AttrValue, OpError> {
    let wrong_format = || format_error(def, text);
    let value = match def.kind {
        AttrKind::OptInt
        | AttrKind::OptFloat
        | AttrKind::OptBool
        | AttrKind::OptShape
        | AttrKind::OptFloats
        | AttrKind::OptEnum(_)
        | AttrKind::OptDType(_)
            if text == "None" =>
        {
            AttrValue::None
        }
        // MXNet's tuples take it as well: a shape that is not known.
        AttrKind::Shape if text.trim() == "None" => AttrValue::None,
        AttrKind::Int | AttrKind::OptInt => AttrValue::Int(parse_int(text).ok_or_else(wrong_format)?),
        AttrKind::IntFrom(least) => AttrValue::Int(int_from(def, text, least)?),
        AttrKind::Float => AttrValue::Float(lone_number(def, text).ok_or_else(wrong_format)?),
        AttrKind::OptFloat => AttrValue::Float(optional_number(def, text).ok_or_else(wrong_format)?),
        AttrKind::FloatIn(low, high) => AttrValue::Float(float_in(def, text, low, high)?),
        AttrKind::Bool | AttrKind::OptBool => AttrValue::Bool(parse_bool(text).ok_or_else(wrong_format)?),
        AttrKind::Shape | AttrKind::OptShape => AttrValue::Ints(parse_items(def, text, parse_int)?),
        AttrKind::SparseShape => {
            let item = |t: &str| if t == "None" { Some(None) } else { parse_int(t).map(Some) };
            AttrValue::OptInts(parse_items(def, text, item)?)
        }
        AttrKind::Floats | AttrKind::OptFloats => AttrValue::Floats(parse_items(def, text, |t| number(def, t))?),
        AttrKind::Enum(words) | AttrKind::OptEnum(words) | AttrKind::DType(words) | AttrKind::OptDType(words) => {
            AttrValue::Word(one_of(def, text, words)?)
        }
        AttrKind::Str => AttrValue::Text(text.to_owned()),
        AttrKind::Object(_) => return Err(unknown(&[], def.name)),
    };
    Ok(value)
}

/// Parses each item of a tuple.
fn parse_items<T, Items>(def: &AttrDef, text: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Items, OpError>
where
    Items: FromIterator<T>,
{
    let items = tuple_items(text).and_then(|items| items.into_iter().map(parse).collect());
    items.ok_or_else(|| format_error(def, text))
}

/// A whole number that is at least `least`.
fn int_from(def: &AttrDef, text: &str, least: i64) -> Result<i64, OpError> {
    match parse_int(text).ok_or_else(|| format_error(def, text))? {
        value if value < least => {
            Err(bad(format!("value {value} for Parameter {} should be greater equal to {least}", def.name)))
        }
        value => Ok(value),
    }
}

/// A number from `low` to `high`.
fn float_in(def: &AttrDef, text: &str, low: f64, high: f64) -> Result<f64, OpError> {
    match lone_number(def, text).ok_or_else(|| format_error(def, text))? {
        value if value < low || value > high => {
            Err(bad(format!("value {value} for Parameter {} exceed bound [{low},{high}]", def.name)))
        }
        value => Ok(value),
    }
}

/// The word among `words` that the text is.
fn one_of(def: &AttrDef, text: &str, words: &'static [&'static str]) -> Result<&'static str, OpError> {
    words.iter().find(|word| **word == text).copied().ok_or_else(|| {
        bad(format!("Invalid Input: '{text}' for parameter {}, valid values are: {}", def.name, def.type_name()))
    })
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Decimal with an optional sign; surrounding spaces and a Python 2 `L` inside tuples are accepted.
fn parse_int(text: &str) -> Option<i64> {
    let text = text.trim();
    text.strip_prefix('+').unwrap_or(text).parse().ok()
}

/// A number outside of tuples. Spaces may precede it, and nothing may follow.
fn lone_number(def: &AttrDef, text: &str) -> Option<f64> {
    if text.ends_with(char::is_whitespace) { None } else { number(def, text) }
}

/// A number that `None` may stand for. It has no suffix.
fn optional_number(def: &AttrDef, text: &str) -> Option<f64> {
    let suffixed = text.contains(|c: char| c.is_ascii_digit()) && text.trim_end().ends_with(['f', 'F']);
    if suffixed { None } else { number(def, text) }
}

/// A number in the precision in which MXNet keeps the attribute.
fn number(def: &AttrDef, text: &str) -> Option<f64> {
    parse_float(text).map(|value| if def.wide { value } else { f64::from(value as f32) })
}

/// Decimal or exponent form, `nan`, `inf`, a trailing `f`; nothing that overflows a double.
fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let unsigned = lower.trim_start_matches(['+', '-']);
    if matches!(unsigned, "nan" | "inf" | "infinity") {
        return lower.parse().ok();
    }
    let digits = text.strip_suffix(['f', 'F']).unwrap_or(text);
    let value: f64 = digits.parse().ok()?;
    value.is_finite().then_some(value)
}

/// The items of `(a, b)`, `[a, b]`, `(a,)`, `()` or a bare `a`. Bracket kinds may be mixed, as in
/// MXNet.
fn tuple_items(text: &str) -> Option<SmallVec<[&str; 4]>> {
    let text = text.trim();
    let Some(inner) = text.strip_prefix(['(', '[']) else {
        let bare = !text.is_empty() && !text.contains([',', ')', ']', ' ']);
        return bare.then(|| smallvec::smallvec![text]);
    };
    let inner = inner.strip_suffix([')', ']'])?.trim();
    if inner.is_empty() {
        return Some(SmallVec::new());
    }
    let inner = inner.strip_suffix(',').unwrap_or(inner);
    Some(inner.split(',').map(|t| t.trim().strip_suffix('L').unwrap_or(t.trim())).collect())
}

fn format_error(def: &AttrDef, text: &str) -> OpError {
    bad(format!("Invalid Parameter format for {} expect {} but value='{text}'", def.name, def.type_name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attrs::Attrs;

    fn parse(kind: AttrKind, text: &str) -> Result<AttrValue, OpError> {
        parse_value(&AttrDef::required("p", kind, ""), text)
    }

    #[test]
    fn tuples_are_read_in_all_of_mxnets_spellings() {
        for text in ["(3,3)", "[3,3]", "(3, 3)", " ( 3 , 3 ) ", "(3L,3L)", "(3,3,)", "[3,3)"] {
            let got = parse(AttrKind::Shape, text);
            assert_eq!(got.ok(), Some(AttrValue::Ints(smallvec::smallvec![3, 3])), "{text}");
        }
        assert_eq!(parse(AttrKind::Shape, "3").ok(), Some(AttrValue::Ints(smallvec::smallvec![3])));
        assert_eq!(parse(AttrKind::Shape, "()").ok(), Some(AttrValue::Ints(smallvec::smallvec![])));
        assert_eq!(parse(AttrKind::Shape, "None").ok(), Some(AttrValue::None));
        assert!(parse(AttrKind::Floats, "None").is_err());
        for text in ["3,3", "(3 3)", "(3,3", "(3.5,3)", "{3,3}", "(a,b)", "", "(,)"] {
            assert!(parse(AttrKind::Shape, text).is_err(), "{text}");
        }
    }

    #[test]
    fn booleans_and_numbers_follow_the_parameter_parser() {
        for (text, want) in [("True", true), ("true", true), ("1", true), ("FALSE", false), ("0", false)] {
            assert_eq!(parse(AttrKind::Bool, text).ok(), Some(AttrValue::Bool(want)));
        }
        for text in ["yes", "2", "None", "", " True", "T"] {
            assert!(parse(AttrKind::Bool, text).is_err(), "{text}");
        }
        for text in ["1.0", "1e0", "0x10", "1L", "", "99999999999999999999"] {
            assert!(parse(AttrKind::Int, text).is_err(), "{text}");
        }
        assert_eq!(parse(AttrKind::Int, " +007 ").ok(), Some(AttrValue::Int(7)));
        assert_eq!(parse(AttrKind::Float, "1.5f").ok(), Some(AttrValue::Float(1.5)));
        assert_eq!(parse(AttrKind::Float, "-inf").ok(), Some(AttrValue::Float(f64::NEG_INFINITY)));
        // MXNet keeps attributes in single precision unless they are declared to be wide.
        assert_eq!(parse(AttrKind::Float, "0.1").ok(), Some(AttrValue::Float(f64::from(0.1f32))));
        assert_eq!(
            parse(AttrKind::Floats, "(0.1,)").ok(),
            Some(AttrValue::Floats(SmallVec::from_slice(&[f64::from(0.1f32)])))
        );
        let wide = parse_value(&AttrDef::required("p", AttrKind::OptFloat, "").wide(), "0.1");
        assert_eq!(wide.ok(), Some(AttrValue::Float(0.1)));
        for text in ["abc", "", "None", "1e400", "1.5 "] {
            assert!(parse(AttrKind::Float, text).is_err(), "{text}");
            assert!(parse(AttrKind::FloatIn(0.0, 2.0), text).is_err(), "{text}");
        }
        assert_eq!(parse(AttrKind::Float, " 1.5").ok(), Some(AttrValue::Float(1.5)));
        // A number that None may stand for is read by other means.
        assert_eq!(parse(AttrKind::OptFloat, " 1.5 ").ok(), Some(AttrValue::Float(1.5)));
        assert!(parse(AttrKind::OptFloat, "1.5f").is_err());
    }

    #[test]
    fn errors_name_the_parameter_and_what_was_expected() {
        let message = |r: Result<AttrValue, OpError>| r.err().map(|e| e.message.clone()).unwrap_or_default();
        assert_eq!(
            message(parse(AttrKind::Shape, "abc")),
            "Invalid Parameter format for p expect Shape(tuple) but value='abc'"
        );
        assert!(message(parse(AttrKind::Enum(&["max", "avg"]), "zzz")).contains("valid values are: {'avg', 'max'}"));
        assert!(message(parse(AttrKind::IntFrom(1), "0")).contains("should be greater equal to 1"));
        static DEFS: [AttrDef; 1] = [AttrDef::required("num_hidden", AttrKind::IntFrom(1), "")];
        let missing = Attrs::parse(&DEFS, []).err().map(|e| e.message.clone()).unwrap_or_default();
        assert_eq!(missing, "Required parameter num_hidden of int is not presented");
        let unknown = Attrs::parse(&DEFS, [("nope", "1")]).err().map(|e| e.message.clone()).unwrap_or_default();
        assert!(unknown.starts_with("Cannot find argument 'nope'"), "{unknown}");
    }

    #[test]
    fn hidden_attributes_are_never_parsed() {
        static DEFS: [AttrDef; 1] = [AttrDef::new("axis", AttrKind::Int, "1", "")];
        let attrs = Attrs::parse(&DEFS, [("__shape__", "(1,)"), ("axis", "2")]);
        assert_eq!(attrs.ok().map(|a| a.int("axis")), Some(2));
    }

    #[test]
    fn a_tuple_that_is_none_is_empty_and_is_saved_as_none() {
        static DEFS: [AttrDef; 1] = [AttrDef::new("axes", AttrKind::Shape, "(1, 2)", "")];
        let attrs = Attrs::parse(&DEFS, [("axes", "None")]).expect("it is a tuple");
        assert_eq!((attrs.ints("axes"), attrs.opt_ints("axes")), (&[][..], None));
        assert_eq!(attrs.pairs(), [("axes".to_owned(), "None".to_owned())]);
    }
}
