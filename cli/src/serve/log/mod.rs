//! The server's log: what goes to standard error, and how.

mod lines;
#[cfg(feature = "otel")]
mod spans;

use std::io::{self, IsTerminal as _};

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
#[cfg(feature = "otel")]
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt, reload};

use lines::Lines;

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
}

/// The log of a process that runs: its levels can be changed.
#[derive(Clone)]
pub(super) struct Log {
    levels: reload::Handle<Targets, Registry>,
    /// What sends spans, where somebody wants them.
    #[cfg(feature = "otel")]
    spans: Option<spans::Exporter>,
}

impl Log {
    /// From now on what happens is logged.
    pub(super) fn to_stderr(filter: &Targets, format: Format) -> Self {
        // A line that cannot be written, because the disk that the log lies on is full or nobody reads it any more, is lost.
        // To tell of it would be an `eprintln!` to the same place, and that panics.
        let lines = fmt::layer().with_writer(io::stderr).log_internal_errors(false);
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let lines = lines.with_ansi(format == Format::Text && io::stderr().is_terminal() && !is_plain);
        let lines = lines.fmt_fields(Lines(format)).event_format(Lines(format));
        let (filter, levels) = reload::Layer::new(filter.clone());
        let registry = Registry::default().with(lines.with_filter(filter));
        #[cfg(not(feature = "otel"))]
        {
            registry.init();
            Self { levels }
        }
        #[cfg(feature = "otel")]
        {
            let (spans, why) = spans::from_environment().map_or_else(|why| (None, Some(why)), |spans| (spans, None));
            let (layer, spans) = spans.unzip();
            registry.with(layer.with_filter(filter_fn(spans::is_one))).init();
            if let Some(why) = why {
                tracing::warn!("slow requests are not sent as spans: {why}");
            }
            Self { levels, spans }
        }
    }

    /// The server has ended: what was gathered is sent.
    #[cfg_attr(not(feature = "otel"), expect(clippy::unused_self, reason = "there is nothing to send"))]
    pub(super) fn end(&self) {
        #[cfg(feature = "otel")]
        if let Some(spans) = &self.spans {
            spans.end();
        }
    }

    /// From now on this is logged.
    pub(super) fn set(&self, filter: Targets) {
        // It fails only where there is no log any more.
        let _ = self.levels.reload(filter);
    }
}

/// Levels, of everything and of modules. To `tracing` a lone word which is no level is the name of a module: a misspelt
/// level would silence the log. Modules that are not ours are given with their level.
pub(super) fn filter(text: &str) -> Result<Targets, String> {
    let words: Vec<_> = text.split(',').map(str::trim).collect();
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let is_known =
        |word: &str| is_level(word) || word.starts_with("boltkv") || (word.contains('=') && !word.contains('['));
    if let Some(word) = words.iter().find(|word| !is_known(word)) {
        return Err(format!(
            "{word} is no level: the levels are off, error, warn, info, debug and trace; a module has its own by a filter \
             such as boltkv_server=debug"
        ));
    }
    words.join(",").parse().map_err(|error| format!("{error}"))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_log_filter_is_levels_and_modules_with_levels_and_no_misspelt_level() {
        for text in ["off", "INFO", "3", "", "boltkv_server", "warn, boltkv_server=debug,tokio=trace"] {
            assert!(filter(text).is_ok(), "{text}");
        }
        let some = filter("warn,boltkv_server=debug").unwrap();
        assert!(some.would_enable("boltkv_server::writer", &Level::DEBUG));
        assert!(!some.would_enable("boltkv", &Level::INFO));
        for text in ["verbose", "infos", "info,quiet", "tokio", "boltkv=shout", "[scan{a}]=debug"] {
            assert!(filter(text).is_err(), "{text}");
        }
    }
}
