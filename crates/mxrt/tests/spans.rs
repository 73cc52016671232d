//! Spans and events of `tracing`, in a process of their own: a thread that has no subscriber and comes
//! to an event first turns it off for all.

use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span;

/// Notes names of spans and messages of events.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl tracing::Subscriber for Notes {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut text = span.metadata().name().to_owned();
        span.record(&mut Text(&mut text));
        self.0.lock().expect("no thread panicked").push(text);
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = event.metadata().level().to_string();
        event.record(&mut Text(&mut text));
        self.0.lock().expect("no thread panicked").push(text);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[test]
fn requests_are_spans() {
    let notes = Notes::default();
    tracing::subscriber::with_default(notes.clone(), || {
        let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/models/digits_cnn/digits_cnn");
        let model = mxrt::Model::load(files, 0).expect("the model loads");
        let image = vec![0.5f32; 64];
        model.run([("data", ([1, 1, 8, 8], &image))]).expect("an answer");
        model.run([("image", ([1, 1, 8, 8], &image))]).unwrap_err();
        let pending = model.run_async([("data", ([1, 1, 8, 8], &image))]).expect("the call is accepted");
        pending.wait().expect("an answer");
    });
    let request = "mxrt.request model=\"digitsnet_dense0_fwd\"";
    let (answered, refused) = (
        "DEBUG message=answered",
        "WARN message=the model has no input 'image'; its inputs are data [MX-VALUE] kind=\"value\"",
    );
    let seen = notes.0.lock().expect("no thread panicked");
    assert_eq!(seen[..], [request, answered, request, refused, request, answered]);
}
