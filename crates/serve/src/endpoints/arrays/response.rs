//! Responses with the outputs of a model as a file, as JSON, or as rows.

use crate::account::Account;
use crate::answer::Answer;
use crate::body::{room, unwritten};
use crate::model::{Model, TensorInfo};
use crate::protocol::{datatype_of, npy, numbers, recordio};
use crate::refusal::{Outcome, Refusal};
use crate::service::{Service, hooked};
use mxrt_tensor::{DType, NDArray, ReadGuard};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// Number of classes that a response with class names lists for each row.
const CLASSES: usize = 5;

/// Format of a response.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoints) enum ResponseFormat {
    /// `.npy` of the only output, or `.npz` of several
    Numpy,
    /// JSON: the best classes by name if the model has labels, otherwise the numbers
    Json,
    /// JSON: nested lists of the only output, or a list with those of each
    Lists,
    /// a line for each row of the only output
    Csv,
    /// a record of SageMaker's algorithms for each row
    Records,
}

/// Results to be encoded as a response.
pub(super) struct Encode {
    pub(super) service: Arc<Service>,
    pub(super) model: Arc<Model>,
    pub(super) account: Account,
    pub(super) results: Vec<NDArray>,
}

impl Encode {
    pub(super) fn run(self, form: Result<ResponseFormat, Refusal>) -> Result<Answer, Refusal> {
        let began = Instant::now();
        let answer = match self.of_hook()? {
            Some(answer) => answer,
            None => self.file(form?)?,
        };
        self.model.metrics.encode.add(began.elapsed());
        Ok(answer)
    }

    /// Lets the model's hook encode the response. Returns `None` if there is no hook, or if the
    /// hook leaves it to the server.
    fn of_hook(&self) -> Result<Option<Answer>, Refusal> {
        let Some(hooks) = &self.model.hooks else { return Ok(None) };
        // The hook gets a copy, and its response, of unknown size, is estimated as another one.
        let _copies = self.account.charge(2 * self.bytes())?;
        let arrays = hooked::outputs_of(&self.model, &self.results)?;
        let log = self.service.repository.log();
        let made = hooks.after(&arrays).map_err(|error| hooked::refusal(error, &self.model, log))?;
        Ok(made.map(|(body, content_type)| Answer {
            headers: vec![("content-type", content_type)],
            ..Answer::text(body, "application/octet-stream")
        }))
    }

    fn bytes(&self) -> usize {
        self.results.iter().map(|array| array.tensor_type().bytes()).sum()
    }

    fn file(&self, form: ResponseFormat) -> Result<Answer, Refusal> {
        let charge = self.service.answers.reserve(self.bytes())?;
        let guards = self.results.iter().map(NDArray::read).collect::<Result<Vec<_>, _>>();
        let guards = guards.map_err(|error| Refusal::failed(error.to_string()))?;
        let mut answer = written(&self.model, form, &guards)?;
        answer.charge = Some(charge.settle(answer.body.len())?);
        Ok(answer)
    }
}

/// Writes the outputs in a format.
fn written(model: &Model, form: ResponseFormat, outputs: &[ReadGuard<'_>]) -> Result<Answer, Refusal> {
    let named = || model.outputs.iter().zip(outputs).map(|(output, guard)| (output.name.as_str(), guard.tensor()));
    Ok(match (form, outputs) {
        (ResponseFormat::Numpy, [only]) => {
            let mut file = Vec::new();
            npy::write(only.tensor(), &mut file).map_err(unwritten)?;
            Answer::text(file, "application/x-npy")
        }
        (ResponseFormat::Numpy, _) => Answer::text(npy::write_npz(named()).map_err(unwritten)?, "application/x-npz"),
        (ResponseFormat::Lists, [only]) => Answer::text(lists(only)?, "application/json"),
        (ResponseFormat::Lists, _) => Answer::text(list_of_lists(outputs)?, "application/json"),
        (ResponseFormat::Records, _) => {
            Answer::text(recordio::write(&named().collect::<Vec<_>>())?, recordio::CONTENT_TYPE)
        }
        (ResponseFormat::Csv, [only]) => Answer::text(lines(only)?, "text/csv"),
        (ResponseFormat::Csv, _) => {
            let words = "CSV is for a model with one output; this model has several: accept application/json";
            return Err(Refusal::invalid(words));
        }
        (ResponseFormat::Json, [only]) if is_of_classes(model, only)? => {
            Answer::text(classes(model, only.tensor().bytes())?, "application/json")
        }
        (ResponseFormat::Json, _) => Answer::text(object(model, outputs)?, "application/json"),
    })
}

/// Writes the outputs as a JSON object of their numbers by name.
fn object(model: &Model, outputs: &[ReadGuard<'_>]) -> Result<Vec<u8>, Refusal> {
    let mut text = vec![b'{'];
    for (output, guard) in model.outputs.iter().zip(outputs) {
        numbers_of(output, guard, &mut text)?;
    }
    text.push(b'}');
    Ok(text)
}

/// Writes the outputs as a JSON list of nested lists.
fn list_of_lists(outputs: &[ReadGuard<'_>]) -> Result<Vec<u8>, Refusal> {
    let mut text = vec![b'['];
    for (number, output) in outputs.iter().enumerate() {
        let part = lists(output)?;
        room(&mut text, part.len() + 2)?;
        text.extend(if number > 0 { &b","[..] } else { b"" });
        text.extend(part);
    }
    text.push(b']');
    Ok(text)
}

/// Returns whether an output has one number for each class that the model has a name for.
fn is_of_classes(model: &Model, output: &ReadGuard<'_>) -> Result<bool, Refusal> {
    let tensor = output.tensor();
    let (last, names) = (tensor.shape.last().copied(), model.classes.len());
    if names == 0 {
        return Ok(false);
    }
    if tensor.dtype == DType::F32 && last == Some(names) {
        return Ok(true);
    }
    let shape: &[usize] = tensor.shape;
    Err(Refusal::failed(format!("the output has the shape {shape:?}; the file of labels has {names} names")))
}

/// Writes the best classes of each row as MXNet Model Server does. The numbers are called
/// probabilities only if the last operator of the model gives such.
fn classes(model: &Model, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let names = &model.classes;
    let value = if model.gives_probabilities { "probability" } else { "score" };
    let (mut order, mut text) = (Vec::with_capacity(names.len()), Vec::new());
    let mut write = |words: &str| -> Result<(), Refusal> {
        room(&mut text, words.len())?;
        text.extend_from_slice(words.as_bytes());
        Ok(())
    };
    let is_list = bytes.len() != 4 * names.len();
    write(if is_list { "[" } else { "" })?;
    for (place, row) in bytes.chunks_exact(4 * names.len()).enumerate() {
        let number = |class: usize| row[4 * class..4 * class + 4].try_into().map_or(f32::NAN, f32::from_le_bytes);
        order.clear();
        order.extend(0..names.len());
        order.sort_by(|a, b| number(*b).total_cmp(&number(*a)));
        let class = |class: &usize| json!({ value: number(*class), "class": names[*class] });
        let best = Value::from(order.iter().take(CLASSES).map(class).collect::<Vec<_>>());
        write(if place > 0 { "," } else { "" })?;
        write(&best.to_string())?;
    }
    write(if is_list { "]" } else { "" })?;
    Ok(text)
}

/// Writes an output as nested lists of JSON.
fn lists(guard: &ReadGuard<'_>) -> Result<Vec<u8>, Refusal> {
    let (tensor, mut text) = (guard.tensor(), Vec::new());
    nested(tensor.shape, tensor.dtype, tensor.bytes(), &mut text)?;
    Ok(text)
}

fn nested(shape: &[usize], dtype: DType, bytes: &[u8], to: &mut Vec<u8>) -> Result<(), Refusal> {
    let (count, rest) = match shape {
        [count, rest @ ..] if !rest.is_empty() && !bytes.is_empty() => (*count, rest),
        _ => return numbers::write(bytes, dtype, to).map_err(unwritten),
    };
    for (number, part) in bytes.chunks_exact(bytes.len() / count).enumerate() {
        room(to, 2)?;
        to.push(if number == 0 { b'[' } else { b',' });
        nested(rest, dtype, part, to)?;
    }
    room(to, 1)?;
    to.push(b']');
    Ok(())
}

/// Writes an output as lines of numbers, one for each of its rows.
fn lines(guard: &ReadGuard<'_>) -> Result<Vec<u8>, Refusal> {
    let (tensor, mut text) = (guard.tensor(), Vec::new());
    let bytes = tensor.bytes();
    let count = tensor.shape.first().copied().unwrap_or(1);
    if bytes.is_empty() {
        return Ok(text);
    }
    for row in bytes.chunks_exact(bytes.len() / count) {
        let mut line = Vec::new();
        numbers::write(row, tensor.dtype, &mut line).map_err(unwritten)?;
        room(&mut text, line.len())?;
        text.extend(line.strip_prefix(b"[").and_then(|line| line.strip_suffix(b"]")).unwrap_or(&line));
        text.push(b'\n');
    }
    Ok(text)
}

/// Appends the name and numbers of an output to the JSON of the outputs before it.
fn numbers_of(info: &TensorInfo, guard: &ReadGuard<'_>, to: &mut Vec<u8>) -> Result<(), Refusal> {
    let tensor = guard.tensor();
    let shape: &[usize] = tensor.shape;
    let comma = if to.len() > 1 { "," } else { "" };
    let head = format!(
        "{comma}{}:{{\"datatype\":\"{}\",\"shape\":{},\"data\":",
        json!(info.name),
        datatype_of(tensor.dtype),
        json!(shape)
    );
    room(to, head.len())?;
    to.extend_from_slice(head.as_bytes());
    numbers::write(tensor.bytes(), tensor.dtype, to).map_err(|error| match unwritten(error) {
        refusal if refusal.outcome() == Outcome::Invalid => {
            Refusal::invalid(format!("output '{}': {}", info.name, refusal.message))
        }
        refusal => refusal,
    })?;
    room(to, 1)?;
    to.push(b'}');
    Ok(())
}
