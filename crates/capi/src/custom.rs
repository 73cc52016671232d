//! Operators of C programs: `MXCustomOpRegister`, which MXNet's Python package uses too.

use crate::border::{Error, c_functions};
use crate::callbacks::{CallbackList, Creator};
use crate::handles::hold;
use crate::pointers::text;
use mxrt::internal::symbol::CUSTOM_TRAINS;
use mxrt::internal::{
    CustomArrays, CustomCall, CustomOperator, CustomOperators, CustomTypes, FailureKind, ForkSafeMutex, ForkSafeOnce,
    ForkSafeRwLock, OpError, PartialShape, register_custom_operators, set_inside_call, start_thread,
};
use mxrt::types::TensorType;
use mxrt::{Context, DType, NDArray};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// Creators of operators, by the operators' names.
static CREATORS: ForkSafeRwLock<Vec<(String, Creator)>> = ForkSafeRwLock::new(Vec::new());

/// Places of functions in the list of an operator's properties.
mod property {
    pub const DELETE: usize = 0;
    pub const ARGUMENTS: usize = 1;
    pub const OUTPUTS: usize = 2;
    pub const STATES: usize = 3;
    pub const INFER_SHAPE: usize = 4;
    pub const CREATE: usize = 6;
    pub const INFER_TYPE: usize = 7;
}

/// Places in the list of an operator that runs.
const DELETE: usize = 0;
const FORWARD: usize = 1;

/// Roles of a call's arrays: an input, an output or a state.
const TAGS: [c_int; 3] = [0, 1, 4];
/// Instances of an operator that are kept while no call uses them.
const IDLE: usize = 32;

/// The output is to be overwritten.
const WRITE: c_int = 1;
/// An element type that is not known.
const UNKNOWN: c_int = -1;

/// Finds what was registered.
struct Registered;

impl CustomOperators for Registered {
    fn make(&self, op_type: &str, attrs: &[(&str, &str)]) -> Result<Option<Arc<dyn CustomOperator>>, OpError> {
        // The last of equal names counts.
        let is_train = attrs.iter().any(|(key, _)| *key == CUSTOM_TRAINS);
        let attrs: Vec<(&str, &str)> = attrs.iter().copied().filter(|(key, _)| *key != CUSTOM_TRAINS).collect();
        let creator = CREATORS.read().iter().rev().find(|(name, _)| name == op_type).map(|(_, creator)| *creator);
        let Some(creator) = creator else { return Ok(None) };
        let functions = creator.call(op_type, &attrs).ok_or_else(|| refused(op_type, "the creator"))?;
        let list = |place: usize, what| functions.names(place).ok_or_else(|| refused(op_type, what));
        Ok(Some(Arc::new(Adapter(Arc::new(ProgramOperator {
            op_type: op_type.to_owned(),
            arguments: list(property::ARGUMENTS, "list_arguments")?,
            outputs: list(property::OUTPUTS, "list_outputs")?,
            states: list(property::STATES, "list_auxiliary_states")?,
            is_train,
            idle: ForkSafeMutex::default(),
            functions: Owned { list: functions, delete: property::DELETE },
        })))))
    }
}

fn refused(op_type: &str, what: &str) -> OpError {
    OpError::new(FailureKind::Operator, format!("{what} of the custom operator '{op_type}' failed"))
}

/// Functions that the program wants to be rid of at the end.
struct Owned {
    list: CallbackList,
    delete: usize,
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.list.delete(self.delete);
    }
}

/// An operator of the program with its attributes.
struct ProgramOperator {
    op_type: String,
    arguments: Vec<String>,
    outputs: Vec<String>,
    states: Vec<String>,
    is_train: bool,
    /// Instances that no call uses, with the types of their inputs; the one used last is the last.
    /// They go before the functions that made them.
    idle: ForkSafeMutex<Vec<Instance>>,
    functions: Owned,
}

/// The functions that run one call, and then the next one, on inputs of these types.
struct Instance {
    inputs: Vec<TensorType>,
    functions: Owned,
}

impl ProgramOperator {
    /// Arguments, outputs and states of what the functions return in this order.
    fn divide<T>(&self, mut all: Vec<T>) -> CustomTypes<T> {
        let states = all.split_off(self.arguments.len() + self.outputs.len());
        let outputs = all.split_off(self.arguments.len());
        CustomTypes { arguments: all, states, outputs }
    }

    fn total(&self) -> usize {
        self.arguments.len() + self.outputs.len() + self.states.len()
    }

    /// An instance for such inputs that no other call uses.
    fn take(&self, arrays: &CustomArrays) -> Result<Instance, OpError> {
        let inputs: Vec<TensorType> = arrays.inputs.iter().chain(&arrays.states).map(NDArray::tensor_type).collect();
        {
            let mut idle = self.idle.lock();
            if let Some(place) = idle.iter().rposition(|instance| instance.inputs == inputs) {
                return Ok(idle.remove(place));
            }
        }
        let shapes: Vec<Vec<u32>> = inputs.iter().map(|t| t.shape.iter().map(|n| *n as u32).collect()).collect();
        let codes: Vec<c_int> = inputs.iter().map(|t| t.dtype.code()).collect();
        let context = arrays.inputs.first().map_or(Context::cpu(0), NDArray::context).to_string();
        let list = self.functions.list.create(property::CREATE, &context, &shapes, &codes);
        let list = list.ok_or_else(|| refused(&self.op_type, "create_operator"))?;
        Ok(Instance { inputs, functions: Owned { list, delete: DELETE } })
    }

    /// Keeps an instance for later calls. If there are too many, the one that was used least
    /// recently goes.
    fn put(&self, instance: Instance) {
        let mut idle = self.idle.lock();
        idle.push(instance);
        let surplus = (idle.len() > IDLE).then(|| idle.remove(0));
        drop(idle);
        drop(surplus);
    }

    /// Runs a call in a thread of its own, where it may wait for arrays.
    fn start(self: &Arc<Self>, call: CustomCall) {
        let operator = self.clone();
        let run = move || {
            set_inside_call(true);
            call.finish(operator.run(call.arrays()));
        };
        if start_thread("mxrt-custom", run).is_none() {
            // The call was dropped with the closure, which fails it.
            let words = "the system has no thread or no memory for it";
            eprintln!("mxrt: a thread for the custom operator '{}': {words}", self.op_type);
        }
    }

    /// Runs a call, and waits for what it has pushed. The instance can be used again, or is gone,
    /// before the results are there.
    fn run(&self, arrays: &CustomArrays) -> Result<(), OpError> {
        let instance = self.take(arrays)?;
        let lists = [&arrays.inputs, &arrays.outputs, &arrays.states];
        let tagged = || lists.into_iter().zip(TAGS).flat_map(|(arrays, tag)| arrays.iter().map(move |a| (a, tag)));
        let tags: Vec<c_int> = tagged().map(|(_, tag)| tag).collect();
        let handles: Vec<*mut c_void> = tagged().map(|(array, _)| hold(array.clone())).collect();
        let requests = vec![WRITE; self.outputs.len()];
        if !instance.functions.list.forward(FORWARD, handles, &tags, &requests, self.is_train) {
            return Err(refused(&self.op_type, "forward"));
        }
        // A failure stays with the array that has it.
        arrays.outputs.iter().chain(&arrays.states).for_each(|array| drop(array.wait_to_read()));
        self.put(instance);
        Ok(())
    }
}

/// An operator as graphs ask for it; calls keep it.
struct Adapter(Arc<ProgramOperator>);

impl CustomOperator for Adapter {
    fn arguments(&self) -> Vec<String> {
        self.0.arguments.clone()
    }

    fn states(&self) -> Vec<String> {
        self.0.states.clone()
    }

    fn outputs(&self) -> Vec<String> {
        self.0.outputs.clone()
    }

    fn infer_shape(&self, arguments: &[PartialShape]) -> Result<CustomTypes<PartialShape>, OpError> {
        let whole = arguments.iter().all(PartialShape::is_complete);
        let extent = |n: &Option<usize>| n.map_or(0, |n| n as c_int);
        let known = arguments.iter().map(|s| s.dims().unwrap_or(&[]).iter().map(extent).collect::<Vec<_>>());
        let mut shapes: Vec<Vec<c_int>> = known.collect();
        // Where the arguments are known and one is empty, a 0 stands for itself.0.
        let empty = whole && shapes.iter().flatten().any(|n| *n == 0);
        shapes.resize(self.0.total(), Vec::new());
        let found = self.0.functions.list.infer_shape(property::INFER_SHAPE, &mut shapes);
        let found = found.ok_or_else(|| refused(&self.0.op_type, "infer_shape"))?;
        let shape = |dims: Vec<c_int>| {
            let open = |n: &c_int| usize::try_from(*n).ok().filter(|n| empty || *n != 0);
            PartialShape::from_dims(dims.iter().map(open))
        };
        Ok(self.0.divide(found.into_iter().map(shape).collect()))
    }

    fn infer_dtype(&self, arguments: &[Option<DType>]) -> Result<CustomTypes<Option<DType>>, OpError> {
        let mut codes: Vec<c_int> = arguments.iter().map(|dtype| dtype.map_or(UNKNOWN, DType::code)).collect();
        codes.resize(self.0.total(), UNKNOWN);
        if !self.0.functions.list.has(property::INFER_TYPE) {
            // Without the function all have the type of the first.
            let first = arguments.iter().copied().flatten().next();
            return Ok(self.0.divide(vec![first; self.0.total()]));
        }
        if !self.0.functions.list.infer_type(property::INFER_TYPE, &mut codes) {
            return Err(refused(&self.0.op_type, "infer_type"));
        }
        Ok(self.0.divide(codes.into_iter().map(DType::from_code).collect()))
    }

    fn begin(&self, call: CustomCall) {
        self.0.start(call);
    }
}

c_functions! {
    /// Makes an operator of the program known by a name, which `Custom` nodes have as `op_type`.
    /// `creator` is called when a graph or a call names it, and fills in functions and their
    /// arguments, as in MXNet. They are called from threads of the library; `forward` gets handles
    /// of arrays, frees them, and may wait. What `create_operator` makes serves one call at a time;
    /// up to 32 that are idle are kept until the operator goes.
    fn MXCustomOpRegister(op_type: *const c_char, creator: CustomOpPropCreator) {
        static SOURCE: ForkSafeOnce<()> = ForkSafeOnce::new();
        let name = text(op_type, "op_type")?.to_owned();
        let creator = Creator::new(creator).ok_or_else(|| Error::value("the argument creator is a null pointer"))?;
        SOURCE.get_or_init(|| register_custom_operators(Arc::new(Registered)));
        CREATORS.write().push((name, creator));
        Ok(())
    }
}

pub use crate::callbacks::CustomOpPropCreator;
