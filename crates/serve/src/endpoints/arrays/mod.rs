//! Endpoints for files, in addition to those of the protocol: inference from a `.npy`, a `.npz` or
//! an image, and the paths of MXNet Model Server.

mod response;

use super::EndpointCall;
use super::exchange::Exchange;
use crate::account::Account;
use crate::answer::Answer;
use crate::body::room;
use crate::hooks::{HookArray, HookRequest};
use crate::model::{Feed, Model, TensorInfo, TensorPart};
use crate::preprocess::is_image;
use crate::protocol::forms::{self, Field};
use crate::protocol::{npy, numbers, recordio, short};
use crate::refusal::{Cause, Refusal};
use crate::service::{Schedule, Service, hooked};
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use mxrt_tensor::{DType, NDArray, Shape, TensorType};
use response::Encode;
pub(super) use response::ResponseFormat;
use std::sync::Arc;
use std::time::Instant;

/// Contents that are read as one array.
const READ: &str = "a .npy, a .npz, a JPEG, a PNG, or lists of JSON";

/// Charges a number of bytes before they are taken.
type Charging<'a> = &'a mut dyn FnMut(usize) -> Result<(), Refusal>;

/// `POST /models/{model}/infer`
pub(super) async fn infer(call: EndpointCall) -> Result<Answer, Refusal> {
    answer(call, ResponseFormat::Numpy).await
}

/// `POST /predictions/{model}`
pub(super) async fn predictions(call: EndpointCall) -> Result<Answer, Refusal> {
    answer(call, ResponseFormat::Json).await
}

async fn answer(call: EndpointCall, form: ResponseFormat) -> Result<Answer, Refusal> {
    let (mut exchange, model) = Exchange::begin(call).await?;
    let result = match model {
        Ok(model) => match exchange.body.take(None).await {
            Ok(bytes) => from_bytes(&mut exchange, model, bytes, Ok(form)).await,
            Err(refusal) => Err(refusal),
        },
        Err(refusal) => Err(refusal),
    };
    exchange.end(result).await
}

/// Answers a request whose body has been read, in this form. A model whose hook writes the
/// response may be asked for a form that the server does not have.
pub(super) async fn from_bytes(
    exchange: &mut Exchange,
    model: Arc<Model>,
    bytes: Vec<u8>,
    form: Result<ResponseFormat, Refusal>,
) -> Result<Answer, Refusal> {
    let content_type = exchange.content_type().to_owned();
    let Exchange { service, head, body, inference } = exchange;
    let schedule = Schedule::default();
    inference.admit(schedule)?;
    let headers = for_hooks(&model, &head.headers);
    let account = inference.account().clone();
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
        let mut held = self.account.charge(0)?;
        let parts = self.tensors(&mut |bytes| held.grow(bytes))?;
        let arrays = hooked::arrays_of(&self.service, &self.model, &self.account, parts)?;
        self.model.metrics.decode.add(began.elapsed());
        Ok(arrays)
    }

    /// Decodes the name, type and elements of each tensor. A csr matrix may come as a dense array.
    fn tensors(&self, charge: Charging<'_>) -> Result<Vec<TensorPart>, Refusal> {
        let parts = self.parts(charge)?;
        if !self.model.has_csr() {
            return Ok(parts);
        }
        let mut tensors = Vec::new();
        for part in parts {
            match self.model.csr_named(&part.0) {
                Some(matrix) => tensors.extend(matrix.divided(part, charge)?),
                None => tensors.push(part),
            }
        }
        Ok(tensors)
    }

    /// Decodes the name, type and elements of each input, and charges their bytes.
    fn parts(&self, charge: Charging<'_>) -> Result<Vec<TensorPart>, Refusal> {
        if let Some(parts) = self.parts_of_hook(charge)? {
            return Ok(parts);
        }
        let inputs = &self.model.inputs[..];
        if recordio::is_recordio(&self.content_type) {
            return self.parts_of_records(charge);
        }
        let table;
        let fields = match &self.content_type {
            kind if forms::is_csv(kind) => {
                table = self.table(charge)?;
                Ok(vec![Field { name: String::new(), content: table.as_bytes(), json: true }])
            }
            kind if forms::is_form(kind) => forms::multipart(kind, &self.bytes, inputs.len()),
            kind if forms::is_json(kind) => forms::json(&self.bytes, inputs.len()),
            kind => {
                check_file(kind, &self.bytes)?;
                Ok(vec![Field { name: String::new(), content: &self.bytes, json: false }])
            }
        };
        let fields = fields.map_err(Refusal::invalid)?;
        if let [Field { content, json: false, .. }] = &fields[..]
            && content.starts_with(b"PK")
        {
            return self.parts_of_archive(content, charge);
        }
        if self.model.lone_feed().is_none() && fields.iter().any(|field| field.name.is_empty()) {
            let words = "the model has several inputs: send a .npz, a form or a JSON object with each by its name";
            return Err(Refusal::invalid(words));
        }
        fields.iter().map(|field| self.part(field, charge)).collect()
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
        let array = npy::read(content).map_err(|error| self.no_array(&error))?;
        Ok((input.name.clone(), array.tensor, self.copied(array.bytes, charge)?))
    }

    /// Refuses content that is no array, in the words of what the client says that it is.
    fn no_array(&self, error: &str) -> Refusal {
        let kind = short(&self.content_type);
        Refusal::invalid(match &self.content_type[..] {
            "" => format!("expected {READ}: {error}"),
            image if image.starts_with("image/") => {
                format!("the body has the type {kind}, but begins like no JPEG and no PNG; expected {READ}")
            }
            _ => format!("the body is {kind}: expected {READ}: {error}"),
        })
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
        let most = forms::csv_len(&self.bytes, row.as_deref());
        charge(most)?;
        let mut lists = Vec::new();
        room(&mut lists, most)?;
        let lists = String::from_utf8(lists).unwrap_or_default();
        forms::csv(&self.bytes, row.as_deref(), lists).map_err(Refusal::invalid)
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

/// Checks that a body is a file by its content type, or by its first bytes.
fn check_file(content_type: &str, body: &[u8]) -> Result<(), Refusal> {
    // What clients say of a body that they know nothing of, and of the files that are read.
    const FILES: [&str; 10] = [
        "",
        "application/octet-stream",
        "binary/octet-stream",
        "application/x-www-form-urlencoded",
        "text/plain",
        "application/x-npy",
        "application/x-npz",
        "application/zip",
        "application/x-zip-compressed",
        "application/x-image",
    ];
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if FILES.contains(&&kind[..]) || kind.starts_with("image/") || npy::is_file(body) || is_image(body) {
        return Ok(());
    }
    let words = "send application/json, text/csv, application/x-npy, application/x-npz, application/x-image, \
                 multipart/form-data or application/x-recordio-protobuf";
    let message = format!("bodies of {} are not read: {words}", short(content_type));
    Err(Refusal::new(Cause::UnsupportedContent, message))
}
