//! Reads a text key by key, in the order of the text. Nothing is looked up or connected yet.

use crate::symbol::GraphError;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// A graph as written.
#[derive(Default)]
pub(super) struct RawGraph {
    pub nodes: Vec<RawNode>,
    pub arg_nodes: Vec<u32>,
    pub heads: Vec<RawEntry>,
    pub version: Option<i64>,
    pub np_shape: bool,
}

/// A node as written, `param` already merged into the attributes.
pub(super) struct RawNode {
    pub op: String,
    pub name: String,
    pub attrs: BTreeMap<String, String>,
    pub inputs: Vec<RawEntry>,
    pub control_deps: Vec<u32>,
    pub subgraphs: Vec<RawGraph>,
}

impl RawNode {
    pub fn variable(name: String, attrs: BTreeMap<String, String>) -> RawNode {
        let (inputs, control_deps, subgraphs) = (Vec::new(), Vec::new(), Vec::new());
        RawNode { op: "null".to_owned(), name, attrs, inputs, control_deps, subgraphs }
    }

    pub fn is_variable(&self) -> bool {
        self.op == "null"
    }
}

/// An edge: `[node, output, version]`.
#[derive(Clone, Copy)]
pub(super) struct RawEntry {
    pub node: u32,
    pub index: u32,
    pub version: u32,
}

/// Reads the text of a symbol.
pub(super) fn read(text: &str) -> Result<RawGraph, GraphError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let graph = GraphVisitor { inner: false }.deserialize(&mut json).and_then(|g| json.end().map(|()| g));
    graph.map_err(|e| {
        let mut words = e.to_string();
        // Places that were added to an error hide its kind.
        if words.contains("EOF while parsing") {
            words.push_str(": it ends too early; copy or download it again");
        } else if serde_json::from_str::<IgnoredAny>(text).is_err() {
            words.push_str(": it is no JSON; copy or download it again");
        }
        GraphError::Json(words)
    })
}

const GRAPH_KEYS: &[&str] = &["nodes", "arg_nodes", "node_row_ptr", "heads", "attrs"];
const NODE_KEYS: &[&str] =
    &["op", "name", "attrs", "inputs", "control_deps", "subgraphs", "attr", "param", "backward_source_id"];

fn unknown_key<E: de::Error>(place: &str, key: &str, known: &[&str]) -> E {
    E::custom(format!("{place}: Unknown field '{key}', candidates are: {}", known.join(", ")))
}

fn required<T, E: de::Error>(slot: Option<T>, place: &str, key: &str) -> Result<T, E> {
    slot.ok_or_else(|| E::custom(format!("{place}: Missing field \"{key}\"")))
}

/// Reads a value into an empty slot; errors name the place and the key.
fn fill<'de, A, S>(map: &mut A, slot: &mut Option<S::Value>, place: &str, key: &str, seed: S) -> Result<(), A::Error>
where
    A: MapAccess<'de>,
    S: DeserializeSeed<'de>,
{
    if slot.is_some() {
        return Err(de::Error::custom(format!("{place}: the field '{key}' is given twice")));
    }
    let value = map.next_value_seed(seed).map_err(|e| de::Error::custom(format!("{place}: {key}: {e}")))?;
    *slot = Some(value);
    Ok(())
}

/// A graph; `inner` ones are part of a node.
struct GraphVisitor {
    inner: bool,
}

impl<'de> DeserializeSeed<'de> for GraphVisitor {
    type Value = RawGraph;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<RawGraph, D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for GraphVisitor {
    type Value = RawGraph;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the fields nodes, arg_nodes and heads")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawGraph, A::Error> {
        let place = if self.inner { "graph of the node" } else { "graph" };
        let (mut nodes, mut arg_nodes, mut heads, mut attrs) = (None, None, None, None);
        let mut row_ptr: Option<Vec<Count>> = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "nodes" => fill(&mut map, &mut nodes, place, &key, NodesVisitor)?,
                "arg_nodes" => fill(&mut map, &mut arg_nodes, place, &key, PlainSeed::<Vec<NodeId>>::new())?,
                "node_row_ptr" => fill(&mut map, &mut row_ptr, place, &key, PlainSeed::new())?,
                "heads" => fill(&mut map, &mut heads, place, &key, PlainSeed::<Vec<RawEntry>>::new())?,
                "attrs" => fill(&mut map, &mut attrs, place, &key, GraphAttrs)?,
                _ => return Err(unknown_key(place, &key, GRAPH_KEYS)),
            }
        }
        let (version, np_shape) = attrs.unwrap_or((None, false));
        Ok(RawGraph {
            nodes: required(nodes, place, "nodes")?,
            arg_nodes: required(arg_nodes, place, "arg_nodes")?.into_iter().map(|id| id.0).collect(),
            heads: required(heads, place, "heads")?,
            version,
            np_shape,
        })
    }
}

/// Deserialises without a seed where an interface asks for one.
struct PlainSeed<T>(std::marker::PhantomData<T>);

impl<T> PlainSeed<T> {
    fn new() -> PlainSeed<T> {
        PlainSeed(std::marker::PhantomData)
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for PlainSeed<T> {
    type Value = T;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<T, D::Error> {
        T::deserialize(d)
    }
}

/// The list of nodes; errors say which one.
struct NodesVisitor;

impl<'de> DeserializeSeed<'de> for NodesVisitor {
    type Value = Vec<RawNode>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Vec<RawNode>, D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for NodesVisitor {
    type Value = Vec<RawNode>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of nodes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<RawNode>, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = seq.next_element_seed(NodeSeed { index: nodes.len() })? {
            nodes.push(node);
        }
        Ok(nodes)
    }
}

struct NodeSeed {
    index: usize,
}

impl<'de> DeserializeSeed<'de> for NodeSeed {
    type Value = RawNode;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<RawNode, D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed {
    type Value = RawNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} as an object with the fields op, name and inputs", self.index)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawNode, A::Error> {
        let mut place = format!("node {}", self.index);
        let (mut op, mut name, mut inputs) = (None, None, None);
        let (mut attrs, mut param, mut deps, mut subgraphs, mut source) = (None, None, None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "op" => fill(&mut map, &mut op, &place, &key, PlainSeed::<String>::new())?,
                "name" => {
                    fill(&mut map, &mut name, &place, &key, PlainSeed::<String>::new())?;
                    if let Some(name) = &name {
                        place = format!("node {} '{name}'", self.index);
                    }
                }
                "inputs" => fill(&mut map, &mut inputs, &place, &key, PlainSeed::<Vec<RawEntry>>::new())?,
                // two spellings of one field: the one that comes last counts
                "attrs" | "attr" => {
                    attrs = None;
                    fill(&mut map, &mut attrs, &place, &key, TextsVisitor)?;
                }
                "param" => fill(&mut map, &mut param, &place, &key, TextsVisitor)?,
                "control_deps" => fill(&mut map, &mut deps, &place, &key, PlainSeed::<Vec<NodeId>>::new())?,
                "subgraphs" => fill(&mut map, &mut subgraphs, &place, &key, SubgraphsVisitor)?,
                "backward_source_id" => fill(&mut map, &mut source, &place, &key, PlainSeed::<i64>::new())?,
                _ => return Err(unknown_key(&place, &key, NODE_KEYS)),
            }
        }
        let mut attrs: BTreeMap<String, String> = attrs.unwrap_or_default();
        for (key, value) in param.unwrap_or_default() {
            attrs.entry(key).or_insert(value);
        }
        Ok(RawNode {
            op: required(op, &place, "op")?,
            name: required(name, &place, "name")?,
            attrs,
            inputs: required(inputs, &place, "inputs")?,
            control_deps: deps.unwrap_or_default().into_iter().map(|id| id.0).collect(),
            subgraphs: subgraphs.unwrap_or_default(),
        })
    }
}

struct SubgraphsVisitor;

impl<'de> DeserializeSeed<'de> for SubgraphsVisitor {
    type Value = Vec<RawGraph>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Vec<RawGraph>, D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for SubgraphsVisitor {
    type Value = Vec<RawGraph>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of graphs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<RawGraph>, A::Error> {
        let mut graphs = Vec::new();
        while let Some(graph) = seq.next_element_seed(GraphVisitor { inner: true })? {
            graphs.push(graph);
        }
        Ok(graphs)
    }
}

/// Attributes: texts by name. Where a name comes twice the last one counts.
struct TextsVisitor;

impl<'de> DeserializeSeed<'de> for TextsVisitor {
    type Value = BTreeMap<String, String>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut texts = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let value: String = map.next_value().map_err(|e| de::Error::custom(format!("'{key}': {e}")))?;
            texts.insert(key, value);
        }
        Ok(texts)
    }
}

/// Attributes of the graph: the version that wrote it, and numpy's shape semantics. Others have no
/// effect here.
struct GraphAttrs;

impl<'de> DeserializeSeed<'de> for GraphAttrs {
    type Value = (Option<i64>, bool);
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for GraphAttrs {
    type Value = (Option<i64>, bool);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object like {\"mxnet_version\": [\"int\", 10901]}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut version, mut np_shape) = (None, false);
        while let Some(key) = map.next_key::<String>()? {
            if key != "mxnet_version" && key != "is_np_shape" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value: Result<(String, i64), A::Error> = map.next_value();
            let (kind, number) = value.map_err(|e| de::Error::custom(format!("'{key}': {e}")))?;
            if kind != "int" || !(0..=i64::from(i32::MAX)).contains(&number) {
                return Err(de::Error::custom(format!(
                    "'{key}': expected [\"int\", version], found [\"{kind}\", {number}]"
                )));
            }
            match key.as_str() {
                "mxnet_version" => version = Some(number),
                _ => np_shape = number != 0,
            }
        }
        Ok((version, np_shape))
    }
}

/// A whole number from 0 up that fits 32 bits.
struct NodeId(u32);

impl<'de> Deserialize<'de> for NodeId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<NodeId, D::Error> {
        u32::deserialize(d).map(NodeId)
    }
}

/// A whole number from 0 up.
struct Count;

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Count, D::Error> {
        u64::deserialize(d).map(|_| Count)
    }
}

impl<'de> Deserialize<'de> for RawEntry {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<RawEntry, D::Error> {
        struct EntryVisitor;
        impl<'de> Visitor<'de> for EntryVisitor {
            type Value = RawEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("[node, output] or [node, output, version]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawEntry, A::Error> {
                let short = |n| de::Error::invalid_length(n, &"[node, output] or [node, output, version]");
                let node = seq.next_element()?.ok_or_else(|| short(0))?;
                let index = seq.next_element()?.ok_or_else(|| short(1))?;
                let version = seq.next_element()?.unwrap_or(0);
                match seq.next_element::<IgnoredAny>()? {
                    Some(_) => Err(short(4)),
                    None => Ok(RawEntry { node, index, version }),
                }
            }
        }
        d.deserialize_seq(EntryVisitor)
    }
}
