//! COMMAND: what the commands are, as clients ask before they send any.

use std::iter;

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Args, Flags, Group, Keys, RESP_COMMANDS, Spec, Subcommand, Writer, find};

use super::refusals::{failed, not_here};
use crate::commands::{Call, Failure, named_so};

/// A command, or one of its own, as it is told.
#[derive(Debug, Clone, Copy)]
enum Told {
    Command(&'static Spec),
    Sub(&'static Spec, &'static Subcommand),
}

/// Answers COMMAND.
pub(super) fn say(call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.subcommand(args.word(1)).map(|sub| sub.name) {
        None => write_all(RESP_COMMANDS.iter().map(|spec| Some(Told::Command(spec))), out),
        Some("COUNT") => out.count(RESP_COMMANDS.len()),
        Some("INFO") if args.len() == 2 => write_all(RESP_COMMANDS.iter().map(|spec| Some(Told::Command(spec))), out),
        Some("INFO") => write_all(args.from(2).map(Told::find), out),
        Some("DOCS") => docs(args, out),
        Some("LIST") => list(args, out)?,
        Some("GETKEYS") => keys(args, out)?,
        Some(name) => return Err(not_here(call.spec.name, name)),
    }
    Ok(())
}

impl Told {
    /// The one of this name: `get`, `client|id`.
    fn find(name: &[u8]) -> Option<Self> {
        let mut parts = name.splitn(2, |byte| *byte == b'|');
        let spec = find(parts.next()?)?;
        match parts.next() {
            None => Some(Self::Command(spec)),
            Some(sub) => Some(Self::Sub(spec, spec.subcommand(sub)?)),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Command(spec) => spec.name.to_lowercase(),
            Self::Sub(spec, sub) => format!("{}|{}", spec.name, sub.name).to_lowercase(),
        }
    }

    const fn arity(self) -> i8 {
        match self {
            Self::Command(spec) => spec.arity,
            Self::Sub(_, sub) => sub.arity,
        }
    }

    const fn summary(self) -> &'static str {
        match self {
            Self::Command(spec) => spec.summary,
            Self::Sub(_, sub) => sub.summary,
        }
    }

    const fn spec(self) -> &'static Spec {
        match self {
            Self::Command(spec) | Self::Sub(spec, _) => spec,
        }
    }

    const fn is_parent(self, subs: usize) -> bool {
        matches!(self, Self::Command(_)) && subs > 0
    }

    fn subs(self) -> Vec<Self> {
        match self {
            Self::Command(spec) => spec.subcommands().map(|sub| Self::Sub(spec, sub)).collect(),
            Self::Sub(..) => Vec::new(),
        }
    }

    /// One that only has others is none of their kinds.
    fn flags(self, is_parent: bool) -> Flags {
        match self {
            Self::Command(_) if is_parent => Flags::NONE,
            Self::Command(spec) => spec.flags,
            Self::Sub(spec, sub) => sub.flags(spec),
        }
    }

    fn keys(self, is_parent: bool) -> Keys {
        match self {
            Self::Command(_) if is_parent => Keys { first: 0, last: 0, step: 0 },
            Self::Command(spec) => spec.keys,
            Self::Sub(spec, sub) => sub.keys(spec),
        }
    }

    /// What Redis sorts commands into, for rights; here they are only told.
    fn categories(self, flags: Flags) -> Vec<&'static str> {
        let mut categories = Vec::new();
        categories.extend(flags.has(Flags::WRITE).then_some("@write"));
        categories.extend(flags.has(Flags::READONLY).then_some("@read"));
        categories.extend(match self.spec().group {
            Group::String => Some("@string"),
            Group::Bitmap => Some("@bitmap"),
            Group::Hash => Some("@hash"),
            Group::Generic => Some("@keyspace"),
            Group::Transactions => Some("@transaction"),
            Group::Connection => Some("@connection"),
            Group::Server if flags.has(Flags::WRITE) => Some("@keyspace"),
            Group::Server => None,
        });
        categories.extend(flags.has(Flags::ADMIN).then_some("@admin"));
        categories.push(if flags.has(Flags::FAST) { "@fast" } else { "@slow" });
        categories.extend(flags.has(Flags::ADMIN).then_some("@dangerous"));
        categories
    }

    /// As COMMAND INFO has it.
    fn write(self, out: &mut Writer<'_>) {
        let subs = self.subs();
        let is_parent = self.is_parent(subs.len());
        let (flags, keys) = (self.flags(is_parent), self.keys(is_parent));
        out.array(10);
        out.bulk(self.name().as_bytes());
        out.integer(self.arity().into());
        write_names(&flags.names().collect::<Vec<_>>(), out);
        out.count(keys.first);
        out.integer(i64::try_from(keys.last).unwrap_or_default());
        out.count(keys.step);
        write_names(&self.categories(flags), out);
        // What clusters have to know.
        out.set(0);
        write_key_spec(flags, keys, out);
        out.set(subs.len());
        for sub in subs {
            sub.write(out);
        }
    }

    fn write_docs(self, out: &mut Writer<'_>) {
        let subs = self.subs();
        out.bulk(self.name().as_bytes());
        out.map(if subs.is_empty() { 3 } else { 4 });
        for (name, text) in
            [("summary", self.summary()), ("since", self.spec().since), ("group", self.spec().group.name())]
        {
            out.bulk(name.as_bytes());
            out.bulk(text.as_bytes());
        }
        if !subs.is_empty() {
            out.bulk(b"subcommands");
            out.map(subs.len());
            for sub in subs {
                sub.write_docs(out);
            }
        }
    }
}

fn write_all(commands: impl ExactSizeIterator<Item = Option<Told>>, out: &mut Writer<'_>) {
    out.array(commands.len());
    for command in commands {
        match command {
            Some(command) => command.write(out),
            None => out.null_array(),
        }
    }
}

fn write_names(names: &[&str], out: &mut Writer<'_>) {
    out.set(names.len());
    for name in names {
        out.simple(name);
    }
}

/// Where the keys are, once more, in the form that tells more of other commands than of these.
fn write_key_spec(flags: Flags, keys: Keys, out: &mut Writer<'_>) {
    if keys.first == 0 {
        out.set(0);
        return;
    }
    out.set(1);
    out.map(3);
    out.bulk(b"flags");
    write_names(if flags.has(Flags::WRITE) { &["RW", "access", "update"] } else { &["RO", "access"] }, out);
    let last = if keys.last < 0 { keys.last } else { keys.last - isize::try_from(keys.first).unwrap_or_default() };
    let first = [("index", isize::try_from(keys.first).unwrap_or_default())];
    let rest = [("lastkey", last), ("keystep", isize::try_from(keys.step).unwrap_or_default()), ("limit", 0)];
    for (part, kind, numbers) in [("begin_search", "index", &first[..]), ("find_keys", "range", &rest[..])] {
        out.bulk(part.as_bytes());
        out.map(2);
        out.bulk(b"type");
        out.bulk(kind.as_bytes());
        out.bulk(b"spec");
        out.map(numbers.len());
        for (name, number) in numbers {
            out.bulk(name.as_bytes());
            out.integer(i64::try_from(*number).unwrap_or_default());
        }
    }
}

fn docs(args: &Args, out: &mut Writer<'_>) {
    let named: Vec<_> = if args.len() == 2 {
        RESP_COMMANDS.iter().map(Told::Command).collect()
    } else {
        args.from(2).filter_map(Told::find).collect()
    };
    out.map(named.len());
    for command in named {
        command.write_docs(out);
    }
}

fn list(args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let lowercase = |at| args.word(at).to_ascii_lowercase();
    let wanted = args.word(4);
    let all = || RESP_COMMANDS.iter();
    let names: Vec<_> = match (args.len(), &*lowercase(2), &*lowercase(3)) {
        (2, ..) => all().collect(),
        (5, b"filterby", b"pattern") => named_so(all(), |spec| spec.name, iter::once(wanted))?,
        (5, b"filterby", b"aclcat") => all().filter(|spec| is_in(spec, wanted)).collect(),
        // No modules, no commands of one.
        (5, b"filterby", b"module") => Vec::new(),
        _ => return Err(Failure::syntax()),
    };
    out.array(names.len());
    for spec in names {
        out.bulk(spec.name.to_lowercase().as_bytes());
    }
    Ok(())
}

fn is_in(spec: &'static Spec, category: &[u8]) -> bool {
    let categories = Told::Command(spec).categories(spec.flags);
    categories.iter().any(|known| known.as_bytes()[1..].eq_ignore_ascii_case(category))
}

fn keys(args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let spec = find(args.word(2)).ok_or_else(|| failed("ERR Invalid command specified"))?;
    if spec.keys.first == 0 {
        return Err(failed("ERR The command has no key arguments"));
    }
    let words = args.len() - 2;
    if !spec.takes(words) {
        return Err(failed("ERR Invalid number of arguments specified for command"));
    }
    let keys = spec.keys.positions(words).map(|at| args.word(at + 2)).collect::<Vec<_>>();
    if keys.is_empty() {
        return Err(Failure::new(ErrorCode::Malformed, "ERR The command has no key arguments"));
    }
    out.array(keys.len());
    for key in keys {
        out.bulk(key);
    }
    Ok(())
}
