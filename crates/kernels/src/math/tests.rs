use super::*;

/// The distance between numbers in single precision that are as large as this one.
fn ulp(value: f64) -> f64 {
    let least = f64::from(f32::MIN_POSITIVE);
    2f64.powi(value.abs().max(least).log2().floor() as i32 - 23)
}

/// Every 2003rd number in single precision between `low` and `high`.
fn numbers(low: f32, high: f32) -> impl Iterator<Item = f32> {
    let most = low.abs().max(high.abs()).to_bits();
    let all = (0..=most).step_by(2003).flat_map(|bits| [bits, bits | 1 << 31]).map(f32::from_bits);
    all.filter(move |x| (low..=high).contains(x))
}

/// The errors that `docs/differences.md` states.
#[test]
fn errors_of_functions_are_those_that_are_stated() {
    type Row = (&'static str, [f32; 2], fn(f32) -> f32, fn(f64) -> f64, f64);
    let rows: [Row; 23] = [
        ("sin", [-12_800.0, 12_800.0], sin_f32, f64::sin, 1.0),
        ("cos", [-12_800.0, 12_800.0], cos_f32, f64::cos, 1.0),
        ("sin of large angles", [-1e6, 1e6], far_sin_f32, f64::sin, 1.0),
        ("cos of large angles", [-1e6, 1e6], far_cos_f32, f64::cos, 1.0),
        ("exp", [-87.3, 88.7], exp_f32, f64::exp, 1.1),
        ("exp below the normal numbers", [-104.0, -87.3], exp_f32, f64::exp, 1.1),
        ("ln", [1e-38, 1e38], ln_f32, f64::ln, 2.0),
        ("tanh", [-20.0, 20.0], tanh_f32, f64::tanh, 2.0),
        ("sigmoid", [-87.0, 87.0], sigmoid_f32, sigmoid, 2.5),
        ("softrelu", [-87.0, 87.0], softrelu_f32, softrelu, 3.5),
        ("expm1", [-30.0, 88.7], expm1_f32, f64::exp_m1, 2.0),
        ("log1p", [-0.999, 1.0], ln_1p_f32, f64::ln_1p, 2.5),
        ("log1p of large numbers", [1.0, 3e38], ln_1p_f32, f64::ln_1p, 2.0),
        ("arctan", [-3e38, 3e38], atan_f32, f64::atan, 2.0),
        ("erf", [-6.0, 6.0], erf_f32, libm::erf, 2.5),
        ("gelu", [0.0, 100.0], gelu_f32, gelu, 2.0),
        ("selu", [-30.0, 100.0], selu_f32, selu, 4.0),
        ("cosh", [-89.4, 89.4], cosh_f32, f64::cosh, 2.0),
        ("sinh", [-89.4, 89.4], sinh_f32, f64::sinh, 2.5),
        ("erfinv", [-1.0, 1.0], erfinv_f32, erfinv, 0.5001),
        ("gamma", [1e-37, 35.0], gamma_f32, gamma, 0.5001),
        ("gamma of negative numbers", [-34.0, -1e-37], gamma_f32, gamma, 0.5001),
        ("round", [-1e9, 1e9], round_f32, f64::round, 0.0),
    ];
    for (name, [low, high], function, reference, most) in rows {
        for x in numbers(low, high) {
            let (got, want) = (f64::from(function(x)), reference(f64::from(x)));
            let error = if got == want { 0.0 } else { (got - want).abs() / ulp(want) };
            let both_nan = got.is_nan() && want.is_nan();
            assert!(error <= most || both_nan, "{name}({x}) = {got}, expected {want}: {error} ulp");
        }
    }
    // Next to whole quarters of a circle the rest of the division has few digits of the angle.
    for quarter in 1..8149 {
        let near = (f64::from(quarter) * std::f64::consts::FRAC_PI_2) as f32;
        for x in [near.next_down(), near, near.next_up()].map(f64::from) {
            for (got, want) in [(sin_f32(x as f32), x.sin()), (cos_f32(x as f32), x.cos())] {
                let error = (f64::from(got) - want).abs() / ulp(want);
                assert!(error <= 1.0, "of {x}: {got}, expected {want}: {error} ulp");
            }
        }
    }
    // Below zero the digits of 1 + erf cancel.
    for x in numbers(-100.0, 100.0) {
        let (got, want) = (f64::from(gelu_f32(x)), gelu(f64::from(x)));
        assert!((got - want).abs() <= 2.0 * ulp(f64::from(x)), "gelu({x}) = {got}, expected {want}");
    }
}

#[test]
fn errors_in_double_precision_are_those_that_are_stated() {
    type Row = (&'static str, [f64; 2], fn(f64) -> f64, fn(f64) -> f64, f64);
    let rows: [Row; 4] = [
        ("exp", [-708.0, 709.7], exp_f64, f64::exp, 1.6),
        ("ln", [1e-307, 1e308], ln_f64, f64::ln, 1.5),
        ("tanh", [-30.0, 30.0], tanh_f64, f64::tanh, 3.5),
        ("expm1", [-45.0, 709.7], expm1_f64, f64::exp_m1, 3.0),
    ];
    for (name, [low, high], function, reference, most) in rows {
        let top = f64::max(low.abs(), high.abs()).to_bits();
        // The standard library's functions are right to an ulp themselves.
        let all = (0..60_000u64).map(|i| i * (top / 60_000)).flat_map(|bits| [bits, bits | 1 << 63]);
        for x in all.map(f64::from_bits).filter(|x| (low..=high).contains(x)) {
            let (got, want) = (function(x), reference(x));
            let apart = got.to_bits().abs_diff(want.to_bits());
            assert!(apart as f64 <= most, "{name}({x}) = {got}, expected {want}: {apart} ulp");
        }
    }
    assert_eq!(exp_f64(-745.0), (-745.0f64).exp(), "subnormal results are kept");
    assert_eq!([exp_f64(f64::INFINITY), exp_f64(f64::NEG_INFINITY), exp_f64(0.0)], [f64::INFINITY, 0.0, 1.0]);
    assert_eq!([ln_f64(0.0), ln_f64(f64::INFINITY), ln_f64(1.0)], [f64::NEG_INFINITY, f64::INFINITY, 0.0]);
    assert!(ln_f64(-1.0).is_nan() && (ln_f64(5e-324) - 5e-324f64.ln()).abs() < 1e-12);
    assert_eq!([tanh_f64(f64::INFINITY), tanh_f64(-50.0), tanh_f64(1e-300)], [1.0, -1.0, 1e-300]);
    assert!(tanh_f64(-0.0).is_sign_negative());
    for i in -60_000..60_000 {
        let x = f64::from(i) * 1e-3;
        assert!((cos_f64(x) - x.cos()).abs() <= 1.7e-16, "cos({x}) = {}, expected {}", cos_f64(x), x.cos());
    }
    assert!(expm1_f64(-0.0).is_sign_negative() && expm1_f64(1e-300) == 1e-300 && expm1_f64(-50.0) == -1.0);
    assert!([exp_f64, ln_f64, tanh_f64, cos_f64, expm1_f64].iter().all(|f| f(f64::NAN).is_nan()));
}

#[test]
fn special_values_come_out_as_mathematics_has_them() {
    assert_eq!(exp_f32(f32::INFINITY), f32::INFINITY);
    assert_eq!(exp_f32(f32::NEG_INFINITY), 0.0);
    assert_eq!(exp_f32(0.0), 1.0);
    assert!(exp_f32(-100.0) > 0.0, "subnormal results are kept");
    for f in [exp_f32, ln_f32, tanh_f32, sigmoid_f32, softrelu_f32, erf_f32, gelu_f32, sin_f32, cos_f32] {
        assert!(f(f32::NAN).is_nan());
    }
    assert_eq!(ln_f32(0.0), f32::NEG_INFINITY);
    assert_eq!(ln_f32(f32::INFINITY), f32::INFINITY);
    assert!(ln_f32(-1.0).is_nan());
    assert_eq!(ln_f32(1.0), 0.0);
    assert_eq!([expm1_f32(f32::INFINITY), expm1_f32(f32::NEG_INFINITY)], [f32::INFINITY, -1.0]);
    assert_eq!([ln_1p_f32(f32::INFINITY), ln_1p_f32(-1.0)], [f32::INFINITY, f32::NEG_INFINITY]);
    assert!(ln_1p_f32(-1.5).is_nan());
    assert_eq!([atan_f32(f32::INFINITY), atan_f32(f32::NEG_INFINITY)], [1.0, -1.0].map(|s| s * 1.570_796_4));
    for f in [expm1_f32, ln_1p_f32, atan_f32] {
        assert!(f(f32::NAN).is_nan());
        assert_eq!([f(-0.0).to_bits(), f(0.0).to_bits(), f(1e-40).to_bits()], [1 << 31, 0, 1e-40f32.to_bits()]);
    }
    assert_eq!(tanh_f32(f32::INFINITY), 1.0);
    assert_eq!(tanh_f32(-50.0), -1.0);
    assert_eq!([tanh_f32(-0.0).to_bits(), tanh_f32(0.0).to_bits()], [1 << 31, 0]);
    assert!(sin_f32(-0.0).is_sign_negative() && sin_f32(f32::INFINITY).is_nan());
    for (reach, functions) in [(12_800f32, [sin_f32, cos_f32]), (1e6, [far_sin_f32, far_cos_f32])] {
        for f in functions {
            assert!([reach, -reach].iter().all(|x| !f(*x).is_nan() && f(x * 1.001).is_nan()), "beyond {reach}");
        }
    }
    assert_eq!([-2.5, -0.5, 0.5, 1.5, 1e30].map(rint_f32), [-3.0, -1.0, 0.0, 1.0, 1e30]);
    assert_eq!(sigmoid_f32(f32::NEG_INFINITY), 0.0);
    assert_eq!(softrelu_f32(f32::INFINITY), f32::INFINITY);
    assert_eq!(erf_f32(f32::NEG_INFINITY), -1.0);
    assert_eq!([-0.5, 0.5, 2.5, 0.5f32.next_down(), -8388607.5].map(round_f32), [-1.0, 1.0, 3.0, 0.0, -8388608.0]);
    assert_eq!([cosh_f32(f32::NEG_INFINITY), sinh_f32(f32::NEG_INFINITY)], [f32::INFINITY, f32::NEG_INFINITY]);
    assert!(cosh_f32(89.41).is_finite() && cosh_f32(89.42).is_infinite() && sinh_f32(-0.0).is_sign_negative());
    assert!([cosh_f32, sinh_f32, erfinv_f32, gamma_f32, round_f32].iter().all(|f| f(f32::NAN).is_nan()));
    assert_eq!([0.0, -0.0, 36.0, f32::INFINITY].map(gamma_f32), [1.0, -1.0, 1.0, 1.0].map(|s| s * f32::INFINITY));
    assert!([-1.0, -7.0, -1e30, f32::NEG_INFINITY].iter().all(|x| gamma_f32(*x).is_nan()));
    assert_eq!([-100.5, -101.5].map(|x| gamma_f32(x).to_bits()), [1 << 31, 0]);
    assert_eq!([1.0, -1.0, 0.0].map(erfinv_f32), [f32::INFINITY, f32::NEG_INFINITY, 0.0]);
    assert!(erfinv_f32(1.0f32.next_up()).is_nan() && erfinv_f32(-0.0).is_sign_negative());
    assert_eq!(erfinv(1.0), f64::INFINITY);
    assert_eq!(erfinv(-1.0), f64::NEG_INFINITY);
    assert!(erfinv(1.5).is_nan());
    assert_eq!(erfinv(0.0), 0.0);
}

#[test]
fn erfinv_undoes_erf() {
    for i in 1..2000 {
        let y = i as f64 * 0.0025;
        let x = libm::erf(y);
        if x < 1.0 {
            // Near 1 the argument itself carries only so many digits of the result.
            let slope = std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
            let limit = 1e-13 * y + 2.0 * f64::EPSILON / slope;
            assert!((erfinv(x) - y).abs() <= limit, "erfinv({x}) = {}, expected {y}", erfinv(x));
            assert_eq!(erfinv(-x), -erfinv(x));
        }
    }
    assert!((erfinv(1e-300) / 1e-300 - 0.886226925452758).abs() < 1e-12);
}

#[test]
fn mod_takes_the_sign_of_the_divisor() {
    for (a, b, want) in [(7.0, 3.0, 1.0), (-7.0, 3.0, 2.0), (7.0, -3.0, -2.0), (-7.0, -3.0, -1.0), (6.0, -3.0, 0.0)] {
        assert_eq!(modulo(a, b), want);
    }
    assert_eq!(modulo(5.0, 0.0), 0.0);
    // MXNet 1.9.1 gave these signs of zero.
    for (a, b, negative) in [(-1.0, 0.5, false), (-0.0, -2.0, false), (-1.0, -0.5, true), (-0.0, 2.0, true)] {
        assert_eq!((modulo(a, b), modulo(a, b).is_sign_negative()), (0.0, negative), "{a} % {b}");
    }
}

#[test]
fn rint_sends_halves_down() {
    for (x, want) in [(1.5, 1.0), (-0.5, -1.0), (2.5, 2.0), (2.6, 3.0), (-2.6, -3.0)] {
        assert_eq!(rint(x), want);
    }
}
