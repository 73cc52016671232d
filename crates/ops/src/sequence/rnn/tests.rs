use crate::testing::{OpTest, assert_close, f32s};

fn rnn(attrs: &[(&str, &str)]) -> OpTest {
    OpTest::new("RNN").attr("num_layers", "1").attrs(attrs)
}

#[test]
fn a_simple_layer_adds_input_and_state() {
    let y = rnn(&[("mode", "rnn_relu"), ("state_size", "1"), ("state_outputs", "True")])
        .f32([3, 1, 1], &[1.0, 2.0, -9.0])
        // Weights of input and state, then both biases.
        .f32([4], &[1.0, 10.0, 0.5, 0.25])
        .f32([1, 1, 1], &[1.0])
        .run_all();
    assert_close(&f32s(&y[0], [3, 1, 1]), &[11.75, 120.25, 1194.25]);
    assert_close(&f32s(&y[1], [1, 1, 1]), &[1194.25]);
}

#[test]
fn what_does_not_fit_is_named() {
    let error = |attrs: &[(&str, &str)], parameters: usize| {
        let zeros = vec![0.0; parameters];
        rnn(attrs).f32([3, 2, 1], &[0.0; 6]).f32([parameters], &zeros).f32([1, 2, 2], &[0.0; 4]).error().message.clone()
    };
    let gru = [("mode", "gru"), ("state_size", "2")];
    assert!(error(&gru, 10).starts_with("parameters has shape (10,) but (30,)"));
    assert!(error(&[gru[0], ("state_size", "0")], 10).contains("positive"));
    assert!(error(&[gru[0], gru[1], ("projection_size", "1")], 30).contains("lstm only"));
    assert!(error(&[gru[0], ("state_size", "9223372036854775807")], 30).contains("more parameters"));
}

/// Recorded from MXNet 1.9.1, which answers where the final states are asked for.
#[test]
fn a_projection_may_be_larger_than_the_state() {
    let parameters: Vec<f32> = (0..62).map(|v| v as f32 * 0.01).collect();
    let test = rnn(&[("mode", "lstm"), ("state_size", "2"), ("projection_size", "3"), ("state_outputs", "True")]);
    let test = test.f32([2, 1, 2], &[1.0; 4]).f32([62], &parameters);
    let y = test.f32([1, 1, 3], &[1.0; 3]).f32([1, 1, 2], &[1.0; 2]).run_all();
    let last = [0.711_494_7, 0.746_626_5, 0.781_758_4];
    assert_close(&f32s(&y[0], [2, 1, 3])[..3], &[0.697_911_8, 0.732_372_8, 0.766_834]);
    assert_close(&f32s(&y[0], [2, 1, 3])[3..], &last);
    assert_close(&f32s(&y[1], [1, 1, 3]), &last);
    assert_close(&f32s(&y[2], [1, 1, 2]), &[2.151_392_7, 2.242_474]);
}
