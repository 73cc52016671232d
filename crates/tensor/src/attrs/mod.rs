//! Attributes: strings in files and calls, typed values for operators and data iterators.
//!
//! The accepted spellings are those of MXNet's parameter parser.

mod parse;

use crate::DType;
use mxrt_engine::{FailureKind, OpError};
use parse::parse_value;
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The kind of values that an attribute takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttrKind {
    /// a whole number
    Int,
    /// a whole number, or `None`
    OptInt,
    /// a whole number of at least this much
    IntFrom(i64),
    /// a number
    Float,
    /// a number, or `None`
    OptFloat,
    /// a number within bounds, ends included
    FloatIn(f64, f64),
    /// `True`/`False`/`1`/`0`
    Bool,
    /// `True`/`False`, or `None`
    OptBool,
    /// a tuple of whole numbers; a bare number is a tuple of one, and `None` an empty one
    Shape,
    /// a tuple of whole numbers, or `None`
    OptShape,
    /// a tuple of whole numbers whose elements may be `None` (slice bounds)
    SparseShape,
    /// a tuple of numbers
    Floats,
    /// a tuple of numbers, or `None`
    OptFloats,
    /// one of these words
    Enum(&'static [&'static str]),
    /// one of these words, or `None`
    OptEnum(&'static [&'static str]),
    /// a dtype name out of these; `None` stands for "not given" where listed
    DType(&'static [&'static str]),
    /// a dtype name out of these, or `None`
    OptDType(&'static [&'static str]),
    /// any text
    Str,
    /// an object that is made from all attributes, including undeclared ones; not given by name
    Object(ObjectParser),
}

/// The object that an [`ObjectParser`] makes, or the reason why it cannot.
pub type ParsedObject = Result<Arc<dyn Any + Send + Sync>, OpError>;

/// Makes an object of the names and text of all attributes.
#[derive(Clone, Copy, Debug)]
pub struct ObjectParser(pub fn(&[(&str, &str)]) -> ParsedObject);

impl PartialEq for ObjectParser {
    fn eq(&self, other: &ObjectParser) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

/// An object, and the attributes that it was made of. Objects made of equal text are equal.
#[derive(Clone)]
pub struct AttrObject {
    given: Arc<[(String, String)]>,
    object: Arc<dyn Any + Send + Sync>,
}

impl PartialEq for AttrObject {
    fn eq(&self, other: &AttrObject) -> bool {
        self.given == other.given
    }
}

impl fmt::Debug for AttrObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AttrObject").field(&self.given).finish()
    }
}

/// Declaration of one attribute.
#[derive(Clone, Copy, Debug)]
pub struct AttrDef {
    /// name, as in files and calls
    pub name: &'static str,
    /// accepted values
    pub kind: AttrKind,
    /// value when not given, spelt as in files; without one the attribute is required
    pub default: Option<&'static str>,
    /// one line of documentation
    pub doc: &'static str,
    /// whether MXNet keeps its numbers in 64 bits: they are `long` and `double`
    pub wide: bool,
    /// whether MXNet's type of its numbers has no negative ones
    pub unsigned: bool,
    /// whether MXNet names it in the list of the operator's arguments
    pub listed: bool,
}

impl AttrDef {
    /// An attribute with a default.
    pub const fn new(name: &'static str, kind: AttrKind, default: &'static str, doc: &'static str) -> AttrDef {
        AttrDef { default: Some(default), ..AttrDef::required(name, kind, doc) }
    }

    /// An attribute that has to be given.
    pub const fn required(name: &'static str, kind: AttrKind, doc: &'static str) -> AttrDef {
        AttrDef { name, kind, default: None, doc, wide: false, unsigned: false, listed: true }
    }

    /// Declares that MXNet keeps the value in 64 bits.
    pub const fn wide(self) -> AttrDef {
        AttrDef { wide: true, ..self }
    }

    /// Declares that MXNet's type has no negative numbers.
    pub const fn unsigned(self) -> AttrDef {
        AttrDef { unsigned: true, ..self }
    }

    /// Declares that MXNet takes the attribute and does not list it: wrappers of other languages,
    /// which are generated from the list, have no argument for it.
    pub const fn unlisted(self) -> AttrDef {
        AttrDef { listed: false, ..self }
    }

    /// The type's name in error messages and docstrings, as MXNet writes it.
    pub fn type_name(&self) -> String {
        let (int, float) = if self.wide { ("long", "double") } else { ("int", "float") };
        match self.kind {
            AttrKind::Int | AttrKind::IntFrom(_) if self.unsigned => format!("{int} (non-negative)"),
            AttrKind::Int | AttrKind::IntFrom(_) => int.to_owned(),
            AttrKind::OptInt => format!("{int} or None"),
            AttrKind::Float | AttrKind::FloatIn(..) => float.to_owned(),
            AttrKind::OptFloat => format!("{float} or None"),
            AttrKind::Bool => "boolean".to_owned(),
            AttrKind::OptBool => "boolean or None".to_owned(),
            AttrKind::Shape if self.wide => "tuple of <long>".to_owned(),
            AttrKind::Shape | AttrKind::SparseShape => "Shape(tuple)".to_owned(),
            AttrKind::OptShape => "Shape or None".to_owned(),
            AttrKind::Floats => format!("tuple of <{float}>"),
            AttrKind::OptFloats => format!("tuple of <{float}> or None"),
            AttrKind::Enum(words) | AttrKind::DType(words) => word_list(None, words),
            AttrKind::OptEnum(words) | AttrKind::OptDType(words) => word_list(Some("None"), words),
            AttrKind::Str => "string".to_owned(),
            AttrKind::Object(_) => "any".to_owned(),
        }
    }
}

/// Words in quotes and braces, sorted as in MXNet, after one without quotes.
fn word_list(first: Option<&str>, words: &[&str]) -> String {
    let mut sorted = words.to_vec();
    sorted.sort_unstable();
    let quoted = sorted.into_iter().map(|word| format!("'{word}'"));
    format!("{{{}}}", first.map(str::to_owned).into_iter().chain(quoted).collect::<Vec<_>>().join(", "))
}

/// A parsed attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// `None`
    None,
    /// whole number
    Int(i64),
    /// number
    Float(f64),
    /// boolean
    Bool(bool),
    /// tuple of whole numbers
    Ints(SmallVec<[i64; 4]>),
    /// tuple of whole numbers or `None`
    OptInts(SmallVec<[Option<i64>; 4]>),
    /// tuple of numbers
    Floats(SmallVec<[f64; 4]>),
    /// a word out of the declared ones
    Word(&'static str),
    /// text
    Text(String),
    /// the object made from all attributes together
    Object(AttrObject),
}

/// The parsed attributes of one node, in the order of their declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Attrs {
    defs: Defs,
    values: SmallVec<[AttrValue; 8]>,
}

#[derive(Clone, Copy, Debug)]
struct Defs(&'static [AttrDef]);

impl PartialEq for Defs {
    fn eq(&self, other: &Defs) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

fn bad(message: String) -> OpError {
    OpError::new(FailureKind::Value, message)
}

impl Attrs {
    /// Parses `given` (name, text) pairs against the declarations.
    ///
    /// Names that start and end with `__` are MXNet's hidden attributes and are skipped.
    pub fn parse<'a>(
        defs: &'static [AttrDef],
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Attrs, OpError> {
        let mut slots: SmallVec<[Option<AttrValue>; 8]> = smallvec::smallvec![None; defs.len()];
        let object = defs.iter().position(|d| matches!(d.kind, AttrKind::Object(_)));
        let mut all: SmallVec<[(&str, &str); 4]> = SmallVec::new();
        for (key, text) in given {
            if key.starts_with("__") && key.ends_with("__") {
                continue;
            }
            if object.is_some() {
                all.push((key, text));
            }
            match defs.iter().position(|d| d.name == key && !matches!(d.kind, AttrKind::Object(_))) {
                Some(i) => slots[i] = Some(parse_value(&defs[i], text)?),
                None if object.is_some() => {}
                None => return Err(unknown(defs, key)),
            }
        }
        let mut values = SmallVec::with_capacity(defs.len());
        for (def, slot) in defs.iter().zip(slots) {
            if let AttrKind::Object(parser) = def.kind {
                values.push(AttrValue::Object(make_object(parser, &all)?));
                continue;
            }
            values.push(match (slot, def.default) {
                (Some(value), _) => value,
                (None, Some(text)) => parse_value(def, text)?,
                (None, None) => {
                    let what = def.type_name();
                    return Err(bad(format!("Required parameter {} of {what} is not presented", def.name)));
                }
            });
        }
        Ok(Attrs { defs: Defs(defs), values })
    }

    /// The value of a declared attribute. Asking for one that was not declared is a defect of the
    /// program.
    pub fn get(&self, name: &str) -> &AttrValue {
        match self.defs.0.iter().position(|d| d.name == name) {
            Some(i) => &self.values[i],
            None => panic!("the attribute '{name}' is not declared"),
        }
    }

    /// The object that all attributes stand for. A declaration of another kind of object is a
    /// defect of the program.
    pub fn object<T: Any>(&self, name: &str) -> &T {
        match self.get(name) {
            AttrValue::Object(value) => value.object.downcast_ref().unwrap_or_else(|| wrong(name, "this object")),
            _ => wrong(name, "an object"),
        }
    }

    /// True when there is such a declaration.
    pub fn declares(&self, name: &str) -> bool {
        self.defs.0.iter().any(|d| d.name == name)
    }

    /// Names and values, as files spell them.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let all = self.defs.0.iter().zip(&self.values);
        let named = all.filter(|(_, value)| !matches!(value, AttrValue::Object(_)));
        named.map(|(def, value)| (def.name.to_owned(), value.to_string())).collect()
    }

    /// A whole number.
    pub fn int(&self, name: &str) -> i64 {
        self.opt_int(name).unwrap_or_else(|| wrong(name, "a whole number"))
    }

    /// A whole number that the declaration bounds from below by zero or more.
    pub fn count(&self, name: &str) -> usize {
        usize::try_from(self.int(name)).unwrap_or_else(|_| wrong(name, "a count"))
    }

    /// A whole number or nothing.
    pub fn opt_int(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            AttrValue::Int(v) => Some(*v),
            AttrValue::None => None,
            _ => wrong(name, "a whole number"),
        }
    }

    /// A number.
    pub fn float(&self, name: &str) -> f64 {
        self.opt_float(name).unwrap_or_else(|| wrong(name, "a number"))
    }

    /// A number or nothing.
    pub fn opt_float(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            AttrValue::Float(v) => Some(*v),
            AttrValue::Int(v) => Some(*v as f64),
            AttrValue::None => None,
            _ => wrong(name, "a number"),
        }
    }

    /// A boolean.
    pub fn bool(&self, name: &str) -> bool {
        self.opt_bool(name).unwrap_or_else(|| wrong(name, "a boolean"))
    }

    /// A boolean or nothing.
    pub fn opt_bool(&self, name: &str) -> Option<bool> {
        match self.get(name) {
            AttrValue::Bool(v) => Some(*v),
            AttrValue::None => None,
            _ => wrong(name, "a boolean"),
        }
    }

    /// A tuple of whole numbers, without any where `None` was given.
    pub fn ints(&self, name: &str) -> &[i64] {
        self.opt_ints(name).unwrap_or(&[])
    }

    /// A tuple of whole numbers or nothing.
    pub fn opt_ints(&self, name: &str) -> Option<&[i64]> {
        match self.get(name) {
            AttrValue::Ints(v) => Some(v),
            AttrValue::None => None,
            _ => wrong(name, "a tuple"),
        }
    }

    /// A tuple whose elements may be missing.
    pub fn sparse_ints(&self, name: &str) -> &[Option<i64>] {
        match self.get(name) {
            AttrValue::OptInts(v) => v,
            _ => wrong(name, "a tuple with holes"),
        }
    }

    /// A tuple of numbers.
    pub fn floats(&self, name: &str) -> &[f64] {
        self.opt_floats(name).unwrap_or_else(|| wrong(name, "a tuple of numbers"))
    }

    /// A tuple of numbers or nothing.
    pub fn opt_floats(&self, name: &str) -> Option<&[f64]> {
        match self.get(name) {
            AttrValue::Floats(v) => Some(v),
            AttrValue::None => None,
            _ => wrong(name, "a tuple of numbers"),
        }
    }

    /// A word of an enumeration, or text.
    pub fn str(&self, name: &str) -> &str {
        self.opt_str(name).unwrap_or_else(|| wrong(name, "text"))
    }

    /// A word of an enumeration, text, or nothing.
    pub fn opt_str(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            AttrValue::Word(w) => Some(w),
            AttrValue::Text(t) => Some(t),
            AttrValue::None => None,
            _ => wrong(name, "text"),
        }
    }

    /// A dtype, or nothing where `None` was given.
    pub fn opt_dtype(&self, name: &str) -> Option<DType> {
        self.opt_str(name).filter(|s| *s != "None").and_then(|s| s.parse().ok())
    }
}

fn make_object(parser: ObjectParser, given: &[(&str, &str)]) -> Result<AttrObject, OpError> {
    let text = given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Ok(AttrObject { given: text.collect(), object: (parser.0)(given)? })
}

/// The declaration and the use of an attribute disagree: a defect of the operator, never of its
/// input.
fn wrong(name: &str, want: &str) -> ! {
    panic!("attribute '{name}' is not declared as {want}")
}

impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrValue::None => f.write_str("None"),
            AttrValue::Int(v) => write!(f, "{v}"),
            AttrValue::Float(v) => write!(f, "{v}"),
            AttrValue::Bool(v) => f.write_str(if *v { "True" } else { "False" }),
            AttrValue::Ints(v) => write!(f, "{}", Tuple(v.iter().map(|x| x.to_string()))),
            AttrValue::OptInts(v) => {
                write!(f, "{}", Tuple(v.iter().map(|x| x.map_or("None".into(), |x| x.to_string()))))
            }
            AttrValue::Floats(v) => write!(f, "{}", Tuple(v.iter().map(|x| x.to_string()))),
            AttrValue::Word(w) => f.write_str(w),
            AttrValue::Text(t) => f.write_str(t),
            AttrValue::Object(made) => write!(f, "{:?}", made.given),
        }
    }
}

struct Tuple<I>(I);

impl<I: Iterator<Item = String> + Clone> fmt::Display for Tuple<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.0.clone().collect();
        if items.len() == 1 { write!(f, "({},)", items[0]) } else { write!(f, "({})", items.join(", ")) }
    }
}

fn unknown(defs: &[AttrDef], key: &str) -> OpError {
    let possible: Vec<String> = defs.iter().map(|d| format!("{} : {}", d.name, d.type_name())).collect();
    bad(format!("Cannot find argument '{key}', Possible Arguments:\n----------------\n{}", possible.join("\n")))
}
