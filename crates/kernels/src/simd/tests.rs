use super::*;

struct Arithmetic;
struct ArithmeticArgs {
    a: Src,
    b: Src,
    out: Dst,
}
const RESULTS: usize = 11;

impl Body for Arithmetic {
    type Args = ArithmeticArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &ArithmeticArgs) {
        // SAFETY: the test passes 16 readable and 8 * 16 writable elements.
        unsafe {
            let (a, b) = (s.load(x.a, 0), s.load(x.b, 0));
            let all = [
                s.add(a, b),
                s.sub(a, b),
                s.mul(a, b),
                s.div(a, b),
                s.max(a, b),
                s.min(a, b),
                s.fma(a, b, a),
                s.fnma(a, b, a),
                s.clamp(a, s.splat(-1.0), s.splat(2.0)),
                s.deinterleave(a, b).0,
                s.deinterleave(a, b).1,
            ];
            for (i, v) in all.into_iter().enumerate() {
                s.store(x.out, i * LANES, v);
            }
        }
    }
}

#[test]
fn every_instruction_set_computes_what_scalar_code_computes_and_keeps_nan_when_clamping() {
    let a: Vec<f32> = (0..16).map(|i| if i == 5 { f32::NAN } else { i as f32 * 0.5 - 4.0 }).collect();
    let b: Vec<f32> = (0..16).map(|i| (i * i % 7) as f32 - 3.0).collect();
    for isa in Isa::ALL {
        let mut out = vec![0.0; RESULTS * LANES];
        let args = ArithmeticArgs { a: Src::new(&a), b: Src::new(&b), out: Dst::new(&mut out) };
        // SAFETY: 16 elements to read, RESULTS * 16 to write.
        unsafe { entry::<Arithmetic>(isa)(&args) };
        for i in 0..LANES {
            let (x, y) = (a[i], b[i]);
            let expected = [
                x + y,
                x - y,
                x * y,
                x / y,
                if x > y { x } else { y },
                if x < y { x } else { y },
                x * y + x,
                x - x * y,
                x.clamp(-1.0, 2.0),
                if i < 8 { a[2 * i] } else { b[2 * i - 16] },
                if i < 8 { a[2 * i + 1] } else { b[2 * i - 15] },
            ];
            for (r, e) in expected.into_iter().enumerate() {
                let got = out[r * LANES + i];
                assert!(got == e || (got.is_nan() && e.is_nan()), "{isa}: result {r}, lane {i}: {got}, expected {e}");
            }
        }
    }
}

struct Transpose;
impl Body for Transpose {
    type Args = (Src, Dst);
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, &(src, dst): &(Src, Dst)) {
        // SAFETY: the test passes 256 elements on both sides.
        unsafe {
            let mut v = [s.zero(); LANES];
            for i in 0..LANES {
                v[i] = s.load(src, i * LANES);
            }
            s.transpose(&mut v);
            for (i, row) in v.into_iter().enumerate() {
                s.store(dst, i * LANES, row);
            }
        }
    }
}

#[test]
fn a_transpose_exchanges_rows_and_columns_on_every_instruction_set() {
    let m: Vec<f32> = (0..256).map(|i| i as f32).collect();
    for isa in Isa::ALL {
        let mut t = vec![0.0; 256];
        // SAFETY: 256 elements on both sides.
        unsafe { entry::<Transpose>(isa)(&(Src::new(&m), Dst::new(&mut t))) };
        for i in 0..16 {
            for j in 0..16 {
                assert_eq!(t[i * 16 + j], m[j * 16 + i], "{isa}");
            }
        }
    }
}

struct Across;
impl Body for Across {
    type Args = (Src, Dst);
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, &(src, dst): &(Src, Dst)) {
        // SAFETY: the test passes 256 elements to read and 32 to write.
        unsafe {
            let mut v = [s.zero(); LANES];
            for i in 0..LANES {
                v[i] = s.load(src, i * LANES);
            }
            let mut again = v;
            s.store(dst, 0, across::<S, true>(s, &mut v));
            s.store(dst, LANES, across::<S, false>(s, &mut again));
        }
    }
}

#[test]
fn sixteen_vectors_have_their_largest_lanes_and_their_sums_in_one() {
    let m: Vec<f32> = (0..256).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
    for isa in Isa::ALL {
        let mut out = vec![0.0; 2 * LANES];
        // SAFETY: 256 elements to read, 32 to write.
        unsafe { entry::<Across>(isa)(&(Src::new(&m), Dst::new(&mut out))) };
        for (i, v) in m.chunks(LANES).enumerate() {
            assert_eq!(out[i], v.iter().copied().fold(f32::MIN, f32::max), "{isa}");
            assert_eq!(out[LANES + i], v.iter().sum::<f32>(), "{isa}");
        }
    }
}

struct Part;
impl Body for Part {
    type Args = (Src, usize, Dst);
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, &(src, n, dst): &(Src, usize, Dst)) {
        // SAFETY: the test passes n elements to read and 16 + n to write.
        unsafe {
            let v = s.load_part(src, 0, n, s.splat(7.0));
            s.store(dst, 0, v);
            s.store_part(dst, LANES, n, s.add(v, s.splat(1.0)));
        }
    }
}

#[test]
fn parts_of_vectors_leave_the_rest_alone_on_every_instruction_set() {
    for isa in Isa::ALL {
        for n in 0..=LANES {
            let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let mut out = [-1.0; 2 * LANES];
            // SAFETY: n elements to read, 16 + n to write.
            unsafe { entry::<Part>(isa)(&(Src::new(&a), n, Dst::new(&mut out[..LANES + n]))) };
            for i in 0..LANES {
                let (loaded, stored) = if i < n { (i as f32, i as f32 + 1.0) } else { (7.0, -1.0) };
                assert_eq!((out[i], out[LANES + i]), (loaded, stored), "{isa}: {n}, lane {i}");
            }
        }
    }
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "outside a buffer of 15")]
fn debug_builds_refuse_an_access_outside_the_buffer() {
    let (a, mut t) = (vec![0.0; 256], vec![0.0; 15]);
    // SAFETY: the bounds check panics before the write.
    unsafe { entry::<Transpose>(Isa::Portable)(&(Src::new(&a), Dst::new(&mut t))) };
}

/// A closure in a body that is not inlined is compiled without the instruction set, and every
/// instruction in it is a call.
#[cfg(target_arch = "x86_64")]
#[test]
fn no_instruction_is_called_as_a_function() {
    let program = std::env::current_exe().expect("tests have a program");
    let mut objdump = std::process::Command::new("objdump");
    let Ok(code) = objdump.args(["--disassemble", "--demangle", "--no-show-raw-insn"]).arg(program).output() else {
        panic!("objdump of binutils, which comes with the C compiler, is not installed");
    };
    let code = String::from_utf8_lossy(&code.stdout);
    let mut caller = "";
    let mut ours = 0;
    let mut called = Vec::new();
    for line in code.lines() {
        if line.ends_with(">:") {
            caller = line;
            ours += usize::from(caller.contains("mxrt_kernels"));
        } else if line.contains("::_mm") && caller.contains("mxrt_kernels") {
            called.push((caller, line));
        }
    }
    assert!(ours > 100, "objdump shows the functions of this program");
    assert!(called.is_empty(), "{called:#?}");
}

struct LinesBody;

impl PairsBody for LinesBody {
    type Args = ArithmeticArgs;
    #[inline(always)]
    unsafe fn run<S: Rounding>(s: S, x: &ArithmeticArgs) {
        // SAFETY: the test passes 16 readable and 3 * 16 writable elements.
        unsafe {
            let pairs = s.round_to_pairs(s.load(x.a, 0), s.load(x.b, 0));
            s.store(x.out, 0, pairs);
            let [low, high] = s.values_of_pairs(pairs);
            s.store(x.out, LANES, low);
            s.store(x.out, 2 * LANES, high);
        }
    }
}

#[test]
fn lines_have_the_same_bits_on_every_machine() {
    let mut bits = 7u32;
    for round in 0..5000 {
        let mut numbers = [0.0; 2 * LANES];
        for x in &mut numbers {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Any number, and numbers with few bits: NaN, infinities, denormal numbers.
            *x = f32::from_bits(if round % 2 == 0 { bits } else { bits & 0xff81_ff00 });
        }
        let mut all = [[0.0f32; 3 * LANES]; 2];
        for (isa, out) in [Isa::Portable, Isa::Avx512].into_iter().zip(&mut all) {
            let args =
                ArithmeticArgs { a: Src::new(&numbers[..LANES]), b: Src::new(&numbers[LANES..]), out: Dst::new(out) };
            // SAFETY: 16 elements to read twice, 48 to write.
            unsafe { entry_lines::<LinesBody>(isa)(&args) };
        }
        let [portable, best] = all.map(|out| out.map(f32::to_bits));
        assert_eq!(portable, best, "{numbers:?}");
        for (x, value) in numbers.iter().zip(&portable[LANES..]) {
            assert_eq!(*value, u32::from(crate::amx::parts::round(*x)) << 16, "{x:?}");
        }
    }
}
