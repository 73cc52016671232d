//! Forms of computations with the matrices in the last two axes.

use mxrt_kernels::linalg::TriangularProduct;

/// A triangle of square matrices as a vector: a lower one row by row, an upper one column by
/// column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangle {
    /// rows of a matrix
    pub order: usize,
    /// elements of a vector
    pub count: usize,
    /// rows of a matrix before a lower triangle, or columns before an upper one
    pub far: usize,
    /// whether it is an upper triangle
    pub upper: bool,
}

/// Computations with batches of matrices. Matrices are square unless an extent says otherwise, and
/// `order` is the number of their rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixForm {
    /// Vectors of the elements of triangles.
    ExtractTriangles(Triangle),
    /// Matrices with these triangles, and zeros elsewhere.
    MakeTriangles(Triangle),
    /// Sums of the logarithms of diagonals.
    LogSums {
        /// rows of a matrix
        order: usize,
    },
    /// Products or quotients of triangular matrices, input 0, and the matrices of input 1.
    Triangular(TriangularProduct),
    /// Cholesky factors. A matrix that is not positive definite is an error.
    Cholesky {
        /// rows of a matrix
        order: usize,
        /// whether factors are lower triangular
        lower: bool,
    },
    /// Inverses of matrices that are given by their Cholesky factors. A zero on the diagonal is an
    /// error.
    CholeskyInverse {
        /// rows of a matrix
        order: usize,
        /// whether factors are lower triangular
        lower: bool,
    },
    /// Determinants; or their signs and the logarithms of their absolute values: outputs 0 and 1.
    Determinants {
        /// rows of a matrix
        order: usize,
        /// whether the outputs are signs and logarithms
        logarithms: bool,
    },
    /// Inverses. A singular matrix is an error.
    Inverses {
        /// rows of a matrix
        order: usize,
    },
    /// Eigenvectors, as rows, and eigenvalues in ascending order of symmetric matrices, outputs 0
    /// and 1. The first of the elements of largest magnitude of a vector is positive.
    SymmetricEigen {
        /// rows of a matrix
        order: usize,
    },
    /// Factors with orthonormal rows and lower triangular factors, outputs 0 and 1, by reflections.
    Orthonormal {
        /// rows and columns of a matrix; no more rows than columns
        size: [usize; 2],
    },
}
