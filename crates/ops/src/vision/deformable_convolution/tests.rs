use crate::testing::{OpTest, assert_close, f32s};

fn convolution(name: &str, attrs: &[(&str, &str)]) -> OpTest {
    OpTest::new(name).attrs(attrs)
}

const ATTRS: [(&str, &str); 3] = [("kernel", "(2, 2)"), ("num_filter", "2"), ("pad", "(1, 0)")];

#[test]
fn without_shifts_it_is_a_convolution() {
    let x: Vec<f32> = (0..18).map(|v| v as f32 * 0.5 - 3.0).collect();
    let w: Vec<f32> = (0..16).map(|v| v as f32 * 0.25 - 2.0).collect();
    let bias = [1.0, -1.0];
    let want = convolution("Convolution", &ATTRS).f32([1, 2, 3, 3], &x).f32([2, 2, 2, 2], &w).f32([2], &bias).run();
    let want = f32s(&want, [1, 2, 4, 2]);
    let y = convolution("_contrib_DeformableConvolution", &ATTRS)
        .f32([1, 2, 3, 3], &x)
        .f32([1, 8, 4, 2], &[0.0; 64])
        .f32([2, 2, 2, 2], &w)
        .f32([2], &bias)
        .run();
    assert_close(&f32s(&y, [1, 2, 4, 2]), &want);
    let y = convolution("_contrib_ModulatedDeformableConvolution", &ATTRS)
        .f32([1, 2, 3, 3], &x)
        .f32([1, 8, 4, 2], &[0.0; 64])
        .f32([1, 4, 4, 2], &[1.0; 32])
        .f32([2, 2, 2, 2], &w)
        .f32([2], &bias)
        .run();
    assert_close(&f32s(&y, [1, 2, 4, 2]), &want);
}

#[test]
fn what_does_not_fit_is_named() {
    let error = |attrs: &[(&str, &str)], offset: [usize; 4]| {
        let zeros = vec![0.0; offset.iter().product()];
        convolution("_contrib_DeformableConvolution", attrs)
            .attr("no_bias", "True")
            .f32([1, 2, 3, 3], &[0.0; 18])
            .f32(offset, &zeros)
            .f32([2, 2, 2, 2], &[0.0; 16])
            .error()
            .message
            .clone()
    };
    assert!(error(&ATTRS, [1, 4, 4, 2]).starts_with("offset has shape (1, 4, 4, 2) but (1, 8, 4, 2)"));
    assert!(error(&[ATTRS[0], ATTRS[1]], [1, 8, 4, 2]).contains("needed"));
    assert!(error(&[("kernel", "2"), ATTRS[1]], [1, 8, 4, 2]).contains("2: (height, width)"));
    assert!(error(&[ATTRS[0], ATTRS[1], ("num_deformable_group", "3")], [1, 8, 4, 2]).contains("does not divide"));
}
