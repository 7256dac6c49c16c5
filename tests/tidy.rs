//! House rules that a compiler does not check, read from the sources themselves: which module may
//! use which, where system calls are, and the shape of files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What rmgr may use: it is a set of pure functions from records and pages to pages.
const RMGR_USES: &[&str] = &["decode", "page", "format", "types"];

/// Paths that lead to the kernel. Only `sys` may use them, so that no call goes uncounted.
const SYSTEM_CALLS: &[&str] = &[
    "std::fs",
    "std::net",
    "std::os::unix::fs",
    "std::os::unix::net",
    "std::process::Command",
    "nix",
    "libc",
    "memmap2",
];

/// Outside `format`, the number of a major is for messages only; these modules print some.
const PRINTS_VERSIONS: &[&str] = &["cli", "pgdata", "recovery"];

const MAX_LINES: usize = 800;
const MAX_COLUMNS: usize = 100;

/// A source file below `src`.
#[derive(Debug)]
struct Source {
    /// Relative to the repository.
    path: PathBuf,
    /// The modules it is in: `["rmgr", "heap"]` for `src/rmgr/heap.rs`.
    modules: Vec<String>,
    /// Its text with comments, literals and code for tests blanked out.
    code: String,
}

impl Source {
    fn module(&self) -> &str {
        self.modules.first().map_or("", String::as_str)
    }

    /// The place of a byte of `code`, as compilers print it.
    fn place(&self, at: usize) -> String {
        let line = self.code[..at].matches('\n').count() + 1;
        format!("{}:{line}", self.path.display())
    }

    /// Every path in the code, with groups spelled out, and where it starts.
    fn paths(&self) -> Vec<(usize, Vec<String>)> {
        let bytes = self.code.as_bytes();
        let mut found = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let inside = at > 0 && (is_word(bytes[at - 1]) || bytes[at - 1] == b':');
            if inside || !is_word(bytes[at]) {
                at += 1;
                continue;
            }
            let start = at;
            at = read_path(&self.code, start, &[], &mut |path| {
                found.push((start, path))
            });
        }
        found
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Reads `a::b::{c, d::e}` at `at` and hands over each path it stands for; returns where it ends.
fn read_path(
    code: &str,
    mut at: usize,
    prefix: &[String],
    found: &mut dyn FnMut(Vec<String>),
) -> usize {
    let mut path = prefix.to_vec();
    loop {
        let rest = &code[at..];
        let length = rest.bytes().take_while(|&byte| is_word(byte)).count();
        path.push(rest[..length].to_owned());
        at += length;
        let Some(rest) = code[at..].strip_prefix("::") else {
            break;
        };
        at += 2;
        if rest.starts_with('{') {
            at += 1;
            loop {
                at += code[at..].len() - code[at..].trim_start_matches([' ', '\n', ',']).len();
                if !code.as_bytes().get(at).copied().is_some_and(is_word) {
                    // The end of the group, or a glob, which names nothing.
                    return code[at..].find('}').map_or(code.len(), |end| at + end + 1);
                }
                at = read_path(code, at, &path, found);
                // Over `as name`.
                let skipped = code[at..].find([',', '}']).unwrap_or(0);
                at += skipped;
            }
        }
        if !rest.bytes().next().is_some_and(is_word) {
            break;
        }
    }
    found(path);
    at
}

/// The file with comments, strings and characters replaced by blanks; lines stay where they are.
fn without_comments_and_literals(text: &str) -> String {
    let mut code = text.as_bytes().to_vec();
    let mut at = 0;
    while at < code.len() {
        let rest = &text[at..];
        let end = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(fence) = raw_string_fence(text, at) {
            let close = format!("\"{}", "#".repeat(fence));
            let open = fence + 2;
            rest[open..]
                .find(&close)
                .map_or(rest.len(), |end| open + end + close.len())
        } else if rest.starts_with('"') {
            quoted_length(rest, b'"')
        } else if rest.starts_with('\'') && is_character(rest) {
            quoted_length(rest, b'\'')
        } else {
            0
        };
        for byte in &mut code[at..at + end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at += end.max(rest.chars().next().map_or(1, char::len_utf8));
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// Number of `#` of a raw string that starts here.
fn raw_string_fence(text: &str, at: usize) -> Option<usize> {
    let rest = text[at..].strip_prefix('r')?;
    let starts_word = at == 0 || !is_word(text.as_bytes()[at - 1]) || text[..at].ends_with('b');
    let fence = rest.bytes().take_while(|&byte| byte == b'#').count();
    (starts_word && rest[fence..].starts_with('"')).then_some(fence)
}

/// Length of a literal with its quotes.
fn quoted_length(rest: &str, quote: u8) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            _ if byte == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Whether a single quote starts a character rather than a lifetime.
fn is_character(rest: &str) -> bool {
    let mut characters = rest.chars().skip(1);
    characters.next() == Some('\\') || characters.next() == Some('\'')
}

/// Blanks out every item under `#[cfg(test)]` and returns the names of modules in files of their
/// own among them.
fn without_tests(code: &str) -> (String, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let (mut kept, mut files) = (code.to_owned(), Vec::new());
    while let Some(start) = kept.find(MARK) {
        let item = &kept[start + MARK.len()..];
        let head = item.find([';', '{']).unwrap_or(item.len());
        let words: Vec<&str> = item[..head].split_whitespace().collect();
        let has_body = item[head..].starts_with('{');
        if let ([.., "mod", name], false) = (&words[..], has_body) {
            files.push((*name).to_owned());
        }
        let body = if has_body {
            braces_length(&item[head..])
        } else {
            1
        };
        let end = (start + MARK.len() + head + body).min(kept.len());
        let blank: String = kept[start..end]
            .chars()
            .map(|c| if c == '\n' { c } else { ' ' })
            .collect();
        kept.replace_range(start..end, &blank);
    }
    (kept, files)
}

fn braces_length(text: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return at + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below a folder of the repository with one of these endings, sorted.
fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![repository().join(folder)]);
    while let Some(folder) = folders.pop() {
        let Ok(listing) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in listing {
            let path = entry.expect("a readable folder").path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            if path.is_dir() {
                folders.push(path);
            } else if ending.is_some_and(|ending| endings.contains(&ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn relative(path: &Path) -> PathBuf {
    path.strip_prefix(repository())
        .expect("below the repository")
        .to_owned()
}

/// The sources without their tests.
fn sources() -> Vec<Source> {
    let (mut found, mut tests) = (Vec::new(), BTreeSet::new());
    for file in files("src", &["rs"]) {
        let path = relative(&file);
        let mut modules: Vec<String> = path
            .with_extension("")
            .iter()
            .skip(1)
            .map(|part| part.to_str().expect("ASCII").to_owned())
            .collect();
        if matches!(
            modules.last().map(String::as_str),
            Some("mod" | "lib" | "main")
        ) {
            modules.pop();
        }
        let (code, test_files) = without_tests(&without_comments_and_literals(&read(&file)));
        tests.extend(
            test_files
                .into_iter()
                .map(|name| [&modules[..], &[name]].concat()),
        );
        found.push(Source {
            path,
            modules,
            code,
        });
    }
    found.retain(|source| !tests.iter().any(|test| source.modules.starts_with(test)));
    found
}

/// The modules as `src/lib.rs` lists them, top to bottom.
fn layers() -> Vec<String> {
    let code = without_comments_and_literals(&read(&repository().join("src/lib.rs")));
    let names = code
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    names.map(str::to_owned).collect()
}

/// The top-level modules that a file uses, by `crate::name` or by `super` up to the root.
fn uses(source: &Source) -> Vec<(usize, String)> {
    let used = source.paths().into_iter().filter_map(|(at, path)| {
        let supers = path.iter().take_while(|part| *part == "super").count();
        let to_root = match path.first().map(String::as_str) {
            Some("crate") => 1,
            Some("super") if supers == source.modules.len() => supers,
            _ => return None,
        };
        Some((at, path.get(to_root)?.clone()))
    });
    used.collect()
}

fn assert_none(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

#[test]
fn modules_use_only_those_below_them() {
    let layers = layers();
    assert!(
        layers.len() > 10,
        "src/lib.rs lists the modules one a line: {layers:?}"
    );
    let position = |name: &str| layers.iter().position(|layer| layer == name);
    let mut broken = Vec::new();
    for source in sources() {
        let Some(own) = position(source.module()) else {
            continue;
        };
        for (at, used) in uses(&source) {
            if position(&used).is_some_and(|used| used < own) {
                let place = source.place(at);
                broken.push(format!(
                    "{place}: {} uses {used}, above it",
                    source.module()
                ));
            }
        }
    }
    assert_none(
        "a module uses only those listed below it in src/lib.rs",
        &broken,
    );
}

#[test]
fn rmgr_is_pure() {
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| source.module() == "rmgr") {
        for (at, used) in uses(source) {
            if used != "rmgr" && !RMGR_USES.contains(&used.as_str()) {
                broken.push(format!("{}: uses {used}", source.place(at)));
            }
        }
    }
    assert_none(&format!("rmgr uses {} only", RMGR_USES.join(", ")), &broken);
}

#[test]
fn system_calls_are_in_sys() {
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| source.module() != "sys") {
        for (at, path) in source.paths() {
            let is_call = |call: &&&str| {
                let call: Vec<&str> = call.split("::").collect();
                path.len() >= call.len() && path.iter().zip(&call).all(|(a, b)| a == b)
            };
            // A lone word is a variable or a field of that name, except in a declaration of use.
            if let Some(call) = SYSTEM_CALLS.iter().find(is_call).filter(|_| path.len() > 1) {
                broken.push(format!("{}: uses {call}", source.place(at)));
            }
        }
    }
    assert_none(
        "system calls are made in src/sys only, where they are counted",
        &broken,
    );
}

#[test]
fn versions_are_the_business_of_format() {
    let mut broken = Vec::new();
    for source in sources() {
        let module = source.module();
        if module == "format" || PRINTS_VERSIONS.contains(&module) {
            continue;
        }
        for (at, path) in source.paths() {
            if path.iter().any(|part| part == "PgVersion") {
                broken.push(format!("{}: uses PgVersion", source.place(at)));
            }
        }
    }
    assert_none(
        "ask the record, then a named fact of format::WalFormat, never the major",
        &broken,
    );
}

#[test]
fn files_keep_their_shape() {
    let mut broken = Vec::new();
    for folder in ["src", "tests", "benches"] {
        for file in files(folder, &["rs", "sh"]) {
            let (path, text) = (relative(&file), read(&file));
            let lines = text.lines().count();
            if lines > MAX_LINES {
                broken.push(format!(
                    "{}: {lines} lines, over {MAX_LINES}",
                    path.display()
                ));
            }
            for (line, number) in text.lines().zip(1..) {
                let place = format!("{}:{number}", path.display());
                if !line.is_ascii() {
                    broken.push(format!("{place}: not ASCII"));
                }
                if line.chars().count() > MAX_COLUMNS {
                    broken.push(format!("{place}: over {MAX_COLUMNS} columns"));
                }
            }
        }
    }
    assert_none("files are ASCII and of a size to be read", &broken);
}

/// The reading itself, on code that tries to hide.
#[test]
fn paths_are_found_wherever_they_are() {
    let text = r##"
use std::{io, fs::{self as files, File}, path::Path};
use crate::{sys, page::{Page as P, items::*}};
// use crate::comment;
const A: &str = "crate::string"; const B: &str = r#"crate::"raw"#; const C: char = '"';
fn f<'a>(x: &'a u8) { crate::smgr::size(x); nix::unistd::fsync(1) }
#[cfg(test)]
mod tests { fn g() { crate::inside::tests() } }
#[cfg(test)]
mod more;
"##;
    let (code, test_files) = without_tests(&without_comments_and_literals(text));
    assert_eq!(test_files, ["more"]);
    let source = Source {
        path: PathBuf::from("x.rs"),
        modules: vec!["x".to_owned()],
        code,
    };
    let paths: Vec<String> = source
        .paths()
        .into_iter()
        .map(|(_, path)| path.join("::"))
        .filter(|path| path.contains("::"))
        .collect();
    let expected = [
        "std::io",
        "std::fs::self",
        "std::fs::File",
        "std::path::Path",
        "crate::sys",
        "crate::page::Page",
        "crate::smgr::size",
        "nix::unistd::fsync",
    ];
    for path in expected {
        assert!(
            paths.contains(&path.to_owned()),
            "{path} is missing from {paths:?}"
        );
    }
    for hidden in ["comment", "string", "raw", "inside"] {
        assert!(
            !paths.iter().any(|path| path.contains(hidden)),
            "{hidden} is in {paths:?}"
        );
    }
}
