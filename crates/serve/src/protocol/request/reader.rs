//! Parser of a request's JSON. It reads the text once, and takes no more memory than the model
//! needs.

use super::{MAX_AXES, Most};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;

/// Parsed request before its tensors are checked.
pub(super) struct Request<'a> {
    pub(super) id: Option<String>,
    pub(super) parameters: Parameters,
    pub(super) inputs: Vec<RequestInput<'a>>,
    pub(super) outputs: Option<Vec<RequestOutput>>,
}

/// Parameters of a request that have a meaning here. Others are ignored.
#[derive(Deserialize, Default)]
pub(super) struct Parameters {
    pub(super) priority: Option<u64>,
    pub(super) timeout: Option<u64>,
    pub(super) binary_data_output: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct RequestInput<'a> {
    pub(super) name: String,
    #[serde(deserialize_with = "extents")]
    pub(super) shape: Vec<i64>,
    pub(super) datatype: String,
    #[serde(default, deserialize_with = "object_or_null")]
    pub(super) parameters: TensorParameters,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct RequestOutput {
    pub(super) name: String,
    #[serde(default, deserialize_with = "object_or_null")]
    pub(super) parameters: TensorParameters,
}

#[derive(Deserialize, Default)]
pub(super) struct TensorParameters {
    pub(super) binary_data_size: Option<i128>,
    pub(super) binary_data: Option<bool>,
    pub(super) classification: Option<i64>,
    pub(super) shared_memory_region: Option<String>,
}

/// Outline that tells a request from other JSON. It takes no memory.
#[derive(Deserialize)]
pub(super) struct Outline {
    #[serde(rename = "inputs")]
    _inputs: Vec<Object<OutlineOfInput>>,
}

#[derive(Deserialize)]
struct OutlineOfInput {
    #[serde(rename = "datatype")]
    _datatype: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Key {
    Id,
    Parameters,
    Inputs,
    Outputs,
    #[serde(other)]
    Other,
}

impl<'a> Request<'a> {
    pub(super) fn read(json: &'a [u8], most: Most) -> Result<Request<'a>, serde_json::Error> {
        let mut text = serde_json::Deserializer::from_slice(json);
        let request = OfModel(most).deserialize(&mut text)?;
        text.end()?;
        Ok(request)
    }
}

/// Deserializer of a request, bounded by the model's numbers of inputs and outputs.
struct OfModel(Most);

impl<'de> DeserializeSeed<'de> for OfModel {
    type Value = Request<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Request<'de>, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OfModel {
    type Value = Request<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the list 'inputs'")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Request<'de>, A::Error> {
        let (mut id, mut parameters, mut inputs, mut outputs) = (None, None, None, None);
        let twice = |given: bool, key| if given { Err(A::Error::duplicate_field(key)) } else { Ok(()) };
        while let Some(key) = map.next_key()? {
            match key {
                Key::Id => {
                    twice(id.is_some(), "id")?;
                    id = Some(map.next_value::<Option<String>>()?);
                }
                Key::Parameters => {
                    twice(parameters.is_some(), "parameters")?;
                    parameters = Some(map.next_value::<Option<Object<Parameters>>>()?);
                }
                Key::Inputs => {
                    twice(inputs.is_some(), "inputs")?;
                    let list = List::new(self.0.inputs + 1, "inputs; the model has", self.0.inputs);
                    inputs = Some(of_objects(map.next_value_seed(list)?));
                }
                Key::Outputs => {
                    twice(outputs.is_some(), "outputs")?;
                    let list = List::new(self.0.outputs + 1, "outputs; the model has", self.0.outputs);
                    outputs = Some(map.next_value_seed(Perhaps(list))?.map(of_objects));
                }
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Request {
            id: id.flatten(),
            parameters: parameters.flatten().map(|Object(parameters)| parameters).unwrap_or_default(),
            inputs: inputs.ok_or_else(|| A::Error::missing_field("inputs"))?,
            outputs: outputs.flatten(),
        })
    }
}

/// Deserializer of a list with at most `most` members.
struct List<T> {
    most: usize,
    /// name of the members in errors, and the model's number of them
    words: (&'static str, usize),
    of: PhantomData<T>,
}

impl<T> List<T> {
    fn new(most: usize, words: &'static str, there_are: usize) -> List<T> {
        List { most, words: (words, there_are), of: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for List<T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Vec<T>, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = list.next_element()? {
            if members.len() == self.most {
                let (words, there_are) = self.words;
                return Err(de::Error::custom(format!("it has more than {} {words} {there_are}", self.most)));
            }
            members.push(member);
        }
        Ok(members)
    }
}

/// Deserializer of a list or null.
struct Perhaps<T>(List<T>);

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Perhaps<T> {
    type Value = Option<Vec<T>>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_option(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Perhaps<T> {
    type Value = Option<Vec<T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_seq(self.0).map(Some)
    }
}

/// An object of JSON, whose members T reads. T alone would take a list of their values for it as well.
pub(super) struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// Reads an object; null is one without members.
fn object_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::<Object<T>>::deserialize(from)?.map(|Object(one)| one).unwrap_or_default())
}

fn of_objects<T>(list: Vec<Object<T>>) -> Vec<T> {
    list.into_iter().map(|Object(one)| one).collect()
}

/// Reads the extents of a shape. One that has too many axes is an error.
fn extents<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<i64>, D::Error> {
    from.deserialize_seq(List::new(MAX_AXES + 1, "extents; arrays have at most", MAX_AXES))
}
