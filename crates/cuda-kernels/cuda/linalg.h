// Factorisations of square matrices, products with triangular ones, and what is read of their
// triangles and diagonals. Matrices are of any order. Where columns depend on each other, a block
// factorises a matrix; else a thread computes a number or a column.
#pragma once
#include "elementwise.h"

// Matrices of `order` rows, and a triangle of each as `count` numbers.
struct Triangles {
    void* to;
    const void* from;
    i64 n, count, far;    // elements of all matrices; rows, or columns of an upper triangle, before the triangle
    Divisor order;
    int upper, extract;    // whether the triangle is the upper one; whether `to` has the vectors
    int size, dtype;
};
KERNEL void __launch_bounds__(256, 2) triangles(Triangles p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 column = i % p.order, row = i / p.order % p.order, matrix = i / p.order / p.order;
        // The place in a lower triangle, which an upper one is when it is turned.
        i64 line = (p.upper ? column : row) - p.far, at = p.upper ? row : column;
        bool inside = line >= 0 && at <= line;
        i64 vector = matrix * p.count + line * (line + 1) / 2 + at;
        if (inside && p.extract)
            copy_element(p.to, vector, p.from, i, p.size);
        else if (inside)
            copy_element(p.to, i, p.from, vector, p.size);
        else if (!p.extract)
            store<i64>(p.to, p.dtype, i, 0);
    }
}
ENTRY(triangles)

// Columns of `count` matrices are multiplied with each other; the last matrix runs fastest.
struct KroneckerColumns {
    void* to;
    const void* from[OPERANDS];
    i64 n;
    Divisor columns, heights[OPERANDS];
    int count, dtype;
};
template <class T> DEVICE void kronecker_columns(const KroneckerColumns& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 row = i / p.columns, column = i % p.columns;
        T product = 1;
        ROLLED
        for (int m = p.count - 1; m >= 0; m--) {
            i64 within = row % p.heights[m];
            product = load<T>(p.from[m], p.dtype, within * p.columns + column) * product;
            row = row / p.heights[m];
        }
        store<T>(p.to, p.dtype, i, product);
    }
}
KERNEL void __launch_bounds__(256, 2) kronecker_columns_f32(KroneckerColumns p) {
    kronecker_columns<float>(p);
}
ENTRY(kronecker_columns_f32)
KERNEL void __launch_bounds__(256, 2) kronecker_columns_f64(KroneckerColumns p) {
    kronecker_columns<double>(p);
}
ENTRY(kronecker_columns_f64)

struct LogSums {
    void* to;
    const void* from;
    i64 n, order;
    int dtype, unused;
};
// The logarithms of a diagonal are summed in double precision, as on the CPU.
KERNEL void __launch_bounds__(256, 2) log_sums(LogSums p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        double sum = 0;
        ROLLED
        for (i64 j = 0; j < p.order; j++) sum += m_log(load<double>(p.from, p.dtype, (i * p.order + j) * p.order + j));
        store<double>(p.to, p.dtype, i, sum);
    }
}
ENTRY(log_sums)

// A batch of triangular matrices `a`, and matrices `b` that they multiply or are divided by. What
// follows is said of matrices on the left; others are turned by their steps.
struct Triangular {
    void* to;            // null: the solution is the result
    const void* a;
    const void* b;       // null: the identity
    void* solution;      // numbers in which a thread computes; it may be `b`
    const int* swaps;    // null, or rows of the solution that are exchanged in the end, the last first
    u64* status;         // null, or where a zero on the diagonal of `a` is reported
    i64 n;               // numbers of the results of products, columns of all solutions
    Divisor order, columns;
    i64 a_down, a_right, down, right;    // steps between rows and columns of `a`, and of `b` and the result
    double alpha;
    int lower, unit;    // whether `a` is lower triangular; whether its diagonal counts as ones
    int dtype, unused;
};
template <class T> DEVICE void triangular_product(const Triangular& p) {
    i64 order = p.order, columns = p.columns;
    ROLLED
    for (i64 e = first(); e < p.n; e += stride()) {
        i64 matrix = e / p.order / p.columns, within = e - matrix * order * columns;
        i64 i = p.right == 1 ? within / p.columns : within % p.order;
        i64 column = p.right == 1 ? within % p.columns : within / p.order;
        i64 a = matrix * order * order + i * p.a_down, b = matrix * order * columns + column * p.right;
        i64 end = p.lower ? i + 1 : order;
        T sum = 0;
        ROLLED
        for (i64 k = p.lower ? 0 : i; k < end; k++)
            sum += load<T>(p.a, p.dtype, a + k * p.a_right) * ((T)p.alpha * load<T>(p.b, p.dtype, b + k * p.down));
        store<T>(p.to, p.dtype, e, sum);
    }
}
KERNEL void __launch_bounds__(256, 2) triangular_product_f32(Triangular p) { triangular_product<float>(p); }
ENTRY(triangular_product_f32)
KERNEL void __launch_bounds__(256, 2) triangular_product_f64(Triangular p) { triangular_product<double>(p); }
ENTRY(triangular_product_f64)

// A thread for each column, which no other reads.
template <class T> DEVICE void triangular_solution(const Triangular& p) {
    i64 order = p.order, columns = p.columns;
    T* solution = (T*)p.solution;
    ROLLED
    for (i64 c = first(); c < p.n; c += stride()) {
        i64 matrix = c / p.columns, column = c % p.columns;
        i64 a = matrix * order * order, x = matrix * order * columns + column * p.right;
        ROLLED
        for (i64 step = 0; step < order; step++) {
            i64 i = p.lower ? step : order - 1 - step, end = p.lower ? i : order, row = a + i * p.a_down;
            T v = p.b ? (T)p.alpha * load<T>(p.b, p.dtype, x + i * p.down) : (T)(i == column);
            ROLLED
            for (i64 k = p.lower ? 0 : i + 1; k < end; k++)
                v -= load<T>(p.a, p.dtype, row + k * p.a_right) * solution[x + k * p.down];
            if (!p.unit) {
                T pivot = load<T>(p.a, p.dtype, row + i * p.a_right);
                if (p.status && pivot == 0) report_least(p.status, 1 + (u64)matrix);
                v /= pivot;
            }
            solution[x + i * p.down] = v;
            if (p.to) store<T>(p.to, p.dtype, x + i * p.down, v);
        }
        if (!p.swaps) continue;
        ROLLED
        for (i64 i = order - 1; i >= 0; i--) {
            i64 one = x + i * p.down, other = x + p.swaps[matrix * order + i] * p.down;
            T v = solution[one];
            solution[one] = solution[other];
            solution[other] = v;
        }
    }
}
KERNEL void __launch_bounds__(256, 2) triangular_solution_f32(Triangular p) { triangular_solution<float>(p); }
ENTRY(triangular_solution_f32)
KERNEL void __launch_bounds__(256, 2) triangular_solution_f64(Triangular p) { triangular_solution<double>(p); }
ENTRY(triangular_solution_f64)

// Products of matrices with what they are when turned, which is on the left.
struct Squared {
    void* to;
    const void* from;
    i64 n;
    Divisor order;
};
template <class T> DEVICE void squared(const Squared& p) {
    i64 order = p.order;
    ROLLED
    for (i64 e = first(); e < p.n; e += stride()) {
        i64 j = e % p.order, i = e / p.order % p.order;
        const T* from = (const T*)p.from + (e - i * order - j);
        T sum = 0;
        ROLLED
        for (i64 k = 0; k < order; k++) sum += from[k * order + i] * from[k * order + j];
        ((T*)p.to)[e] = sum;
    }
}
KERNEL void __launch_bounds__(256, 2) squared_f32(Squared p) { squared<float>(p); }
ENTRY(squared_f32)
KERNEL void __launch_bounds__(256, 2) squared_f64(Squared p) { squared<double>(p); }
ENTRY(squared_f64)

struct Cholesky {
    void* to;
    const void* from;
    u64* status;    // where a matrix that is not positive definite is reported
    i64 matrices, order;
    int lower, unused;
};
// Row `j` of the lower factor is complete when the rows behind it have lost what its column takes
// from them. An upper factor is the lower one, turned.
template <class T> DEVICE void cholesky(const Cholesky& p) {
    i64 n = p.order, down = p.lower ? n : 1, right = p.lower ? 1 : n;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    ROLLED
    for (i64 matrix = blockIdx.x; matrix < p.matrices; matrix += gridDim.x) {
        T* a = (T*)p.to + matrix * n * n;
        const T* from = (const T*)p.from + matrix * n * n;
        ROLLED
        for (i64 row = warp; row < n; row += warps)
            ROLLED
            for (i64 column = lane; column < n; column += 32) {
                bool kept = p.lower ? column <= row : column >= row;
                a[row * n + column] = kept ? from[row * n + column] : 0;
            }
        __syncthreads();
        ROLLED
        for (i64 j = 0; j < n; j++) {
            T pivot = a[j * n + j];
            // All threads read this. NaN is no reason to stop, as on the CPU.
            if (pivot <= 0) {
                if (threadIdx.x == 0) report_least(p.status, 1 + (u64)matrix);
                break;
            }
            T root = m_sqrt(pivot);
            ROLLED
            for (i64 i = j + 1 + threadIdx.x; i < n; i += blockDim.x) a[i * down + j * right] /= root;
            __syncthreads();
            if (threadIdx.x == 0) a[j * n + j] = root;
            ROLLED
            for (i64 row = j + 1 + warp; row < n; row += warps) {
                T factor = a[row * down + j * right];
                i64 end = p.lower ? row + 1 : n;
                ROLLED
                for (i64 column = (p.lower ? j + 1 : row) + lane; column < end; column += 32)
                    a[row * n + column] -= factor * a[column * down + j * right];
            }
            __syncthreads();
        }
    }
}
KERNEL void __launch_bounds__(256, 2) cholesky_f32(Cholesky p) { cholesky<float>(p); }
ENTRY_WITH_BARRIERS(cholesky_f32)
KERNEL void __launch_bounds__(256, 2) cholesky_f64(Cholesky p) { cholesky<double>(p); }
ENTRY_WITH_BARRIERS(cholesky_f64)

// Factors of matrices whose columns were exchanged, a lower one, and an upper one whose diagonal is
// ones.
struct Factors {
    void* factors;
    const void* from;
    int* swaps;         // null, or the column that each one was exchanged with
    void* sign;         // null: no determinants; alone they are the determinants
    void* logarithm;    // null, or of their absolute values
    i64 matrices, order;
};
template <class T> DEVICE void factorise(const Factors& p) {
    DYNAMIC_SHARED(int, chosen);
    i64 n = p.order;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    ROLLED
    for (i64 matrix = blockIdx.x; matrix < p.matrices; matrix += gridDim.x) {
        T* a = (T*)p.factors + matrix * n * n;
        const T* from = (const T*)p.from + matrix * n * n;
        ROLLED
        for (i64 i = threadIdx.x; i < n * n; i += blockDim.x) a[i] = from[i];
        bool odd = false;
        ROLLED
        for (i64 j = 0; j < n; j++) {
            T* row = a + j * n;
            __syncthreads();
            // The first of the largest numbers that are left of the row; one after NaN is none.
            if (warp == 0) {
                T most = m_fabs(row[j]);
                i64 at = j;
                ROLLED
                for (i64 k = j + 1 + lane; k < n; k += 32) {
                    T v = m_fabs(row[k]);
                    if (v > most) most = v, at = k;
                }
                ROLLED
                for (int mask = 16; mask; mask /= 2) {
                    T other = shuffle_xor(most, mask);
                    i64 other_at = shuffle_xor(at, mask);
                    if (other > most || (other == most && other_at < at)) most = other, at = other_at;
                }
                if (lane == 0) *chosen = (int)at;
            }
            __syncthreads();
            i64 pivot = *chosen;
            if (p.swaps && threadIdx.x == 0) p.swaps[matrix * n + j] = (int)pivot;
            if (pivot > j) {
                odd = !odd;
                ROLLED
                for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
                    T v = a[i * n + j];
                    a[i * n + j] = a[i * n + pivot];
                    a[i * n + pivot] = v;
                }
            }
            __syncthreads();
            T value = row[j];
            // The rest of the row is zero as well: there is nothing to eliminate.
            if (value == 0) continue;
            ROLLED
            for (i64 k = j + 1 + threadIdx.x; k < n; k += blockDim.x) row[k] /= value;
            __syncthreads();
            ROLLED
            for (i64 i = j + 1 + warp; i < n; i += warps) {
                T factor = a[i * n + j];
                ROLLED
                for (i64 k = j + 1 + lane; k < n; k += 32) a[i * n + k] -= factor * row[k];
            }
        }
        // This thread alone wrote the diagonal since the last barrier.
        if (!p.sign || threadIdx.x != 0) continue;
        double sign = odd ? -1 : 1, sum = 0;
        ROLLED
        for (i64 j = 0; j < n; j++) {
            double pivot = (double)a[j * n + j];
            sign *= pivot > 0 ? 1 : pivot < 0 ? -1 : 0;
            sum += m_log(m_fabs(pivot));
        }
        ((T*)p.sign)[matrix] = p.logarithm ? (T)sign : (T)sign * m_exp((T)sum);
        if (p.logarithm) ((T*)p.logarithm)[matrix] = (T)sum;
    }
}
KERNEL void __launch_bounds__(256, 2) factorise_f32(Factors p) { factorise<float>(p); }
ENTRY_WITH_BARRIERS(factorise_f32)
KERNEL void __launch_bounds__(256, 2) factorise_f64(Factors p) { factorise<double>(p); }
ENTRY_WITH_BARRIERS(factorise_f64)

// Lower triangular factors, and factors with orthonormal rows, of matrices with no more rows than
// columns.
struct Orthonormal {
    void* q;
    void* l;
    void* work;    // reflections: vector `i` in row `i` of a matrix, from column `i` on
    const void* from;
    i64 matrices, rows, columns;
};
// What all lanes get of the numbers of a warp: their sum, or the largest that is a number.
template <class T> DEVICE T over_lanes(bool most, T v) {
    ROLLED
    for (int mask = 16; mask; mask /= 2) {
        T other = shuffle_xor(v, mask);
        v = !most ? v + other : other > v ? other : v;
    }
    return v;
}
// The reflection that turns numbers `i` to `n` of a row into a multiple of the first unit vector
// replaces them. Returns the multiple. In each row a lane has every 32nd column, which no other
// lane touches.
template <class T> DEVICE double reflection(T* row, i64 i, i64 n) {
    i64 begin = i / 32 * 32 + threadIdx.x % 32;
    double first = 0, is_up = 0, largest = 0, others = 0, tail = 0;
    ROLLED
    for (i64 c = begin; c < n; c += 32) {
        double v = (double)row[c];
        if (c == i) first = v, is_up = v > 0 || (v == 0 && 1 / v > 0);
        double size = m_fabs(v);
        if (c > i && size > largest) largest = size;
        if (c > i && v != 0) others = 1;
    }
    double alpha = over_lanes(false, first);
    is_up = over_lanes(false, is_up), largest = over_lanes(true, largest), others = over_lanes(false, others);
    double scale = m_fabs(alpha) > largest ? m_fabs(alpha) : largest, unit = 1;
    // A length this small has few digits; NaN alone has none.
    ROLLED
    while (scale > 0 && others > 0 && scale < 2.2250738585072014e-308 / 2.220446049250313e-16) {
        const double UP = 1267650600228229401496703205376.0;
        ROLLED
        for (i64 c = begin; c < n; c += 32)
            if (c >= i) row[c] = (T)((double)row[c] * UP);
        alpha *= UP, scale *= UP, unit *= UP;
    }
    ROLLED
    for (i64 c = begin; c < n; c += 32) {
        double v = (double)row[c] / scale;
        if (c > i) tail += v * v;
    }
    tail = over_lanes(false, tail);
    double norm = scale * m_sqrt(alpha / scale * (alpha / scale) + tail), beta = is_up > 0 ? -norm : norm;
    double whole = (alpha - beta) / scale, length = scale * m_sqrt(whole * whole + tail);
    // Where the first number alone is not zero, nothing is reflected.
    bool reflects = others > 0;
    ROLLED
    for (i64 c = begin; c < n; c += 32) {
        double v = c == i ? alpha - beta : (double)row[c];
        if (c >= i) row[c] = reflects ? (T)(v / length * 1.4142135623730951) : 0;
    }
    return (reflects ? beta : alpha) / unit;
}
template <class T> DEVICE void reflect(T* row, const T* vector, i64 i, i64 n) {
    i64 begin = i / 32 * 32 + threadIdx.x % 32;
    T product = 0;
    ROLLED
    for (i64 c = begin; c < n; c += 32)
        if (c >= i) product += row[c] * vector[c];
    product = over_lanes(false, product);
    ROLLED
    for (i64 c = begin; c < n; c += 32)
        if (c >= i) row[c] -= product * vector[c];
}
template <class T> DEVICE void orthonormal(const Orthonormal& p) {
    i64 rows = p.rows, columns = p.columns;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    ROLLED
    for (i64 matrix = blockIdx.x; matrix < p.matrices; matrix += gridDim.x) {
        T* work = (T*)p.work + matrix * rows * columns;
        T* q = (T*)p.q + matrix * rows * columns;
        T* l = (T*)p.l + matrix * rows * rows;
        const T* from = (const T*)p.from + matrix * rows * columns;
        ROLLED
        for (i64 r = warp; r < rows; r += warps)
            ROLLED
            for (i64 c = lane; c < columns; c += 32) work[r * columns + c] = from[r * columns + c];
        ROLLED
        for (i64 i = 0; i < rows; i++) {
            T* row = work + i * columns;
            // Row `i` is what this warp made of it in the step before.
            if (warp == 0) {
                T beta = (T)reflection(row, i, columns);
                ROLLED
                for (i64 c = lane; c < rows; c += 32) l[i * rows + c] = c < i ? row[c] : c == i ? beta : 0;
            }
            __syncthreads();
            ROLLED
            for (i64 r = i + 1 + warp; r < rows; r += warps) reflect(work + r * columns, row, i, columns);
        }
        ROLLED
        for (i64 r = warp; r < rows; r += warps) {
            T* out = q + r * columns;
            ROLLED
            for (i64 c = lane; c < columns; c += 32) out[c] = c == r ? 1 : 0;
            ROLLED
            for (i64 i = r; i >= 0; i--) reflect(out, work + i * columns, i, columns);
        }
    }
}
KERNEL void __launch_bounds__(256, 2) orthonormal_f32(Orthonormal p) { orthonormal<float>(p); }
ENTRY_WITH_BARRIERS(orthonormal_f32)
KERNEL void __launch_bounds__(256, 2) orthonormal_f64(Orthonormal p) { orthonormal<double>(p); }
ENTRY_WITH_BARRIERS(orthonormal_f64)

// Eigenvectors and eigenvalues of symmetric matrices, of which the lower triangle is read, in three
// kernels: reflections leave a diagonal and the numbers beside it, rotations make the latter vanish
// and turn the vectors, and the vectors are put in order.
struct Eigen {
    void* vectors;
    void* values;
    const void* from;
    void* work;         // reflections: vector `k` in row `k`, from column `k + 1` on
    void* rows;         // the vectors, before they are in order
    void* lines;        // what a reflection has still to take from the rows: u q^T + q u^T; products
    double* numbers;    // of a matrix: its scale, NaN if it has no eigenvalues; see `EigenNumbers`
    u64* status;        // where a matrix is reported whose steps do not converge
    i64 matrices, order;
};
struct EigenNumbers {
    double *scale, *diagonal, *beside, *cosines, *sines;
    SPECIAL EigenNumbers(const Eigen& p, i64 matrix) {
        scale = p.numbers + matrix * (4 * p.order + 1), diagonal = scale + 1, beside = diagonal + p.order;
        cosines = beside + p.order, sines = cosines + p.order;
    }
};
// The factor that brings a matrix to a size where products neither overflow nor vanish. All warps
// find the same.
template <class T> DEVICE double eigen_scale(const T* from, i64 n) {
    int lane = threadIdx.x % 32;
    double most = 0, has_others = 0;
    ROLLED
    for (i64 row = 0; row < n; row++)
        ROLLED
        for (i64 column = lane; column <= row; column += 32) {
            double v = m_fabs((double)from[row * n + column]);
            if (v > most) most = v;
            if (!(v - v == 0)) has_others = 1;
        }
    most = over_lanes(true, most), has_others = over_lanes(false, has_others);
    if (has_others > 0) return infinity() - infinity();
    return most > 0 && !(most >= 1e-15 && most < 1e15) ? most : 1;
}
// Row[i..n] -= a * x + b * y.
template <class T> DEVICE void subtract_two(T* row, T a, const T* x, T b, const T* y, i64 i, i64 n) {
    ROLLED
    for (i64 c = i / 32 * 32 + threadIdx.x % 32; c < n; c += 32)
        if (c >= i) row[c] -= a * x[c] + b * y[c];
}
template <class T> DEVICE T dot_over_lanes(const T* x, const T* y, i64 i, i64 n) {
    T product = 0;
    ROLLED
    for (i64 c = i / 32 * 32 + threadIdx.x % 32; c < n; c += 32)
        if (c >= i) product += x[c] * y[c];
    return over_lanes(false, product);
}
// A number of a row in which each lane knows its own columns.
template <class T> DEVICE T of_lane(const T* row, i64 i) {
    return over_lanes<T>(false, (int)threadIdx.x % 32 == i % 32 ? row[i] : 0);
}
template <class T> DEVICE void tridiagonal(const Eigen& p) {
    i64 n = p.order;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    ROLLED
    for (i64 matrix = blockIdx.x; matrix < p.matrices; matrix += gridDim.x) {
        const T* from = (const T*)p.from + matrix * n * n;
        T* work = (T*)p.work + matrix * n * n;
        T* rows = (T*)p.rows + matrix * n * n;
        T *u = (T*)p.lines + matrix * 3 * n, *q = u + n, *products = q + n;
        EigenNumbers numbers(p, matrix);
        double scale = eigen_scale(from, n);
        if (threadIdx.x == 0) *numbers.scale = scale;
        if (scale != scale) continue;
        ROLLED
        for (i64 r = warp; r < n; r += warps)
            ROLLED
            for (i64 c = lane; c < n; c += 32) {
                T v = c <= r ? from[r * n + c] : from[c * n + r];
                work[r * n + c] = scale == 1 ? v : (T)((double)v / scale);
                if (r == 0) u[c] = q[c] = 0;
            }
        ROLLED
        for (i64 k = 0; k < n; k++) {
            T* row = work + k * n;
            // Row `k` is what this warp made of it in the step before.
            if (warp == 0) {
                subtract_two(row, of_lane(u, k), q, of_lane(q, k), u, k, n);
                double on = (double)of_lane(row, k), beside = 0;
                if (k + 2 < n)
                    beside = reflection(row, k + 1, n);
                else if (k + 1 < n)
                    beside = (double)of_lane(row, k + 1);
                if (k + 2 == n && lane == (k + 1) % 32) row[k + 1] = 0;
                if (lane == 0) numbers.diagonal[k] = on, numbers.beside[k] = beside;
            }
            __syncthreads();
            ROLLED
            for (i64 r = k + 1 + warp; r < n; r += warps) {
                T* other = work + r * n;
                subtract_two(other, u[r], q, q[r], u, k + 1, n);
                T product = dot_over_lanes(other, row, k + 1, n);
                if (lane == 0) products[r] = product;
            }
            __syncthreads();
            if (warp != 0) continue;
            T half = dot_over_lanes(products, row, k + 1, n) * (T)0.5;
            ROLLED
            for (i64 c = (k + 1) / 32 * 32 + lane; c < n; c += 32)
                if (c > k) u[c] = row[c], q[c] = products[c] - half * row[c];
        }
        ROLLED
        for (i64 r = warp; r < n; r += warps) {
            T* out = rows + r * n;
            ROLLED
            for (i64 c = lane; c < n; c += 32) out[c] = c == r ? 1 : 0;
            ROLLED
            for (i64 k = (r < n - 2 ? r : n - 2) - 1; k >= 0; k--) reflect(out, work + k * n, k + 1, n);
        }
    }
}
KERNEL void __launch_bounds__(256, 2) tridiagonal_f32(Eigen p) { tridiagonal<float>(p); }
ENTRY_WITH_BARRIERS(tridiagonal_f32)
KERNEL void __launch_bounds__(256, 2) tridiagonal_f64(Eigen p) { tridiagonal<double>(p); }
ENTRY_WITH_BARRIERS(tridiagonal_f64)

// What is far below the rounding of the largest number: where the rank is not full, the diagonal is
// rounding too, and nothing would be small next to it.
DEVICE double eigen_rounding(const EigenNumbers& a, i64 n) {
    double most = 0;
    ROLLED
    for (i64 i = 0; i < n; i++) {
        double on = m_fabs(a.diagonal[i]), beside = m_fabs(a.beside[i]);
        most = on > most ? on : most;
        most = beside > most ? beside : most;
    }
    double least = most * (2.220446049250313e-16 / 256);
    return least > 2.2250738585072014e-308 ? least : 2.2250738585072014e-308;
}
// One QL step on the rows from `low` to `high`, shifted by an estimate of the eigenvalue at `low`.
// Returns the number of rotations.
DEVICE int eigen_step(const EigenNumbers& a, i64 low, i64 high) {
    double *d = a.diagonal, *e = a.beside, half = (d[low + 1] - d[low]) / (2 * e[low]), root = m_hypot(half, 1.0);
    if (half < 0 || (half == 0 && 1 / half < 0)) root = -root;
    double g = d[high] - d[low] + e[low] / (half + root), s = 1, c = 1, shift = 0;
    int count = 0;
    ROLLED
    for (i64 i = high - 1; i >= low; i--, count++) {
        double f = s * e[i], b = c * e[i], r = m_hypot(f, g);
        e[i + 1] = r;
        if (r == 0) {
            // The matrix falls apart here.
            d[i + 1] -= shift;
            e[high] = 0;
            return count;
        }
        s = f / r, c = g / r, g = d[i + 1] - shift;
        double t = (d[i] - g) * s + 2 * c * b;
        shift = s * t, d[i + 1] = g + shift, g = c * t - b;
        a.cosines[count] = c, a.sines[count] = s;
    }
    d[low] -= shift, e[low] = g, e[high] = 0;
    return count;
}
template <class T> DEVICE void rotate_vectors(const Eigen& p) {
    // What the first thread says: the vector that rotations begin at, and their number.
    DYNAMIC_SHARED(int, said);
    i64 n = p.order;
    ROLLED
    for (i64 matrix = blockIdx.x; matrix < p.matrices; matrix += gridDim.x) {
        EigenNumbers numbers(p, matrix);
        T* rows = (T*)p.rows + matrix * n * n;
        if (*numbers.scale != *numbers.scale) continue;
        i64 low = 0;
        int steps = 0;
        double least = threadIdx.x == 0 ? eigen_rounding(numbers, n) : 0;
        ROLLED
        for (;;) {
            if (threadIdx.x == 0) {
                said[1] = -1;
                ROLLED
                for (; low < n; low++, steps = 0) {
                    i64 high = low;
                    ROLLED
                    for (; high < n - 1; high++) {
                        double size = m_fabs(numbers.diagonal[high]) + m_fabs(numbers.diagonal[high + 1]);
                        double beside = m_fabs(numbers.beside[high]);
                        if (beside <= 2.220446049250313e-16 * size || beside < least) break;
                    }
                    if (high == low) continue;
                    if (++steps > 80) {
                        report_least(p.status, 1 + (u64)matrix);
                        low = n;
                        break;
                    }
                    said[0] = (int)high, said[1] = eigen_step(numbers, low, high);
                    break;
                }
            }
            __syncthreads();
            int begin = said[0], count = said[1];
            if (count < 0) break;
            // A thread for each element of all vectors.
            ROLLED
            for (i64 column = threadIdx.x; column < n; column += blockDim.x) {
                T* at = rows + begin * n + column;
                T high = *at;
                ROLLED
                for (int i = 0; i < count; i++, at -= n) {
                    T c = (T)numbers.cosines[i], s = (T)numbers.sines[i], low_one = at[-n];
                    *at = s * low_one + c * high;
                    high = c * low_one - s * high;
                }
                *at = high;
            }
            __syncthreads();
        }
        // All have read what the first thread said before it begins the next matrix.
        __syncthreads();
    }
}
KERNEL void __launch_bounds__(256, 2) rotate_vectors_f32(Eigen p) { rotate_vectors<float>(p); }
ENTRY_WITH_BARRIERS(rotate_vectors_f32)
KERNEL void __launch_bounds__(256, 2) rotate_vectors_f64(Eigen p) { rotate_vectors<double>(p); }
ENTRY_WITH_BARRIERS(rotate_vectors_f64)

// In the order of eigenvalues -0 is before 0, as on the CPU.
DEVICE bool is_before(double a, double b) { return a < b || (a == b && bits_of(a) > bits_of(b) && a == 0); }
// A warp for each vector. The first of the numbers of largest magnitude is positive.
template <class T> DEVICE void order_vectors(const Eigen& p) {
    i64 n = p.order, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    ROLLED
    for (i64 v = blockIdx.x * warps + threadIdx.x / 32; v < p.matrices * n; v += gridDim.x * warps) {
        i64 matrix = v / Divisor{n}, vector = v % Divisor{n};
        EigenNumbers numbers(p, matrix);
        const T* row = (const T*)p.rows + v * n;
        double scale = *numbers.scale, value = scale == scale ? numbers.diagonal[vector] : 0, before = 0;
        T most = -1;
        i64 at = 0;
        ROLLED
        for (i64 c = lane; c < n && scale == scale; c += 32) {
            double other = numbers.diagonal[c];
            before += is_before(other, value) || (!is_before(value, other) && c < vector);
            T size = m_fabs(row[c]);
            if (size > most) most = size, at = c;
        }
        ROLLED
        for (int mask = 16; mask; mask /= 2) {
            T other = shuffle_xor(most, mask);
            i64 other_at = shuffle_xor(at, mask);
            if (other > most || (other == most && other_at < at)) most = other, at = other_at;
        }
        // Without eigenvalues all is NaN, in any order.
        i64 place = scale == scale ? (i64)over_lanes(false, before) : vector;
        bool turned = scale == scale && row[at] < 0;
        T* to = (T*)p.vectors + (matrix * n + place) * n;
        ROLLED
        for (i64 c = lane; c < n; c += 32) to[c] = scale != scale ? (T)scale : turned ? -row[c] : row[c];
        if (lane == 0) ((T*)p.values)[matrix * n + place] = (T)(value * scale);
    }
}
KERNEL void __launch_bounds__(256, 2) order_vectors_f32(Eigen p) { order_vectors<float>(p); }
ENTRY_WITH_BARRIERS(order_vectors_f32)
KERNEL void __launch_bounds__(256, 2) order_vectors_f64(Eigen p) { order_vectors<double>(p); }
ENTRY_WITH_BARRIERS(order_vectors_f64)
