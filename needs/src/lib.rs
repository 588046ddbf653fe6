//! `#[boltkv_needs::program("go")]` above a test that another program takes part in.
//!
//! A test can find out only while it runs that a program is missing, and libtest knows two ends of a test that runs: what
//! it prints is shown where it failed, and "skipped" is swallowed where it passed. What is known when a test is built
//! libtest can count: this attribute makes it an ignored one, with the reason. It is an attribute and no build script, so
//! that whoever only uses a crate does not run it.

use std::path::Path;

use proc_macro::{TokenStream, TokenTree};

/// Makes the test below an ignored one where one of the named programs is not found in `PATH` when it is built; not with
/// `BOLTKV_REQUIRE_TOOLS=1`, so that it runs and fails. A program that is installed later is noticed when the test is
/// built anew.
#[proc_macro_attribute]
pub fn program(names: TokenStream, test: TokenStream) -> TokenStream {
    let mut out = match names.into_iter().map(name).collect::<Result<Vec<_>, _>>() {
        Err(why) => format!("::core::compile_error!({why:?});"),
        Ok(names) => ignored(&names),
    };
    // Cargo builds it anew when this variable changes.
    out.insert_str(0, "const _: ::core::option::Option<&str> = ::core::option_env!(\"BOLTKV_REQUIRE_TOOLS\");");
    let mut out: TokenStream = out.parse().unwrap_or_default();
    out.extend(test);
    out
}

/// The attribute for a test that needs these programs, if one is missing.
fn ignored(names: &[Option<String>]) -> String {
    let required = std::env::var_os("BOLTKV_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    let missing = names.iter().flatten().find(|name| !is_there(name));
    match missing.filter(|_| !required) {
        Some(name) => format!("#[ignore = {:?}]", format!("{name} was not there when this was built")),
        None => String::new(),
    }
}

/// A program's name; `None` for the comma after one.
fn name(token: TokenTree) -> Result<Option<String>, &'static str> {
    match token {
        TokenTree::Punct(comma) if comma.as_char() == ',' => Ok(None),
        TokenTree::Literal(name) => {
            let name = name.to_string();
            let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
            name.map(|name| Some(name.to_owned())).ok_or("a program's name is a string")
        }
        _ => Err("programs are named as strings: `#[boltkv_needs::program(\"go\")]`"),
    }
}

/// Whether a program is in one of the folders of `PATH`.
fn is_there(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_file(&folder.join(name)))
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}
