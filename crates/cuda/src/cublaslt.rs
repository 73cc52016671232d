//! Products by cuBLASLt. Its heuristics choose an algorithm for each product once, by extents, types
//! and layouts; all calls use that one, so their bits are the same.
//!
//! Matrices are stored column by column here, as in the library. Numbers are those of its header.

#![allow(non_snake_case)]

use crate::device::{CudaDevice, lock};
use crate::library::functions;
use crate::provider::Provider;
use cudarc::driver::sys::CUstream;
use mxrt_engine::device::{DeviceError, ErrorClass, StreamHandle};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

type LtHandle = *mut c_void;
type Data = *const c_void;

/// An algorithm, as the library writes it.
type Algorithm = [u64; 8];

/// Answer of the heuristics.
#[repr(C)]
#[derive(Default)]
struct FoundAlgorithm {
    algorithm: Algorithm,
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

functions! {
    cublasLtCreate(*mut LtHandle);
    cublasLtMatmulDescCreate(*mut LtHandle, c_int, c_int);
    cublasLtMatmulDescDestroy(LtHandle);
    cublasLtMatmulDescSetAttribute(LtHandle, c_int, Data, usize);
    cublasLtMatrixLayoutCreate(*mut LtHandle, c_int, u64, u64, i64);
    cublasLtMatrixLayoutDestroy(LtHandle);
    cublasLtMatrixLayoutSetAttribute(LtHandle, c_int, Data, usize);
    cublasLtMatmulPreferenceCreate(*mut LtHandle);
    cublasLtMatmulPreferenceDestroy(LtHandle);
    cublasLtMatmulPreferenceSetAttribute(LtHandle, c_int, Data, usize);
    cublasLtMatmulAlgoGetHeuristic(
        LtHandle, LtHandle, LtHandle, LtHandle, LtHandle, LtHandle, LtHandle, c_int, *mut FoundAlgorithm, *mut c_int
    );
    cublasLtMatmul(
        LtHandle, LtHandle, Data, Data, LtHandle, Data, LtHandle, Data, Data, LtHandle, *mut c_void, LtHandle, *const Algorithm,
        *mut c_void, usize, CUstream
    );
}

/// Attributes of a product.
const TRANSPOSE_LEFT: c_int = 3;
const TRANSPOSE_RIGHT: c_int = 4;
const EPILOGUE: c_int = 7;
const BIAS_POINTER: c_int = 8;
/// Attributes of a layout.
const BATCH_COUNT: c_int = 5;
const BATCH_STEP: c_int = 6;
/// Attributes of the heuristics.
const MAX_WORKSPACE: c_int = 1;
const LEAST_ALIGNMENTS: c_int = 5;
/// Values of the epilogue, which are added.
const NO_EPILOGUE: c_int = 1;
const RELU: c_int = 2;
const BIAS: c_int = 4;

/// Memory that an algorithm may use: what NVIDIA recommends for compute capability 9.0.
const WORKSPACE: usize = 32 << 20;
/// Bytes that the address of a bias is a multiple of.
const ALIGNED_BIAS: u64 = 16;

/// How a product of floats is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProductMath {
    /// float16 on tensor cores, with sums in float32
    Half,
    /// float32, exactly
    Single,
    /// float32, with factors that are rounded to TF32
    Tf32,
    /// float32, with factors that are rounded to bfloat16
    Brain,
}

impl ProductMath {
    /// The library's numbers for the elements and for the computation.
    fn types(self) -> (c_int, c_int) {
        const SINGLES: c_int = 0;
        match self {
            ProductMath::Half => (2, 68),
            ProductMath::Single => (SINGLES, 68),
            ProductMath::Tf32 => (SINGLES, 77),
            ProductMath::Brain => (SINGLES, 75),
        }
    }
}

/// A factor of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Factor {
    /// whether it is stored row by row
    pub transposed: bool,
    /// elements from a column to the next one, or from a row
    pub step: i64,
    /// elements from a matrix of the batch to the next one
    pub batch_step: i64,
}

/// A batch of products `left right`, then perhaps a residual, a bias of rows and the positive part.
/// Two products that are equal have the same algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixProduct {
    /// rows, columns, depth
    pub size: [u64; 3],
    /// number of products
    pub batch: i32,
    /// how it is computed
    pub math: ProductMath,
    /// left and right operand
    pub factors: [Factor; 2],
    /// the result, and the residual
    pub result: Factor,
    /// whether something is added to the columns
    pub bias: bool,
    /// whether something is added to the product
    pub residual: bool,
    /// whether negative numbers become 0
    pub relu: bool,
    /// bytes that the addresses of left and right operand and result are multiples of
    pub aligned: [u32; 3],
}

/// The operands of a call. Addresses of what the product does not have are 0.
#[derive(Clone, Copy, Debug)]
pub struct ProductOperands {
    /// address of the left and the right operand
    pub factors: [u64; 2],
    /// address of the result
    pub result: u64,
    /// address of what is added to the product
    pub residual: u64,
    /// address of what is added to the columns
    pub bias: u64,
    /// address of as many bytes as the plan says
    pub workspace: u64,
    /// factor of the product
    pub alpha: f32,
    /// factor of the residual
    pub beta: f32,
}

/// A product with its algorithm.
pub struct ProductPlan {
    product: MatrixProduct,
    /// layouts of the left and the right operand and of the result
    layouts: [Descriptor; 3],
    algorithm: Algorithm,
    workspace: usize,
}

// SAFETY: layouts are read alone once they are made, and the library's functions may be called from
// any thread.
unsafe impl Send for ProductPlan {}
// SAFETY: as above.
unsafe impl Sync for ProductPlan {}

impl ProductPlan {
    /// Bytes of memory that each call needs.
    pub fn workspace(&self) -> usize {
        self.workspace
    }
}

/// The library on a device. It stays open until the process ends.
pub(crate) struct CublasLt {
    functions: &'static Functions,
    handle: LtHandle,
    /// `None`: the library has no algorithm
    known: Mutex<HashMap<MatrixProduct, Option<Arc<ProductPlan>>>>,
}

// SAFETY: a handle of the library, which holds no stream; its functions may be called from any thread.
unsafe impl Send for CublasLt {}
// SAFETY: as above.
unsafe impl Sync for CublasLt {}

/// Description of a product or a matrix.
struct Descriptor {
    handle: LtHandle,
    destroy: unsafe extern "C" fn(LtHandle) -> c_int,
    set: unsafe extern "C" fn(LtHandle, c_int, Data, usize) -> c_int,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made by the library, and not used again.
        unsafe { (self.destroy)(self.handle) };
    }
}

impl Descriptor {
    fn set<T: Copy>(&self, attribute: c_int, value: T) -> Result<(), DeviceError> {
        // SAFETY: a descriptor, and the size of the value that its attribute has.
        check(unsafe { (self.set)(self.handle, attribute, (&raw const value).cast(), size_of::<T>()) })
    }
}

fn name_of(code: c_int) -> &'static str {
    match code {
        1 => "CUBLAS_STATUS_NOT_INITIALIZED",
        3 => "CUBLAS_STATUS_ALLOC_FAILED",
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        11 => "CUBLAS_STATUS_MAPPING_ERROR",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        NOT_SUPPORTED => "CUBLAS_STATUS_NOT_SUPPORTED",
        16 => "CUBLAS_STATUS_LICENSE_ERROR",
        _ => "an unknown status",
    }
}

/// The status of products that the library does not have.
const NOT_SUPPORTED: c_int = 15;

/// A status of the library.
fn check(code: c_int) -> Result<(), DeviceError> {
    let class = match code {
        0 => return Ok(()),
        3 => ErrorClass::OutOfMemory,
        _ => ErrorClass::Recoverable,
    };
    Err(DeviceError::new(class, code, format!("cuBLASLt returned {code}, {}", name_of(code))))
}

impl CublasLt {
    /// Opens the library for the current context.
    fn open() -> Result<CublasLt, DeviceError> {
        let refused = |why: String| Provider::CublasLt.refused(&why);
        let library = Provider::CublasLt.find().map_err(refused)?;
        let functions: &'static Functions = Box::leak(Box::new(Functions::load(&library).map_err(refused)?));
        let mut handle = std::ptr::null_mut();
        // SAFETY: a variable for the result.
        check(unsafe { (functions.cublasLtCreate)(&mut handle) })
            .map_err(|error| refused(format!("{}: no handle: {}", library.path, error.message)))?;
        Ok(CublasLt { functions, handle, known: Mutex::default() })
    }

    /// A description of a product. A bias has this address.
    fn product(&self, product: &MatrixProduct, bias: u64) -> Result<Descriptor, DeviceError> {
        let f = self.functions;
        let (_, computed) = product.math.types();
        let mut handle = std::ptr::null_mut();
        // SAFETY: a variable for the result. Factors of the result are floats.
        check(unsafe { (f.cublasLtMatmulDescCreate)(&mut handle, computed, 0) })?;
        let made = Descriptor { handle, destroy: f.cublasLtMatmulDescDestroy, set: f.cublasLtMatmulDescSetAttribute };
        for (attribute, factor) in [TRANSPOSE_LEFT, TRANSPOSE_RIGHT].into_iter().zip(&product.factors) {
            made.set(attribute, c_int::from(factor.transposed))?;
        }
        let (relu, added) = (if product.relu { RELU } else { 0 }, if product.bias { BIAS } else { 0 });
        made.set(EPILOGUE, if relu + added == 0 { NO_EPILOGUE } else { relu + added })?;
        if product.bias {
            made.set(BIAS_POINTER, bias)?;
        }
        Ok(made)
    }

    fn layout(
        &self,
        product: &MatrixProduct,
        [rows, columns]: [u64; 2],
        of: &Factor,
    ) -> Result<Descriptor, DeviceError> {
        let f = self.functions;
        let [rows, columns] = if of.transposed { [columns, rows] } else { [rows, columns] };
        let (elements, _) = product.math.types();
        let mut handle = std::ptr::null_mut();
        // SAFETY: a variable for the result.
        check(unsafe { (f.cublasLtMatrixLayoutCreate)(&mut handle, elements, rows, columns, of.step) })?;
        let made =
            Descriptor { handle, destroy: f.cublasLtMatrixLayoutDestroy, set: f.cublasLtMatrixLayoutSetAttribute };
        if product.batch > 1 {
            made.set(BATCH_COUNT, product.batch)?;
            made.set(BATCH_STEP, of.batch_step)?;
        }
        Ok(made)
    }

    fn preference(&self, product: &MatrixProduct) -> Result<Descriptor, DeviceError> {
        let f = self.functions;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a variable for the result.
        check(unsafe { (f.cublasLtMatmulPreferenceCreate)(&mut handle) })?;
        let (destroy, set) = (f.cublasLtMatmulPreferenceDestroy, f.cublasLtMatmulPreferenceSetAttribute);
        let made = Descriptor { handle, destroy, set };
        made.set(MAX_WORKSPACE, WORKSPACE)?;
        let [left, right, result] = product.aligned;
        for (attribute, bytes) in (LEAST_ALIGNMENTS..).zip([left, right, result, result]) {
            made.set(attribute, bytes)?;
        }
        Ok(made)
    }

    /// Asks the heuristics; `None`: there is no algorithm.
    fn plan(&self, product: &MatrixProduct) -> Result<Option<ProductPlan>, DeviceError> {
        let [rows, columns, depth] = product.size;
        let [left, right] = &product.factors;
        let layouts = [
            self.layout(product, [rows, depth], left)?,
            self.layout(product, [depth, columns], right)?,
            self.layout(product, [rows, columns], &product.result)?,
        ];
        let [a, b, c] = &layouts;
        // The address is looked at for its alignment alone.
        let description = self.product(product, ALIGNED_BIAS)?;
        let preference = self.preference(product)?;
        let (mut found, mut count) = (FoundAlgorithm::default(), 0);
        // SAFETY: descriptors of the library, and variables for one result and for the number of them.
        let code = unsafe {
            (self.functions.cublasLtMatmulAlgoGetHeuristic)(
                self.handle,
                description.handle,
                a.handle,
                b.handle,
                c.handle,
                c.handle,
                preference.handle,
                1,
                &mut found,
                &mut count,
            )
        };
        if code == NOT_SUPPORTED || (code == 0 && (count == 0 || found.state != 0)) {
            return Ok(None);
        }
        check(code)?;
        let (algorithm, workspace) = (found.algorithm, found.workspace);
        Ok(Some(ProductPlan { product: *product, layouts, algorithm, workspace }))
    }

    /// # Safety
    /// The contract of [`CudaDevice::multiply`].
    unsafe fn multiply(&self, plan: &ProductPlan, at: &ProductOperands, stream: CUstream) -> Result<(), DeviceError> {
        // A description holds the address of the bias, so each call has its own.
        let description = self.product(&plan.product, at.bias)?;
        let [a, b, c] = &plan.layouts;
        let place = |at: u64| std::ptr::with_exposed_provenance_mut::<c_void>(at as usize);
        let (residual, beta) = if plan.product.residual { (at.residual, at.beta) } else { (at.result, 0.0) };
        // SAFETY: descriptors of the library, numbers of the host that it reads before it returns, and
        // the addresses of the contract.
        check(unsafe {
            (self.functions.cublasLtMatmul)(
                self.handle,
                description.handle,
                (&raw const at.alpha).cast(),
                place(at.factors[0]),
                a.handle,
                place(at.factors[1]),
                b.handle,
                (&raw const beta).cast(),
                place(residual),
                c.handle,
                place(at.result),
                c.handle,
                &plan.algorithm,
                place(at.workspace),
                plan.workspace,
                stream,
            )
        })
    }
}

impl CudaDevice {
    /// The library on this device, opened by the first call.
    pub(crate) fn cublaslt(&self) -> Result<&CublasLt, DeviceError> {
        let providers = &self.providers;
        providers.kept(&providers.cublaslt, || self.with(|_| CublasLt::open())?)
    }

    /// The algorithm for a product, which the first call chooses; `None`: cuBLASLt has none.
    pub fn product_plan(&self, product: &MatrixProduct) -> Result<Option<Arc<ProductPlan>>, DeviceError> {
        let library = self.cublaslt()?;
        // Other threads that want the same one wait.
        let mut known = lock(&library.known);
        if let Some(plan) = known.get(product) {
            return Ok(plan.clone());
        }
        let plan = self.with(|_| library.plan(product))??.map(Arc::new);
        known.insert(*product, plan.clone());
        Ok(plan)
    }

    /// Submits a product.
    ///
    /// # Safety
    /// The addresses belong to this device until the work on the stream is done, and hold what the
    /// product of the plan says, which is one of this device.
    pub unsafe fn multiply(
        &self,
        stream: StreamHandle,
        plan: &ProductPlan,
        at: &ProductOperands,
    ) -> Result<(), DeviceError> {
        let library = self.cublaslt()?;
        // SAFETY: contract.
        self.submit_foreign(stream, |stream| unsafe { library.multiply(plan, at, stream) })
    }
}
