//! Processes, signals and terminals.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::sys::signal;
use nix::unistd::Pid;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// This process.
pub fn pid() -> u32 {
    std::process::id()
}

/// The process that started this one.
pub fn parent_pid() -> u32 {
    std::os::unix::process::parent_id()
}

/// True if a process of that number exists, whoever owns it.
pub fn pid_is_alive(pid: i32) -> bool {
    !matches!(signal::kill(Pid::from_raw(pid), None), Err(Errno::ESRCH))
}

/// True if standard error is a terminal.
pub fn is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// True once the process was asked to stop.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

extern "C" fn remember(_: i32) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// From here on SIGINT and SIGTERM set [`interrupted`], so that the run can end between records;
/// a second one ends the process at once.
#[allow(unsafe_code)]
pub fn install_interrupt_handler() {
    use signal::{SaFlags, SigAction, SigHandler, SigSet, Signal};
    let action = SigAction::new(
        SigHandler::Handler(remember),
        SaFlags::SA_RESETHAND,
        SigSet::empty(),
    );
    for which in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        let _ = unsafe { signal::sigaction(which, &action) };
    }
}
