//! How the arrays of a control-flow node reach its graphs.

use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{Attrs, OpDef};

/// Kinds of control flow: how a node runs its graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowKind {
    /// runs graph 0 for every row of the data
    Foreach,
    /// runs graph 1 while graph 0 returns true
    WhileLoop {
        /// most iterations that are run
        max_iterations: usize,
    },
    /// runs graph 1 if graph 0 returns true, else graph 2
    Cond,
}

impl FlowKind {
    /// The names of the graphs in messages.
    fn graphs(self) -> &'static [&'static str] {
        match self {
            FlowKind::Foreach => &["body"],
            FlowKind::WhileLoop { .. } => &["condition", "body"],
            FlowKind::Cond => &["condition", "then branch", "else branch"],
        }
    }
}

/// Roles of the inputs and outputs of a node for its graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wiring {
    pub kind: FlowKind,
    /// the input of the node that feeds each input of each graph
    pub inputs: Vec<Vec<usize>>,
    /// the inputs of the node before this one are cut into rows, one for each iteration
    pub rows: usize,
    /// inputs of the node with the first values of the states
    pub states: Vec<usize>,
    /// the outputs of the node before this one have a row for each iteration; the others are the
    /// last states
    pub stacked: usize,
}

/// Inputs and outputs of a graph, by number.
pub(crate) type GraphArity = (usize, usize);

fn bad(message: String) -> OpError {
    OpError::new(FailureKind::Value, message)
}

fn locations(attrs: &Attrs, name: &str, limit: usize) -> Result<Vec<usize>, OpError> {
    let place = |n: &i64| {
        let inside = usize::try_from(*n).ok().filter(|n| *n < limit);
        inside.ok_or_else(|| bad(format!("{name} names input {n}, but there are {limit}")))
    };
    attrs.ints(name).iter().map(place).collect()
}

/// The number of graphs that a node of the operator runs.
pub fn number_of_graphs(op: &OpDef) -> usize {
    match op.name {
        "_foreach" => 1,
        "_while_loop" => 2,
        "_cond" => 3,
        _ => 0,
    }
}

impl Wiring {
    /// The wiring of a node with `node_inputs` inputs and these graphs. `None` for operators that
    /// run no graphs.
    pub fn new(
        op: &OpDef,
        attrs: &Attrs,
        node_inputs: usize,
        graphs: &[GraphArity],
    ) -> Result<Option<Wiring>, OpError> {
        let kind = match op.name {
            "_foreach" => FlowKind::Foreach,
            "_while_loop" => FlowKind::WhileLoop { max_iterations: attrs.count("max_iterations") },
            "_cond" => FlowKind::Cond,
            _ => return Ok(None),
        };
        let names = kind.graphs();
        if graphs.len() != names.len() {
            let message = format!("{} runs {} graphs ({})", op.name, names.len(), names.join(", "));
            return Err(bad(format!("{message}, but the node has {}", graphs.len())));
        }
        let wiring = match kind {
            FlowKind::Foreach => Wiring::foreach(attrs, node_inputs, graphs[0].0)?,
            FlowKind::WhileLoop { .. } => Wiring::while_loop(kind, attrs, node_inputs)?,
            FlowKind::Cond => {
                let of = |name| locations(attrs, name, node_inputs);
                let inputs = vec![of("cond_input_locs")?, of("then_input_locs")?, of("else_input_locs")?];
                Wiring { kind, inputs, rows: 0, states: Vec::new(), stacked: 0 }
            }
        };
        wiring.check(attrs.count("num_outputs"), graphs)?;
        Ok(Some(wiring))
    }

    /// The inputs of the node are the data, then the states, then the other arrays; the attributes
    /// say which input of the graph each of them is.
    fn foreach(attrs: &Attrs, node_inputs: usize, graph_inputs: usize) -> Result<Wiring, OpError> {
        let names = ["in_data_locs", "in_state_locs", "remain_locs"];
        let parts = names.map(|name| locations(attrs, name, graph_inputs));
        let [data, states, rest] = parts;
        let (data, states, rest) = (data?, states?, rest?);
        if data.is_empty() {
            return Err(bad("in_data_locs is empty: there is nothing to iterate over".to_owned()));
        }
        let mut feeds = vec![usize::MAX; graph_inputs];
        for (input, place) in data.iter().chain(&states).chain(&rest).enumerate() {
            if std::mem::replace(&mut feeds[*place], input) != usize::MAX {
                return Err(bad(format!("input {place} of the body is named twice by {}", names.join(", "))));
            }
        }
        let named = data.len() + states.len() + rest.len();
        if named != graph_inputs || named != node_inputs {
            let message = format!("{} name {named} inputs", names.join(", "));
            return Err(bad(format!("{message}, but the body has {graph_inputs} and the node {node_inputs}")));
        }
        let (rows, stacked) = (data.len(), attrs.count("num_out_data"));
        let states = (rows..rows + states.len()).collect();
        Ok(Wiring { kind: FlowKind::Foreach, inputs: vec![feeds], rows, states, stacked })
    }

    fn while_loop(kind: FlowKind, attrs: &Attrs, node_inputs: usize) -> Result<Wiring, OpError> {
        let condition = locations(attrs, "cond_input_locs", node_inputs)?;
        let body = locations(attrs, "func_input_locs", node_inputs)?;
        let variables = locations(attrs, "func_var_locs", body.len())?;
        let states: Vec<usize> = variables.iter().map(|place| body[*place]).collect();
        if let Some(twice) = (1..states.len()).find(|i| states[..*i].contains(&states[*i])) {
            return Err(bad(format!("func_var_locs names input {} of the node twice", states[twice])));
        }
        Ok(Wiring { kind, inputs: vec![condition, body], rows: 0, states, stacked: attrs.count("num_out_data") })
    }

    fn check(&self, num_outputs: usize, graphs: &[GraphArity]) -> Result<(), OpError> {
        for (g, ((inputs, outputs), name)) in graphs.iter().zip(self.kind.graphs()).enumerate() {
            if *inputs != self.inputs[g].len() {
                let have = self.inputs[g].len();
                return Err(bad(format!("the {name} has {inputs} inputs, but the attributes name {have}")));
            }
            let want = if self.is_condition(g) { 1 } else { num_outputs };
            if *outputs != want {
                return Err(bad(format!("the {name} has {outputs} outputs, but needs {want}")));
            }
        }
        let made = self.stacked + self.states.len();
        if self.kind != FlowKind::Cond && made != num_outputs {
            let parts = format!("{} stacked outputs and {} states", self.stacked, self.states.len());
            return Err(bad(format!("num_outputs is {num_outputs}, but there are {parts}")));
        }
        Ok(())
    }

    /// Whether the graph only decides which graph runs.
    pub fn is_condition(&self, graph: usize) -> bool {
        graph == 0 && self.kind != FlowKind::Foreach
    }

    /// The number of the state that an input of the node starts, if it is one.
    pub fn state_of(&self, input: usize) -> Option<usize> {
        self.states.iter().position(|state| *state == input)
    }

    /// Whether an input of the node is the same in all iterations.
    pub fn is_captured(&self, input: usize) -> bool {
        input >= self.rows && !self.states.contains(&input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxrt_ops::registry;

    fn wiring(op: &str, attrs: &[(&str, &str)], inputs: usize, graphs: &[GraphArity]) -> Result<Wiring, String> {
        let op = registry().get(op).expect("it is registered");
        let attrs = op.parse_attrs(attrs.iter().copied()).map_err(|e| e.message.clone())?;
        Wiring::new(op, &attrs, inputs, graphs).map(|w| w.expect("it runs graphs")).map_err(|e| e.message.clone())
    }

    const FOREACH: [(&str, &str); 6] = [
        ("num_args", "5"),
        ("num_outputs", "2"),
        ("num_out_data", "1"),
        ("in_data_locs", "[0]"),
        ("in_state_locs", "[3]"),
        ("remain_locs", "[1, 2]"),
    ];

    #[test]
    fn inputs_of_a_body_come_from_data_states_and_the_rest() {
        let found = wiring("_foreach", &FOREACH, 4, &[(4, 2)]).expect("it is good");
        assert_eq!(found.inputs, [vec![0, 2, 3, 1]]);
        assert_eq!((found.rows, found.states, found.stacked), (1, vec![1], 1));
    }

    #[test]
    fn attributes_that_do_not_fit_the_graphs_are_errors() {
        let with = |name: &str, text: &'static str| {
            let changed: Vec<(&str, &str)> = FOREACH.map(|(k, v)| (k, if k == name { text } else { v })).to_vec();
            wiring("_foreach", &changed, 4, &[(4, 2)]).expect_err("it is wrong")
        };
        assert_eq!(with("in_data_locs", "[4]"), "in_data_locs names input 4, but there are 4");
        assert_eq!(with("in_data_locs", "[-1]"), "in_data_locs names input -1, but there are 4");
        assert!(with("remain_locs", "[1, 1]").contains("input 1 of the body is named twice"));
        assert!(with("remain_locs", "[1]").contains("name 3 inputs, but the body has 4"));
        assert!(with("in_data_locs", "[]").contains("nothing to iterate over"));
        assert!(with("num_out_data", "0").contains("0 stacked outputs and 1 states"));
        let graphs = wiring("_foreach", &FOREACH, 4, &[]).expect_err("no graph");
        assert_eq!(graphs, "_foreach runs 1 graphs (body), but the node has 0");
    }
}
