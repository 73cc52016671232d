//! Inference requests: any bytes give an error, or inputs whose numbers fit their types, and strings
//! that fit their shapes.

use mxrt_serve::protocol::numbers::{read, write};
use mxrt_serve::protocol::request::{Content, InferRequest, Most};
use mxrt_serve::protocol::strings;
use mxrt_tensor::Shape;

/// Largest input that is decoded here, in bytes: it keeps a run short. A server has its own limit.
const MOST_BYTES: usize = 1 << 16;
/// Numbers of inputs and outputs of the model that the requests are for.
const MOST: Most = Most { inputs: 8, outputs: 8 };

pub(super) fn run(bytes: &[u8]) {
    let Ok(request) = InferRequest::parse(bytes, MOST) else { return };
    let _ = request.binary_bytes();
    for input in &request.inputs {
        let shape = &input.tensor.shape;
        let Some(tensor) = input.tensor.numbers() else {
            run_strings(input.content, shape);
            continue;
        };
        let (dtype, wanted) = (tensor.dtype, tensor.checked_bytes().expect("a size that was checked"));
        match input.content {
            Content::Binary(size) => assert_eq!(size, wanted),
            Content::Text(text) => {
                assert!(shape.size() <= text.len());
                if wanted > MOST_BYTES {
                    continue;
                }
                let mut elements = vec![0; wanted];
                if read(text, dtype, shape, &mut elements).is_err() {
                    continue;
                }
                // What was read can be written, and is read as the same bits.
                let (mut written, mut again) = (Vec::new(), vec![0; wanted]);
                write(&elements, dtype, &mut written).expect("finite numbers");
                let written = std::str::from_utf8(&written).expect("text");
                read(written, dtype, shape, &mut again).expect("numbers");
                assert_eq!(again, elements);
            }
        }
    }
}

fn run_strings(content: Content<'_>, shape: &Shape) {
    let Content::Text(text) = content else { return };
    assert!(shape.size() <= text.len());
    let (mut elements, most) = (Vec::new(), strings::bound(text, shape));
    if strings::read(text, shape, &mut elements).is_err() {
        return;
    }
    assert!(elements.len() <= most);
    strings::check(&elements, shape).expect("strings");
    let (mut written, mut again) = (Vec::new(), Vec::new());
    strings::write(&elements, &mut written).expect("text");
    let written = std::str::from_utf8(&written).expect("text");
    strings::read(written, shape, &mut again).expect("strings");
    assert_eq!(again, elements);
}
