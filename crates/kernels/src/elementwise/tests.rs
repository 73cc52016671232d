use super::*;
use crate::par::Serial;
use crate::testing::{Reverse, Threads, random};
use half::f16;

#[test]
fn broadcasting_agrees_with_the_definition() {
    let shapes: [(&[usize], &[usize], &[usize]); 8] = [
        (&[2, 3, 4], &[2, 3, 4], &[2, 3, 4]),
        (&[2, 3, 4], &[3, 1], &[2, 3, 4]),
        (&[4], &[2, 3, 4], &[2, 3, 4]),
        (&[2, 1, 4], &[1, 3, 1], &[2, 3, 4]),
        (&[1], &[7], &[7]),
        (&[5, 1, 700], &[1, 9, 1], &[5, 9, 700]),
        (&[3, 40, 50], &[40, 1], &[3, 40, 50]),
        (&[2, 1, 3, 1, 5], &[1, 4, 1, 2, 1], &[2, 4, 3, 2, 5]),
    ];
    for (a_shape, b_shape, shape) in shapes {
        let a = random(a_shape.iter().product(), 1);
        let b = random(b_shape.iter().product(), 2);
        let n: usize = shape.iter().product();
        let (sa, sb) = (broadcast(a_shape, shape), broadcast(b_shape, shape));
        let expected: Vec<f32> = (0..n)
            .map(|i| {
                let (mut rest, mut oa, mut ob) = (i, 0, 0);
                for d in (0..shape.len()).rev() {
                    let k = (rest % shape[d]) as isize;
                    rest /= shape[d];
                    oa += k * sa[d];
                    ob += k * sb[d];
                }
                a[oa as usize] - b[ob as usize]
            })
            .collect();
        for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
            let mut out = vec![f32::NAN; n];
            binary_broadcast(par, Binary::Sub, &a, a_shape, &b, b_shape, &mut out, shape);
            assert_eq!(out, expected, "{a_shape:?} - {b_shape:?}");
        }
    }
}

#[test]
fn in_place_and_scalar_forms_give_what_the_plain_form_gives() {
    let (a, b) = (random(20011, 3), random(20011, 4));
    let (mut plain, mut other) = (vec![0.0; a.len()], a.clone());
    for op in [Binary::Add, Binary::Div, Binary::Maximum, Binary::Power] {
        binary(&Serial, op, &a, &b, &mut plain);
        other.copy_from_slice(&a);
        binary_inplace(&Threads(2), op, &mut other, &b);
        assert!(same_bits(&plain, &other));
        let scalars = vec![1.5; a.len()];
        binary(&Serial, op, &a, &scalars, &mut plain);
        binary_scalar(&Threads(2), op, &a, 1.5, &mut other);
        assert!(same_bits(&plain, &other));
        binary(&Serial, op, &scalars, &a, &mut plain);
        scalar_binary(&Reverse, op, 1.5, &a, &mut other);
        assert!(same_bits(&plain, &other));
    }
    unary(&Serial, Unary::Tanh, &a, &mut plain);
    other.copy_from_slice(&a);
    unary_inplace(&Threads(3), Unary::Tanh, &mut other);
    assert!(same_bits(&plain, &other));
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

#[test]
fn sums_of_products_are_not_contracted() {
    let x = random(1003, 5);
    let (mut products, mut sums) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    binary_scalar(&Serial, Binary::Mul, &x, 0.1, &mut products);
    binary_scalar(&Serial, Binary::Add, &products, 0.3, &mut sums);
    assert!(sums.iter().zip(&x).all(|(&o, &v)| o == 0.1 * v + 0.3));
}

fn map<T: Element>(op: Unary, x: &[T]) -> Vec<T> {
    let mut out = vec![T::ZERO; x.len()];
    unary(&Serial, op, x, &mut out);
    out
}

fn join<T: Element>(op: Binary, a: &[T], b: &[T]) -> Vec<T> {
    let mut out = vec![T::ZERO; a.len()];
    binary(&Serial, op, a, b, &mut out);
    out
}

#[test]
fn integers_follow_c() {
    assert_eq!(join(Binary::Add, &[250u8, 1], &[10, 1]), [4, 2]);
    assert_eq!(join(Binary::Div, &[-7i32, 7, 5], &[2, -2, 0]), [-3, -3, 0]);
    assert_eq!(join(Binary::Mod, &[-7i32, 7, 5, 6], &[3, -3, 0, 3]), [2, -2, 0, 0]);
    assert_eq!(join(Binary::Power, &[2i64, -3, 2], &[10, 3, -1]), [1024, -27, 0]);
    assert_eq!(join(Binary::Greater, &[1i8, -1], &[0, 0]), [1, 0]);
    assert_eq!(join(Binary::FloatDiv, &[7i32], &[2]), [3]);
    assert_eq!(map(Unary::Negative, &[1u8, 0]), [255, 0]);
    assert_eq!(map(Unary::Sqrt, &[17i32, -1]), [4, i32::MIN]);
    assert_eq!(map(Unary::Rint, &[i64::MAX]), [i64::MAX]);
    assert_eq!(map(Unary::Clip { low: -1e12, high: 2.5 }, &[-5i32, 2, 3]), [-5, 2, 2]);
    assert_eq!(map(Unary::Abs, &[-5i8]), [5]);
    assert_eq!(map(Unary::Sign, &[-5i32, 0, 9]), [-1, 0, 1]);
}

#[test]
fn rounding_functions_differ_at_halves_as_in_mxnet() {
    let x = [-2.5f32, -1.5, -0.5, 0.5, 1.5, 2.4];
    assert_eq!(map(Unary::Rint, &x), [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0]);
    assert_eq!(map(Unary::Round, &x), [-3.0, -2.0, -1.0, 1.0, 2.0, 2.0]);
    assert_eq!(map(Unary::Fix, &x), [-2.0, -1.0, 0.0, 0.0, 1.0, 2.0]);
}

#[test]
fn sines_of_angles_of_any_size_have_the_same_bits_alone_and_among_others() {
    let large = |i: i32| 1e4 * 1.35f32.powi(i) * if i % 2 == 0 { 1.0 } else { -1.0 };
    let mut x: Vec<f32> = (0..1000).map(|i| if i % 7 == 0 { large(i / 7) } else { i as f32 }).collect();
    x.extend([1e10, 1e30, -1e30, f32::MAX, 12_800.0, 12_801.0, 1e6, 1_000_001.0, -0.0, 0.0, 1e-40]);
    for (op, exact) in [(Unary::Sin, f64::sin as fn(f64) -> f64), (Unary::Cos, f64::cos)] {
        for (y, x) in map(op, &x).into_iter().zip(x.iter()) {
            let want = exact(f64::from(*x));
            // Less than the distance of neighbours.
            let error = (f64::from(y) - want).abs();
            assert!(error <= 1.2e-7 * want.abs().max(f64::from(f32::MIN_POSITIVE)), "{op:?} of {x}: {y}, {want}");
            assert_eq!(map(op, &[*x])[0].to_bits(), y.to_bits(), "{op:?} of {x} alone");
        }
        assert!(map(op, &[f32::INFINITY, f32::NEG_INFINITY, f32::NAN]).iter().all(|y| y.is_nan()));
    }
    assert!(map(Unary::Sin, &[-0.0f32])[0].is_sign_negative());
}

#[test]
fn nan_passes_through_relu_clip_and_the_left_of_maximum() {
    let nan = f32::NAN;
    assert!(map(Unary::Relu, &[nan])[0].is_nan());
    assert!(map(Unary::Clip { low: 0.0, high: 1.0 }, &[nan])[0].is_nan());
    assert!(join(Binary::Maximum, &[nan], &[1.0])[0].is_nan());
    assert_eq!(join(Binary::NotEqual, &[nan], &[nan]), [1.0]);
}

#[test]
fn half_precision_is_single_precision_rounded() {
    let x: Vec<f16> = random(1000, 7).iter().map(|&v| f16::from_f32(v * 4.0)).collect();
    let wide: Vec<f32> = x.iter().map(|v| v.to_f32()).collect();
    for op in [Unary::Exp, Unary::Sigmoid, Unary::Square, Unary::Gamma, Unary::Sin] {
        let expected: Vec<f16> = map(op, &wide).into_iter().map(f16::from_f32).collect();
        let got = map(op, &x);
        assert!(got.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())));
    }
    assert_eq!(join(Binary::Mul, &[f16::from_f32(300.0)], &[f16::from_f32(300.0)]), [f16::INFINITY]);
}

#[test]
fn add_n_adds_in_order() {
    let (a, b, c) = (random(9000, 8), random(9000, 9), random(9000, 10));
    let mut out = vec![0.0; 9000];
    add_n(&Threads(2), &[&a, &b, &c], &mut out);
    assert!((0..9000).all(|i| out[i] == a[i] + b[i] + c[i]));
}

#[test]
fn limits_that_integers_cannot_hold_wrap_around_as_in_mxnet() {
    let bytes = |low, high, x: &[i8]| map(Unary::Clip { low, high }, x);
    assert_eq!(map(Unary::Clip { low: 1.0, high: -1.0 }, &[1u8, 2, 200]), [255; 3]);
    assert_eq!(map(Unary::Clip { low: -5.0, high: -2.0 }, &[5u8]), [254]);
    assert_eq!(bytes(300.0, 400.0, &[-128, 0, 44, 127]), [44; 4]);
    assert_eq!(bytes(-300.0, -200.0, &[-128, 0, 44, 127]), [56; 4]);
    assert_eq!(bytes(-300.0, 300.0, &[-128, 0, 127]), [-128, 0, 127]);
    assert_eq!(bytes(0.5, 44.5, &[-128, 0, 44, 127]), [0, 0, 44, 44]);
    // Numbers are compared in single precision.
    assert_eq!(map(Unary::Clip { low: -3e9, high: 16777216.0 }, &[16777217i32, 16777219]), [16777217, 16777216]);
    assert_eq!(map(Unary::Clip { low: 3e9, high: 4e9 }, &[5i32]), [i32::MIN]);
    assert_eq!(map(Unary::Clip { low: 3e19, high: 4e19 }, &[5i64]), [i64::MIN]);
}

#[test]
fn smooth_l1_of_integers_has_a_whole_parameter_as_in_mxnet() {
    let x = [-9i32, -3, 0, 1, 2, 3, 7];
    assert_eq!(map(Unary::SmoothL1 { sigma: 0.5 }, &x), [0; 7]);
    assert_eq!(map(Unary::SmoothL1 { sigma: 2.5 }, &x), [8, 2, 0, 0, 1, 2, 6]);
    for sigma in [20000.0, 70000.0] {
        assert_eq!(map(Unary::SmoothL1 { sigma }, &x), [9, 3, 0, 1, 2, 3, 7]);
        assert_eq!(map(Unary::SmoothL1 { sigma }, &x.map(|v| v as i8)), [8, 2, 0, 0, 1, 2, 6]);
    }
}

#[test]
fn only_numbers_from_1_on_have_an_inverse_hyperbolic_cosine() {
    let x = [-f32::INFINITY, -1e30, -65504.0, -1.0, 0.999];
    assert!(map(Unary::Acosh, &x).iter().all(|v| v.is_nan()));
    assert_eq!(map(Unary::Acosh, &[1.0f32, f32::INFINITY]), [0.0, f32::INFINITY]);
}

#[test]
fn zeros_have_the_sign_that_they_are_given() {
    let bits = |x: Vec<f32>| x.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
    assert_eq!(bits(join(Binary::Copysign, &[0.0, 0.0], &[-1.0, 1.0])), [1 << 31, 0]);
    assert_eq!(bits(map(Unary::Tanh, &[-0.0, 0.0])), [1 << 31, 0]);
    assert!(map(Unary::Tanh, &[f16::NEG_ZERO])[0].is_sign_negative());
}
