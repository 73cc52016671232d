//! A web service over a model: requests are futures, and a client that goes away cancels its own.
//!
//! ```text
//! cargo run --release -- PREFIX EPOCH [ADDRESS]
//! curl -d '{"shape": [1, 2], "values": [0.5, 1.5]}' -H 'content-type: application/json' localhost:8080/predict
//! ```

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use mxrt::{CallOptions, Error, ErrorKind, Model};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Deserialize)]
struct Question {
    shape: Vec<usize>,
    values: Vec<f32>,
}

#[derive(Serialize)]
struct Answer {
    shape: Vec<usize>,
    values: Vec<f32>,
}

/// The status of an error: a wrong request is the client's fault, a late one the load's.
fn status(error: Error) -> (StatusCode, String) {
    let status = match error.kind() {
        ErrorKind::Value | ErrorKind::Shape | ErrorKind::Type => StatusCode::BAD_REQUEST,
        ErrorKind::Deadline | ErrorKind::Memory => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, error.to_string())
}

async fn ask(model: &Model, question: Question) -> Result<Answer, Error> {
    let options = CallOptions::default().within(Duration::from_secs(1));
    let name = &model.inputs()[0].name;
    let y = model.run_async_with([(name, (question.shape, question.values))], &options)?.await?;
    Ok(Answer { shape: y[0].shape().to_vec(), values: y[0].to_vec()? })
}

async fn predict(
    State(model): State<Model>,
    Json(question): Json<Question>,
) -> Result<Json<Answer>, (StatusCode, String)> {
    ask(&model, question).await.map(Json).map_err(status)
}

async fn describe(State(model): State<Model>) -> String {
    format!("{model:?}\n")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [prefix, epoch, rest @ ..] = &arguments[..] else {
        return Err("usage: async-axum PREFIX EPOCH [ADDRESS]".into());
    };
    let model = Model::builder().from_environment()?.load(prefix, epoch.parse()?)?;
    let service = Router::new().route("/predict", post(predict)).route("/", get(describe)).with_state(model);
    let listener = tokio::net::TcpListener::bind(rest.first().map_or("127.0.0.1:8080", String::as_str)).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, service).await?;
    Ok(())
}
