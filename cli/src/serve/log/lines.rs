//! How a line of the log looks: as text, by the library's own rules, or as an object of JSON. The library's JSON reads back
//! what it has written of a span, and brings a parser for that; this one only writes.

use std::fmt::{self, Debug};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{self, DefaultFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::Format;

/// Writes lines, and what of a span stands in them.
pub(super) struct Lines(pub(super) Format);

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        if self.0 == Format::Text {
            return format::Format::default().format_event(context, writer, event);
        }
        writer.write_str("{\"timestamp\":\"")?;
        SystemTime.format_time(&mut writer)?;
        write!(writer, "\",\"level\":\"{}\"", event.metadata().level())?;
        let mut fields = Fields { writer: writer.by_ref(), written: Ok(()) };
        fields.string("target", event.metadata().target());
        event.record(&mut fields);
        fields.written?;
        if let Some(span) = context.lookup_current() {
            write!(writer, ",\"span\":{{\"name\":\"{}\"", span.name())?;
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                writer.write_str(&fields.fields)?;
            }
            writer.write_char('}')?;
        }
        writer.write_str("}\n")
    }
}

impl<'writer> FormatFields<'writer> for Lines {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        if self.0 == Format::Text {
            return DefaultFields::new().format_fields(writer, fields);
        }
        let mut visitor = Fields { writer, written: Ok(()) };
        fields.record(&mut visitor);
        visitor.written
    }
}

/// Writes fields of an object, each behind a comma.
struct Fields<'writer> {
    writer: Writer<'writer>,
    written: fmt::Result,
}

impl Fields<'_> {
    fn string(&mut self, name: &str, value: &str) {
        let quoted = serde_json::to_string(value).unwrap_or_default();
        self.plain(name, &quoted);
    }

    fn plain(&mut self, name: &str, value: &dyn fmt::Display) {
        if self.written.is_ok() {
            self.written = write!(self.writer, ",\"{name}\":{value}");
        }
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.string(field.name(), &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.string(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field.name(), &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field.name(), &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field.name(), &value);
    }
}
