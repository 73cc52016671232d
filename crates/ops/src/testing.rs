//! Running one operator in a unit test: inference, binding and the kernel, without an engine.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::par::Serial;
use mxrt_tensor::{DType, TensorMut, TensorRef, TensorType};

/// Memory aligned for every element type.
struct Aligned {
    words: Vec<[u64; 8]>,
    len: usize,
}

impl Aligned {
    fn new(len: usize) -> Aligned {
        // Outputs that a kernel leaves unwritten show up as this pattern.
        Aligned { words: vec![[0xa5a5_a5a5_a5a5_a5a5; 8]; len.div_ceil(64) + 1], len }
    }

    /// 64-byte aligned start of the bytes: the vector itself is only 8-byte aligned.
    fn start(&self) -> usize {
        (64 - self.words.as_ptr() as usize % 64) % 64
    }

    fn bytes(&self) -> &[u8] {
        let start = self.start();
        &bytemuck::cast_slice(&self.words)[start..start + self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let (start, len) = (self.start(), self.len);
        &mut bytemuck::cast_slice_mut(&mut self.words)[start..start + len]
    }
}

/// An array of a test.
pub(crate) struct Array {
    pub tensor: TensorType,
    memory: Aligned,
}

impl Array {
    /// The elements.
    pub fn values<T: bytemuck::Pod>(&self) -> Vec<T> {
        bytemuck::cast_slice(self.memory.bytes()).to_vec()
    }
}

/// One call of an operator.
pub(crate) struct OpTest {
    def: &'static OpDef,
    attrs: Vec<(String, String)>,
    inputs: Vec<Array>,
    seed: u64,
}

impl OpTest {
    /// A call of the operator with this name or alias.
    pub fn new(name: &str) -> OpTest {
        let def = registry().get(name).unwrap_or_else(|| panic!("no operator {name}"));
        OpTest { def, attrs: Vec::new(), inputs: Vec::new(), seed: 7 }
    }

    /// The seed of a random operator.
    pub fn seed(self, seed: u64) -> OpTest {
        OpTest { seed, ..self }
    }

    /// Gives an attribute.
    pub fn attr(mut self, name: &str, value: &str) -> OpTest {
        self.attrs.push((name.into(), value.into()));
        self
    }

    /// Gives several attributes.
    pub fn attrs(self, pairs: &[(&str, &str)]) -> OpTest {
        pairs.iter().fold(self, |test, (name, value)| test.attr(name, value))
    }

    fn input<T: bytemuck::Pod>(mut self, dtype: DType, shape: &[usize], values: &[T]) -> OpTest {
        let tensor = TensorType::new(dtype, shape);
        let mut memory = Aligned::new(tensor.bytes());
        memory.bytes_mut().copy_from_slice(bytemuck::cast_slice(values));
        self.inputs.push(Array { tensor, memory });
        self
    }

    /// Gives an input of any rank.
    pub fn floats(self, shape: &[usize], values: &[f32]) -> OpTest {
        self.input(DType::F32, shape, values)
    }

    /// Gives an input.
    pub fn f32<const N: usize>(self, shape: [usize; N], values: &[f32]) -> OpTest {
        self.input(DType::F32, &shape, values)
    }

    /// Gives an input of half precision.
    pub fn f16<const N: usize>(self, shape: [usize; N], values: &[f32]) -> OpTest {
        let values: Vec<half::f16> = values.iter().map(|v| half::f16::from_f32(*v)).collect();
        self.input(DType::F16, &shape, &values)
    }

    /// Gives an input.
    pub fn i32<const N: usize>(self, shape: [usize; N], values: &[i32]) -> OpTest {
        self.input(DType::I32, &shape, values)
    }

    /// Gives an input.
    pub fn i8<const N: usize>(self, shape: [usize; N], values: &[i8]) -> OpTest {
        self.input(DType::I8, &shape, values)
    }

    /// Gives an input.
    pub fn u8<const N: usize>(self, shape: [usize; N], values: &[u8]) -> OpTest {
        self.input(DType::U8, &shape, values)
    }

    /// Gives an input of bool.
    pub fn bools(self, shape: &[usize], values: &[bool]) -> OpTest {
        let bytes: Vec<u8> = values.iter().map(|v| u8::from(*v)).collect();
        self.input(DType::Bool, shape, &bytes)
    }

    /// Gives the output of another operator as an input.
    pub fn array(mut self, array: Array) -> OpTest {
        self.inputs.push(array);
        self
    }

    /// The kernel.
    pub fn kernel(&self) -> Box<dyn Kernel> {
        let attrs = self.attrs.iter().map(|(k, v)| (k.as_str(), v.as_str()));
        let inputs: Vec<TensorType> = self.inputs.iter().map(|a| a.tensor.clone()).collect();
        let bound = self.def.parse_attrs(attrs).and_then(|attrs| {
            let outputs = infer_types(self.def, &attrs, &inputs)?;
            let options = KernelOptions::default();
            bind_kernel(self.def, &attrs, &Signature { inputs: &inputs, outputs: &outputs, options })
        });
        bound.unwrap_or_else(|e| panic!("{}: {}", self.def.name, e.message))
    }

    fn try_run(&self) -> Result<Vec<Array>, OpError> {
        let attrs = self.def.parse_attrs(self.attrs.iter().map(|(k, v)| (k.as_str(), v.as_str())))?;
        assert_eq!(self.inputs.len(), self.def.num_inputs(&attrs), "inputs of {}", self.def.name);
        let inputs: Vec<TensorType> = self.inputs.iter().map(|a| a.tensor.clone()).collect();
        let refs: Vec<TensorRef<'_>> =
            self.inputs.iter().map(|a| TensorRef::new(a.tensor.dtype, &a.tensor.shape, a.memory.bytes())).collect();
        let outputs = match self.def.rewrites.shapes_of_contents {
            Some(shapes) => infer_with_shapes(self.def, &attrs, &inputs, &shapes(&Serial, &attrs, &refs)?)?,
            None => infer_types(self.def, &attrs, &inputs)?,
        };
        let signature = Signature { inputs: &inputs, outputs: &outputs, options: KernelOptions::default() };
        let kernel = bind_kernel(self.def, &attrs, &signature)?;
        let packed = match kernel.packing() {
            None => None,
            Some(packing) => {
                let chosen: Vec<TensorRef<'_>> = packing.inputs().iter().map(|i| refs[*i]).collect();
                let mut memory = Aligned::new(packing.bytes());
                packing.pack(&Serial, &chosen, memory.bytes_mut())?;
                Some(memory)
            }
        };
        let mut results: Vec<Aligned> = outputs.iter().map(|t| Aligned::new(t.bytes())).collect();
        let mut outs: Vec<TensorMut<'_>> = outputs
            .iter()
            .zip(&mut results)
            .map(|(t, memory)| TensorMut::new(t.dtype, &t.shape, memory.bytes_mut()))
            .collect();
        let mut workspace = Aligned::new(kernel.workspace());
        kernel.run(&mut KernelCall {
            par: &Serial,
            inputs: &refs,
            outputs: &mut outs,
            workspace: workspace.bytes_mut(),
            packed: packed.as_ref().map(Aligned::bytes),
            shared: None,
            random: self.def.random.then_some(RandomKey { seed: self.seed, position: 1 }),
        })?;
        drop(outs);
        Ok(outputs.iter().cloned().zip(results).map(|(tensor, memory)| Array { tensor, memory }).collect())
    }

    /// All outputs.
    pub fn run_all(&self) -> Vec<Array> {
        self.try_run().unwrap_or_else(|e| panic!("{}: {}", self.def.name, e.message))
    }

    /// The only (or first) output.
    pub fn run(&self) -> Array {
        self.run_all().remove(0)
    }

    /// The error that the call must give.
    pub fn error(&self) -> OpError {
        match self.try_run() {
            Err(error) => error,
            Ok(_) => panic!("{} accepted what it must refuse", self.def.name),
        }
    }
}

/// The elements of a float32 array, whose shape must be this.
pub(crate) fn f32s<const N: usize>(array: &Array, shape: [usize; N]) -> Vec<f32> {
    assert_eq!(array.tensor, TensorType::new(DType::F32, shape));
    array.values()
}

/// The elements of a float16 array, whose shape must be this.
pub(crate) fn f16s<const N: usize>(array: &Array, shape: [usize; N]) -> Vec<f32> {
    assert_eq!(array.tensor, TensorType::new(DType::F16, shape));
    array.values::<half::f16>().into_iter().map(half::f16::to_f32).collect()
}

/// Asserts that two lists of numbers agree to single precision.
pub(crate) fn assert_close(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= 1e-5 * w.abs().max(1.0), "element {i}: {g}, expected {w}");
    }
}
