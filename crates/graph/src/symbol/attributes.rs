//! Reading and setting attributes through a symbol.

use super::{GraphError, Symbol};
use mxrt_engine::{FailureKind, OpError};
use std::collections::BTreeMap;

/// Keys that MXNet keeps as `__key__` and shows under both spellings.
pub(crate) const HIDDEN_KEYS: [&str; 5] = ["ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"];

/// The spelling under which a key is kept. `weight_lr_mult` and the like, once allowed on
/// operators, are refused.
pub(crate) fn hidden_key(key: &str, value: &str) -> Result<String, OpError> {
    for hidden in HIDDEN_KEYS {
        if key == hidden {
            return Ok(format!("__{key}__"));
        }
        if let Some(input) = key.strip_suffix(hidden) {
            let message = format!(
                "setting variable attributes with {key} is deprecated. please instead use\n\
                 w = Variable({hidden}={value})\nsym = YourSymbolName({}=w)",
                input.strip_suffix('_').unwrap_or(input)
            );
            return Err(OpError::new(FailureKind::Value, message));
        }
    }
    Ok(key.to_owned())
}

/// The attributes with hidden keys in both spellings.
fn with_plain_keys(attrs: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut all = attrs.clone();
    for key in HIDDEN_KEYS {
        if let Some(value) = attrs.get(&format!("__{key}__")) {
            all.insert(key.to_owned(), value.clone());
        }
    }
    all
}

impl Symbol {
    /// One attribute of the node; `name` and `op_name` are attributes too. `None` for groups.
    pub fn attr(&self, key: &str) -> Option<String> {
        self.kept_attr(key).or_else(|| {
            let hidden = HIDDEN_KEYS.contains(&key).then(|| format!("__{key}__"))?;
            self.kept_attr(&hidden)
        })
    }

    /// Variant of [`Symbol::attr`] for the keys that the node has.
    pub fn kept_attr(&self, key: &str) -> Option<String> {
        let node = self.single_node()?;
        match key {
            "name" => Some(node.name.clone()),
            "op_name" => node.op.map(|op| op.name.to_owned()),
            _ => node.attr(key),
        }
    }

    /// All attributes of the first output's node. Keys that are kept as `__key__` are also there as
    /// `key`.
    pub fn list_attr(&self) -> BTreeMap<String, String> {
        with_plain_keys(self.kept_attrs())
    }

    /// All attributes of the first output's node, as they are kept.
    pub fn kept_attrs(&self) -> BTreeMap<String, String> {
        self.outputs().first().map_or_else(BTreeMap::new, |e| e.node.attrs())
    }

    /// Attributes of all nodes that have any, by node name. Keys that are kept as `__key__` are also
    /// there as `key`.
    pub fn attr_dict(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut all = self.kept_attr_dict();
        all.values_mut().for_each(|attrs| *attrs = with_plain_keys(std::mem::take(attrs)));
        all
    }

    /// Attributes of all nodes that have any, by node name, as they are kept.
    pub fn kept_attr_dict(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut all: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for node in self.topo() {
            let attrs = node.attrs();
            if !attrs.is_empty() {
                all.entry(node.name.clone()).or_default().extend(attrs);
            }
        }
        all
    }

    /// Sets an attribute of the node. The operator's own attributes and the name are fixed when the
    /// node is made.
    pub fn set_attr(&self, key: &str, value: &str) -> Result<(), GraphError> {
        let Some(node) = self.single_node() else {
            let message =
                format!("cannot set the attribute '{key}' of a group of several nodes; set it on each of them");
            return Err(GraphError::Value(message));
        };
        if key == "name" && value != node.name {
            let message = format!("cannot rename the node '{}'; give name= when creating the symbol", node.name);
            return Err(GraphError::Value(message));
        }
        let key = hidden_key(key, value)?;
        let hidden = key.starts_with("__") && key.ends_with("__");
        if let Some(op) = node.op
            && !hidden
        {
            let given = node.attrs();
            let mut changed = given.clone();
            changed.insert(key.clone(), value.to_owned());
            let parsed = op.parse_attrs(changed.iter().map(|(k, v)| (k.as_str(), v.as_str())));
            let parsed = parsed.map_err(|e| super::error::attr_error(e, op, &node.name, &changed))?;
            if parsed != *node.parsed() {
                let message = format!(
                    "cannot change '{key}' of {} '{}' to {value}: operators keep the attributes they were made with; \
                     make a new symbol",
                    op.name, node.name
                );
                return Err(node.error(FailureKind::NotImplemented, message).into());
            }
        }
        if key != "name" {
            node.put_attr(&key, value);
        }
        Ok(())
    }
}
