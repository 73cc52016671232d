//! Endpoints for files, in addition to those of the protocol: inference from a `.npy`, a `.npz` or
//! an image, and the paths of MXNet Model Server.

use super::EndpointCall;
use super::exchange::Exchange;
use crate::account::{Account, Charge};
use crate::body::{room, unwritten};
use crate::hooks::{HookArray, HookRequest};
use crate::model::{Feed, Model, TensorInfo, TensorPart};
use crate::preprocess::is_image;
use crate::protocol::forms::{self, Field};
use crate::protocol::{datatype_of, npy, numbers, recordio, short};
use crate::refusal::{Outcome, Refusal};
use crate::server::Answer;
use crate::service::{Schedule, Service, hooked};
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use mxrt_tensor::{DType, NDArray, ReadGuard, Shape, TensorType};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// Number of classes that a response with class names lists for each row.
const CLASSES: usize = 5;

/// Charges a number of bytes before they are taken.
type Charging<'a> = &'a mut dyn FnMut(usize) -> Result<(), Refusal>;

/// Format of a response.
#[derive(Clone, Copy, Debug)]
pub(super) enum ResponseFormat {
    /// `.npy` of the only output, or `.npz` of several
    Numpy,
    /// JSON: the best classes by name if the model has labels, otherwise the numbers
    Json,
    /// JSON: nested lists of the only output, or a list with those of each
    Lists,
    /// a line for each row of the only output
    Csv,
}

/// `POST /models/{model}/infer`
pub(super) async fn infer(call: EndpointCall) -> Result<Answer, Refusal> {
    answer(call, Ok(ResponseFormat::Numpy)).await
}

/// `POST /predictions/{model}`
pub(super) async fn predictions(call: EndpointCall) -> Result<Answer, Refusal> {
    answer(call, Ok(ResponseFormat::Json)).await
}

/// Answers a request in this form. A model whose hook writes the response may be asked for a form
/// that the server does not have.
pub(super) async fn answer(call: EndpointCall, form: Result<ResponseFormat, Refusal>) -> Result<Answer, Refusal> {
    let (mut exchange, model) = Exchange::begin(call).await?;
    let result = match model {
        Ok(model) => from_body(&mut exchange, model, form).await,
        Err(refusal) => Err(refusal),
    };
    exchange.end(result).await
}

async fn from_body(
    exchange: &mut Exchange,
    model: Arc<Model>,
    form: Result<ResponseFormat, Refusal>,
) -> Result<Answer, Refusal> {
    let form = if model.hooks.is_some() { form } else { Ok(form?) };
    let Exchange { service, head, body, inference } = exchange;
    let bytes = body.take(None).await?;
    let schedule = Schedule::default();
    inference.admit(schedule)?;
    let headers = for_hooks(&model, &head.headers);
    let account = inference.account().clone();
    let content_type =
        head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let job = Decode { service: service.clone(), model: model.clone(), account, headers, content_type, bytes };
    let arrays = hooked::run(inference, &model, schedule, move || job.run()).await?;
    body.forget();
    let results = inference.compute(arrays, schedule).await?;
    let job = Encode { service: service.clone(), model: model.clone(), account: inference.account().clone(), results };
    hooked::run(inference, &model, schedule, move || job.run(form)).await
}

/// Returns the headers for hooks; none if the model has no hooks.
fn for_hooks(model: &Model, headers: &HeaderMap) -> Vec<(String, String)> {
    let header = |(name, value): (&HeaderName, &HeaderValue)| Some((name.to_string(), value.to_str().ok()?.to_owned()));
    if model.hooks.is_some() { headers.iter().filter_map(header).collect() } else { Vec::new() }
}

/// Request body to be decoded for a model.
struct Decode {
    service: Arc<Service>,
    model: Arc<Model>,
    account: Account,
    headers: Vec<(String, String)>,
    content_type: String,
    bytes: Vec<u8>,
}

impl Decode {
    fn run(&self) -> Result<Vec<NDArray>, Refusal> {
        let began = Instant::now();
        // Held as long as the parts, which exist in addition to the arrays made of them.
        let mut charges = Vec::new();
        let parts = self.tensors(&mut charges)?;
        let arrays = hooked::arrays_of(&self.service, &self.model, &self.account, parts)?;
        self.model.metrics.decode.add(began.elapsed());
        Ok(arrays)
    }

    /// Decodes the name, type and elements of each tensor. A csr matrix may come as a dense array.
    fn tensors(&self, charges: &mut Vec<Charge>) -> Result<Vec<TensorPart>, Refusal> {
        let parts = self.parts(charges)?;
        if !self.model.has_csr() {
            return Ok(parts);
        }
        let mut charge = |bytes: usize| self.account.charge(bytes).map(|charge| charges.push(charge));
        let mut tensors = Vec::new();
        for part in parts {
            match self.model.csr_named(&part.0) {
                Some(matrix) => tensors.extend(matrix.divided(part, &mut charge)?),
                None => tensors.push(part),
            }
        }
        Ok(tensors)
    }

    /// Decodes the name, type and elements of each input, and charges their bytes.
    fn parts(&self, charges: &mut Vec<Charge>) -> Result<Vec<TensorPart>, Refusal> {
        let mut charge = |bytes: usize| self.account.charge(bytes).map(|charge| charges.push(charge));
        if let Some(parts) = self.parts_of_hook(&mut charge)? {
            return Ok(parts);
        }
        let inputs = &self.model.inputs[..];
        if recordio::is_recordio(&self.content_type) {
            return self.parts_of_records(&mut charge);
        }
        let table;
        let fields = match &self.content_type {
            kind if forms::is_csv(kind) => {
                table = self.table(&mut charge)?;
                Ok(vec![Field { name: String::new(), content: table.as_bytes(), json: true }])
            }
            kind if forms::is_form(kind) => forms::multipart(kind, &self.bytes, inputs.len()),
            kind if forms::is_json(kind) => forms::json(&self.bytes, inputs.len()),
            _ => Ok(vec![Field { name: String::new(), content: &self.bytes, json: false }]),
        };
        let fields = fields.map_err(Refusal::invalid)?;
        if let [Field { content, json: false, .. }] = &fields[..]
            && content.starts_with(b"PK")
        {
            return self.parts_of_archive(content, &mut charge);
        }
        if self.model.lone_feed().is_none() && fields.iter().any(|field| field.name.is_empty()) {
            let words = "the model has several inputs: send a .npz, a form or a JSON object with each by its name";
            return Err(Refusal::invalid(words));
        }
        fields.iter().map(|field| self.part(field, &mut charge)).collect()
    }

    /// Decodes a field for its input. If the model has one input, any name will do, as the names
    /// are mostly those of files.
    fn part(&self, field: &Field<'_>, charge: Charging<'_>) -> Result<TensorPart, Refusal> {
        let tensors = &self.model.inputs;
        let input = tensors.iter().find(|input| input.name == field.name);
        let input = match (input, self.model.lone_feed(), self.model.csr_named(&field.name)) {
            (Some(input), ..) => input,
            (None, Some(feed), _) | (None, None, Some(feed)) => &feed.info,
            (None, None, None) => {
                let names = tensors.iter().map(|input| input.name.as_str()).collect::<Vec<_>>().join(", ");
                let name = short(&field.name);
                return Err(Refusal::invalid(format!("the model has no input '{name}'; it has {names}")));
            }
        };
        let content = field.content;
        if field.json || content.first() == Some(&b'[') {
            return self.part_of_json(input, content, charge);
        }
        if is_image(content) {
            let preprocess = self.model.settings.preprocess.as_ref();
            let words = "the model takes no images: its setting 'preprocess' says how they become inputs";
            let preprocess = preprocess.ok_or_else(|| Refusal::invalid(words))?;
            let most = self.service.config.max_pixels;
            let elements = preprocess.run(content, input.dtype, most, charge)?;
            return Ok((input.name.clone(), preprocess.tensor(input.dtype), elements));
        }
        let array = npy::read(content).map_err(|error| {
            let of = match &self.content_type[..] {
                "" => String::new(),
                kind => format!("the body is {}: ", short(kind)),
            };
            Refusal::invalid(format!("{of}expected a .npy, a .npz, a JPEG, a PNG, or lists of JSON: {error}"))
        })?;
        Ok((input.name.clone(), array.tensor, self.copied(array.bytes, charge)?))
    }

    /// Decodes nested lists of JSON for an input. The lists give its shape.
    fn part_of_json(&self, input: &TensorInfo, content: &[u8], charge: Charging<'_>) -> Result<TensorPart, Refusal> {
        let wrong = |words: String| Refusal::invalid(format!("input '{}': {words}", input.name));
        let text = std::str::from_utf8(content).map_err(|_| wrong("the JSON is not UTF-8".to_owned()))?;
        let tensor = TensorType::new(input.dtype, Shape::from(forms::extents(text).map_err(wrong)?));
        // Each element has at least one byte of text, so the length of the body bounds its size.
        let bytes = tensor.checked_bytes().filter(|bytes| *bytes <= content.len().saturating_mul(input.dtype.size()));
        let bytes = bytes.ok_or_else(|| wrong("the lists have different lengths".to_owned()))?;
        charge(bytes)?;
        let mut elements = Vec::new();
        room(&mut elements, bytes)?;
        elements.resize(bytes, 0);
        numbers::read(text, input.dtype, &tensor.shape, &mut elements).map_err(wrong)?;
        Ok((input.name.clone(), tensor, elements))
    }

    /// Returns the input of a body that gives rows for one, and the extents of a row, if they are
    /// known.
    fn input_of_rows(&self) -> Result<(&Feed, Option<Vec<usize>>), Refusal> {
        let Some(input) = self.model.lone_feed() else {
            return Err(Refusal::invalid("rows are for a model with one input; this model has several: send JSON"));
        };
        let row = input.info.shape.dims().and_then(|dims| dims.get(1..)?.iter().copied().collect());
        Ok((input, row))
    }

    /// Reads the records of SageMaker's algorithms, which have float32 rows.
    fn parts_of_records(&self, charge: Charging<'_>) -> Result<Vec<TensorPart>, Refusal> {
        let (input, row) = self.input_of_rows()?;
        if input.is_csr() {
            if input.info.dtype != DType::F32 {
                let words = format!("records are float32; the input '{}' is {}", input.info.name, input.info.dtype);
                return Err(Refusal::invalid(words));
            }
            let rows = recordio::csr_rows(&self.bytes, input.columns(), charge)?;
            return input.csr_parts(rows.values, &rows.columns, &rows.pointers);
        }
        let columns = row.as_ref().and_then(|row| row.iter().try_fold(1_usize, |all, extent| all.checked_mul(*extent)));
        let (columns, bytes) = recordio::rows(&self.bytes, columns, charge)?;
        let mut shape = vec![bytes.len() / (4 * columns).max(1)];
        shape.extend(row.unwrap_or_else(|| vec![columns]));
        Ok(vec![(input.info.name.clone(), TensorType::new(DType::F32, Shape::from(shape)), bytes)])
    }

    /// Returns the lines of CSV as lists of JSON, one for each row.
    fn table(&self, charge: Charging<'_>) -> Result<String, Refusal> {
        let (_, row) = self.input_of_rows()?;
        charge(self.bytes.len().saturating_mul(2))?;
        forms::csv(&self.bytes, row.as_deref()).map_err(Refusal::invalid)
    }

    fn copied(&self, bytes: &[u8], charge: Charging<'_>) -> Result<Vec<u8>, Refusal> {
        charge(bytes.len())?;
        let mut copy = Vec::new();
        room(&mut copy, bytes.len())?;
        copy.extend_from_slice(bytes);
        Ok(copy)
    }

    fn parts_of_archive(&self, content: &[u8], charge: Charging<'_>) -> Result<Vec<TensorPart>, Refusal> {
        // A full queue is not an error of the archive.
        let mut full = None;
        let mut charge_text = |bytes: usize| {
            charge(bytes).map_err(|refusal| {
                let words = refusal.message.clone();
                full = Some(refusal);
                words
            })
        };
        let bounds = npy::Bounds {
            arrays: self.model.inputs.len(),
            bytes: self.service.config.max_body,
            charge: &mut charge_text,
        };
        let arrays = npy::read_npz(content, bounds);
        let arrays = arrays.map_err(|words| full.unwrap_or_else(|| Refusal::invalid(words)))?;
        let part = |(name, file): (String, Vec<u8>)| {
            let array = npy::read(&file).map_err(|e| Refusal::invalid(format!("'{}': {e}", short(&name))))?;
            let bytes = self.copied(array.bytes, charge)?;
            Ok((name, array.tensor, bytes))
        };
        arrays.into_iter().map(part).collect()
    }

    /// Lets the model's hook decode the body. Returns `None` if there is no hook, or if the hook
    /// leaves it to the server.
    fn parts_of_hook(&self, charge: Charging<'_>) -> Result<Option<Vec<TensorPart>>, Refusal> {
        let Some(hooks) = &self.model.hooks else { return Ok(None) };
        let log = self.service.repository.log();
        // The hook gets a copy of the body.
        charge(self.bytes.len())?;
        let request = HookRequest { body: &self.bytes, headers: &self.headers };
        let made = hooks.before(&request).map_err(|error| hooked::refusal(error, &self.model, log))?;
        let Some(arrays) = made else { return Ok(None) };
        let part = |array: HookArray| {
            charge(array.bytes.len())?;
            hooked::part(&self.model, array).map_err(|error| hooked::refusal(error, &self.model, log))
        };
        arrays.into_iter().map(part).collect::<Result<_, _>>().map(Some)
    }
}

/// Results to be encoded as a response.
struct Encode {
    service: Arc<Service>,
    model: Arc<Model>,
    account: Account,
    results: Vec<NDArray>,
}

impl Encode {
    fn run(self, form: Result<ResponseFormat, Refusal>) -> Result<Answer, Refusal> {
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
        let model = &*self.model;
        let charge = self.service.answers.reserve(self.bytes())?;
        let guards = self.results.iter().map(NDArray::read).collect::<Result<Vec<_>, _>>();
        let guards = guards.map_err(|error| Refusal::failed(error.to_string()))?;
        let mut answer = match (form, &guards[..]) {
            (ResponseFormat::Numpy, [only]) => {
                let mut file = Vec::new();
                npy::write(only.tensor(), &mut file).map_err(unwritten)?;
                Answer::text(file, "application/x-npy")
            }
            (ResponseFormat::Lists, [only]) => Answer::text(lists(only)?, "application/json"),
            (ResponseFormat::Lists, _) => Answer::text(list_of_lists(&guards)?, "application/json"),
            (ResponseFormat::Csv, [only]) => Answer::text(lines(only)?, "text/csv"),
            (ResponseFormat::Csv, _) => {
                let words = "CSV is for a model with one output; this model has several: accept application/json";
                return Err(Refusal::invalid(words));
            }
            (ResponseFormat::Numpy, _) => {
                let arrays = model.outputs.iter().zip(&guards);
                let arrays = arrays.map(|(output, guard)| (output.name.as_str(), guard.tensor()));
                Answer::text(npy::write_npz(arrays).map_err(unwritten)?, "application/x-npz")
            }
            (ResponseFormat::Json, [only]) if is_of_classes(model, only)? => classes(model, only.tensor().bytes()),
            (ResponseFormat::Json, _) => {
                let mut text = vec![b'{'];
                for (output, guard) in model.outputs.iter().zip(&guards) {
                    numbers_of(output, guard, &mut text)?;
                }
                text.push(b'}');
                Answer::text(text, "application/json")
            }
        };
        answer.charge = Some(charge.settle(answer.body.len())?);
        Ok(answer)
    }
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
fn classes(model: &Model, bytes: &[u8]) -> Answer {
    let names = &model.classes;
    let value = if model.gives_probabilities { "probability" } else { "score" };
    let mut order: Vec<usize> = Vec::with_capacity(names.len());
    let mut row = |bytes: &[u8]| {
        let number = |class: usize| bytes[4 * class..4 * class + 4].try_into().map_or(f32::NAN, f32::from_le_bytes);
        order.clear();
        order.extend(0..names.len());
        order.sort_by(|a, b| number(*b).total_cmp(&number(*a)));
        let class = |class: &usize| json!({ value: number(*class), "class": names[*class] });
        Value::from(order.iter().take(CLASSES).map(class).collect::<Vec<_>>())
    };
    let mut rows: Vec<Value> = bytes.chunks_exact(4 * names.len()).map(&mut row).collect();
    Answer::json(&if rows.len() == 1 { rows.remove(0) } else { Value::from(rows) })
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
        refusal if refusal.outcome == Outcome::Invalid => {
            Refusal::invalid(format!("output '{}': {}", info.name, refusal.message))
        }
        refusal => refusal,
    })?;
    room(to, 1)?;
    to.push(b'}');
    Ok(())
}
