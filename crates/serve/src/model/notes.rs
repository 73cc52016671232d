//! Notes next to the files of a model that give the shapes of its inputs: `model-shapes.json` of
//! SageMaker, and `signature.json` of MXNet Model Server.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Names and shapes of inputs.
type Shapes = Vec<(String, Vec<i64>)>;

#[derive(Deserialize)]
struct Signature {
    inputs: Vec<SignatureInput>,
}

#[derive(Deserialize)]
struct SignatureInput {
    data_name: String,
    data_shape: Vec<i64>,
}

#[derive(Deserialize)]
struct ModelShape {
    name: String,
    shape: Vec<i64>,
}

/// Reads both notes next to a symbol file. An extent below 1 may be any, and so may the batch of
/// `model-shapes.json`.
pub(super) fn shapes(symbol: &Path) -> Result<Shapes, String> {
    let mut found = Shapes::new();
    for input in read::<Vec<ModelShape>>(symbol, "model-shapes.json")?.into_iter().flatten() {
        let mut shape = extents(input.shape);
        shape.iter_mut().take(1).for_each(|batch| *batch = -1);
        found.push((input.name, shape));
    }
    if let Some(signature) = read::<Signature>(symbol, "signature.json")? {
        found.extend(signature.inputs.into_iter().map(|input| (input.data_name, extents(input.data_shape))));
    }
    Ok(found)
}

fn extents(shape: Vec<i64>) -> Vec<i64> {
    shape.into_iter().map(|extent| if extent >= 1 { extent } else { -1 }).collect()
}

/// Reads a note, if there is one.
fn read<T: DeserializeOwned>(symbol: &Path, name: &str) -> Result<Option<T>, String> {
    let file = symbol.with_file_name(name);
    if !file.is_file() {
        return Ok(None);
    }
    let text = mxrt_io::read_text(&file).map_err(|error| format!("{name}: {error}"))?;
    serde_json::from_str(&text).map(Some).map_err(|error| format!("{name}: {error}"))
}
