//! Errors of the command line, printed as PostgreSQL's tools print theirs.

use std::fmt::Display;
use std::io;
use std::path::Path;

use super::Exit;
use crate::recovery::{CopyError, RecoveryError};
use crate::sys::SysError;

/// Why a command ends early.
#[derive(Debug)]
pub(super) enum CliError {
    /// Standard output could not be written.
    Output(io::Error),
    /// Anything else.
    Message(Message),
}

/// What may help.
#[derive(Debug)]
enum Hint {
    None,
    /// The help of the command.
    Help,
    Text(String),
}

/// Under which name a command complains.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller<'n> {
    /// The program.
    pub(super) program: &'n str,
    /// What to ask for help.
    pub(super) command: &'n str,
}

impl Caller<'_> {
    /// The program by its own name.
    pub(super) const PGREDO: Caller<'static> = Caller {
        program: "pgredo",
        command: "pgredo",
    };
}

/// What is printed.
#[derive(Debug)]
pub(super) struct Message {
    text: String,
    detail: Option<&'static str>,
    hint: Hint,
    exit: Exit,
}

impl CliError {
    /// An error that only needs saying.
    pub(super) fn new(text: impl Into<String>) -> CliError {
        CliError::Message(Message {
            text: text.into(),
            detail: None,
            hint: Hint::None,
            exit: Exit::Failed,
        })
    }

    /// A command line that clap accepts and that still makes no sense.
    pub(super) fn usage(text: impl Into<String>, hint: impl Into<String>) -> CliError {
        CliError::Message(Message {
            text: text.into(),
            detail: None,
            hint: Hint::Text(hint.into()),
            exit: Exit::Usage,
        })
    }

    /// The same where only the help of the command can help.
    pub(super) fn bad_argument(text: impl Into<String>) -> CliError {
        CliError::Message(Message {
            text: text.into(),
            detail: None,
            hint: Hint::Help,
            exit: Exit::Usage,
        })
    }

    /// The same with a second sentence.
    pub(super) fn detail(mut self, text: &'static str) -> CliError {
        if let CliError::Message(message) = &mut self {
            message.detail = Some(text);
        }
        self
    }

    /// Nothing was written, and on purpose.
    pub(super) fn refused(text: impl Into<String>) -> CliError {
        CliError::Message(Message {
            text: text.into(),
            detail: None,
            hint: Hint::None,
            exit: Exit::Refused,
        })
    }

    /// A file that could be read and makes no sense.
    pub(super) fn contents(path: &Path, error: impl Display) -> CliError {
        CliError::new(format!("\"{}\": {error}", path.display()))
    }

    /// No directory on the command line and none in the environment.
    pub(super) fn no_data_directory() -> CliError {
        CliError::usage(
            "no data directory specified",
            "Give it as DIR, with -D, or in the environment variable PGDATA.",
        )
    }

    /// Prints it to standard error.
    pub(super) fn print(&self) {
        self.print_as(Caller::PGREDO);
    }

    /// Prints it to standard error under the name of `caller`.
    pub(super) fn print_as(&self, caller: Caller<'_>) {
        let Caller { program, command } = caller;
        let message = match self {
            CliError::Output(error) => {
                eprintln!("{program}: error: could not write to standard output: {error}");
                return;
            }
            CliError::Message(message) => message,
        };
        eprintln!("{program}: error: {}", message.text);
        if let Some(detail) = message.detail {
            eprintln!("{program}: detail: {detail}");
        }
        match &message.hint {
            Hint::None => {}
            Hint::Text(hint) => eprintln!("{program}: hint: {hint}"),
            Hint::Help => {
                eprintln!("{program}: hint: Try \"{command} --help\" for more information.");
            }
        }
    }

    /// How the process ends.
    pub(super) fn exit(&self) -> Exit {
        match self {
            CliError::Output(_) => Exit::Failed,
            CliError::Message(message) => message.exit,
        }
    }
}

/// The text alone.
impl Display for CliError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CliError::Output(error) => error.fmt(f),
            CliError::Message(message) => f.write_str(&message.text),
        }
    }
}

impl From<SysError> for CliError {
    fn from(error: SysError) -> CliError {
        CliError::new(error.to_string())
    }
}

impl From<RecoveryError> for CliError {
    fn from(error: RecoveryError) -> CliError {
        match error {
            RecoveryError::Refused(refusal) => CliError::refused(refusal.to_string()),
            other => CliError::new(other.to_string()),
        }
    }
}

impl From<CopyError> for CliError {
    fn from(error: CopyError) -> CliError {
        match error.is_refusal() {
            true => CliError::refused(error.to_string()),
            false => CliError::new(error.to_string()),
        }
    }
}

/// The only bare I/O errors of a command are those of writes to standard output.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        CliError::Output(error)
    }
}

/// Prints clap's complaint. `command` is what to ask for help.
pub(super) fn print_usage(rendered: &str, command: &str) {
    for line in usage_lines(rendered, command) {
        eprintln!("{line}");
    }
}

/// Clap's complaint in PostgreSQL's form: its first paragraph is the error, its tips are hints,
/// its usage line is left to the help.
fn usage_lines(rendered: &str, command: &str) -> Vec<String> {
    let rendered = rendered.strip_prefix("error: ").unwrap_or(rendered);
    let mut paragraphs = rendered.split("\n\n");
    let complaint = paragraphs.next().unwrap_or_default().trim_end();
    let mut lines = vec![format!("pgredo: error: {complaint}")];
    for tip in paragraphs.filter_map(|p| p.trim().strip_prefix("tip: ")) {
        lines.push(format!("pgredo: hint: {tip}"));
    }
    lines.push(format!(
        "pgredo: hint: Try \"{command} --help\" for more information."
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_lose_the_usage_and_keep_the_tips() {
        let rendered = "error: unexpected argument '--foo' found\n\n  tip: use '-- --foo'\n\n\
                        Usage: pgredo replay <DIR>\n\nFor more information, try '--help'.\n";
        assert_eq!(
            usage_lines(rendered, "pgredo replay"),
            [
                "pgredo: error: unexpected argument '--foo' found",
                "pgredo: hint: use '-- --foo'",
                "pgredo: hint: Try \"pgredo replay --help\" for more information.",
            ]
        );
    }
}
