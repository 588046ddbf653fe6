//! Slow requests as spans, for a collector of OpenTelemetry's (OTLP over HTTP). Where it is, and how it is spoken to, the
//! standard's variables say: `OTEL_EXPORTER_OTLP_ENDPOINT` and those beside it.
//!
//! What is slow, the server says in an event for each (`boltkv_server::slow_log`); here that becomes a span. They are sent by a
//! thread of their own, some at a time: a collector that is slow, or away, costs spans and no requests.

use std::env;
use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use opentelemetry::KeyValue;
use opentelemetry::trace::{Span as _, SpanKind, Status, Tracer as _, TracerProvider as _};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, warn};
use tracing_subscriber::layer::{Context, Layer};

/// Where the server tells of slow requests.
const SLOW: &str = "boltkv_server::slow_log";

/// Variables that say where the collector is.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// How long what is gathered has to be sent at the end.
const LAST: Duration = Duration::from_secs(2);

/// Makes the spans.
pub(super) struct Spans(SdkTracer);

/// Sends them.
#[derive(Clone)]
pub(super) struct Exporter(SdkTracerProvider);

/// Both, where a variable says that they are wanted; why not, where they are and cannot be had.
pub(super) fn from_environment() -> Result<Option<(Spans, Exporter)>, String> {
    let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_off = env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true"));
    if is_off || !ENDPOINTS.iter().any(is_set) {
        return Ok(None);
    }
    let exporter = SpanExporter::builder().with_http().build().map_err(|error| error.to_string())?;
    let mut resource = Resource::builder();
    if !is_set(&"OTEL_SERVICE_NAME") {
        resource = resource.with_service_name("boltkv");
    }
    let resource = resource.with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))).build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    Ok(Some((Spans(provider.tracer("boltkv")), Exporter(provider))))
}

impl Exporter {
    /// Sends what is left.
    pub(super) fn end(&self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST) {
            warn!(%error, "the last spans could not be sent");
        }
    }
}

/// What a span is made of.
pub(super) fn is_one(metadata: &Metadata<'_>) -> bool {
    metadata.is_event() && metadata.target() == SLOW
}

impl<S: Subscriber> Layer<S> for Spans {
    #[expect(clippy::disallowed_methods, reason = "a span has the calendar's times")]
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut slow = Slow::default();
        event.record(&mut slow);
        let end = SystemTime::now();
        let start = end.checked_sub(Duration::from_micros(slow.took_us)).unwrap_or(end);
        let builder = self.0.span_builder(slow.command).with_kind(SpanKind::Server).with_start_time(start);
        let mut span = builder.with_attributes(slow.attributes).start(&self.0);
        if slow.result != "ok" {
            span.set_status(Status::error(slow.result));
        }
        span.end_with_timestamp(end);
    }
}

/// The fields of an event.
#[derive(Default)]
struct Slow {
    command: String,
    result: String,
    took_us: u64,
    attributes: Vec<KeyValue>,
}

impl Visit for Slow {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "command" => {
                value.clone_into(&mut self.command);
                let named = [("db.system.name", "boltkv"), ("db.operation.name", value)];
                self.attributes.extend(named.map(|(name, value)| KeyValue::new(name, value.to_owned())));
            }
            "result" => {
                value.clone_into(&mut self.result);
                if value != "ok" {
                    self.attributes.push(KeyValue::new("error.type", value.to_owned()));
                }
            }
            "token" if !value.is_empty() => self.attributes.push(KeyValue::new("enduser.id", value.to_owned())),
            "name" if !value.is_empty() => self.attributes.push(KeyValue::new("boltkv.client.name", value.to_owned())),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let number = i64::try_from(value).unwrap_or(i64::MAX);
        match field.name() {
            "took_us" => self.took_us = value,
            "requests" if value > 1 => self.attributes.push(KeyValue::new("db.operation.batch.size", number)),
            "client" => self.attributes.push(KeyValue::new("boltkv.client.id", number)),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "peer" {
            self.attributes.push(KeyValue::new("client.address", format!("{value:?}")));
        }
    }
}
