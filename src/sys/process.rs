//! Processes, signals and terminals.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal;
use nix::sys::sysinfo::sysinfo;
use nix::unistd::Pid;

use super::Kernel;

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

/// Cores this process may use.
pub fn cores() -> usize {
    let granted = sched_getaffinity(Pid::from_raw(0));
    let is_set = |cpus: &CpuSet, cpu| cpus.is_set(cpu).unwrap_or(false);
    let count = |cpus: CpuSet| {
        (0..CpuSet::count())
            .filter(|cpu| is_set(&cpus, *cpu))
            .count()
    };
    granted.map_or(1, count).max(1)
}

/// Memory of the machine in bytes, or less if a control group grants less.
pub fn memory_bytes(kernel: &Kernel) -> u64 {
    let machine = sysinfo().map_or(u64::MAX, |info| info.ram_total());
    let granted = kernel
        .open_read(Path::new("/sys/fs/cgroup/memory.max"))
        .and_then(|file| {
            let mut text = [0; 32];
            let read = file.read_at(&mut text, 0)?;
            Ok(String::from_utf8_lossy(&text[..read])
                .trim()
                .parse()
                .unwrap_or(u64::MAX))
        });
    // No control group, or one without a limit.
    machine.min(granted.unwrap_or(u64::MAX))
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
