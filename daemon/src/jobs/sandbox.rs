//! What a worker may still do once it has its job: the files of the job, its channel, and no more.
//!
//! Code to Landlock ABI 2 (Debian 12's kernel 6.1 has file rules only), so sockets are denied by
//! seccomp and core hands connections in (operations.md 9.3, protocols.md 1.6). Everything here
//! fails closed: a worker that cannot restrict itself ends without touching its job.

use std::collections::BTreeMap;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use serde::{Deserialize, Serialize};

/// The Landlock revision that the rules are written for.
const LANDLOCK: ABI = ABI::V2;

/// Why a worker could not be restricted.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// A limit or a process attribute was refused.
    #[error("`{0}` cannot be set")]
    Attribute(&'static str, #[source] rustix::io::Errno),
    /// The parent died before the death signal was armed.
    #[error("the parent process is gone")]
    Orphan,
    /// Landlock said no.
    #[error("file rules cannot be set")]
    Files(#[source] landlock::RulesetError),
    /// Landlock is there only in part.
    #[error("file rules are not fully enforced by this kernel")]
    Partial,
    /// A granted path exists but cannot be opened.
    #[error("`{0}` cannot be granted")]
    Path(String, #[source] landlock::PathFdError),
    /// The filter cannot be built or loaded.
    #[error("the system call filter cannot be set")]
    Filter(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The paths of one job. Whatever is not named here cannot be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grants {
    /// Files, and folders with all below them, that may be read. A path that does not exist is
    /// left out: the tool then reports it as missing.
    pub read: Vec<PathBuf>,
    /// Folders in which files and links may be made, written and replaced.
    pub write: Vec<PathBuf>,
}

/// First stage, before the job is read: die with core, leave no core file, stay small.
///
/// # Errors
/// When the kernel refuses one of them.
pub(super) fn harden() -> Result<(), Error> {
    use Error::Attribute;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|e| Attribute("parent death signal", e))?;
    // The parent may have died before the line above; then the death signal never comes.
    if rustix::process::getppid().is_none_or(|pid| pid.as_raw_nonzero().get() == 1) {
        return Err(Error::Orphan);
    }
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|e| Attribute("dumpable", e))?;
    rustix::thread::set_no_new_privs(true).map_err(|e| Attribute("no new privileges", e))?;
    for (name, resource, most) in [
        ("core file size", Resource::Core, 0),
        ("address space", Resource::As, 2 << 30),
        ("data size", Resource::Data, 512 << 20),
        ("file size", Resource::Fsize, 4 << 20),
        ("open files", Resource::Nofile, 256),
        ("locked memory", Resource::Memlock, 0),
        ("processor time", Resource::Cpu, 3600),
    ] {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        rustix::process::setrlimit(resource, limit).map_err(|e| Attribute(name, e))?;
    }
    Ok(())
}

/// Second stage, with the job in hand and before anything from outside is read: file rules, then
/// the system call filter. Both last until the process ends.
///
/// # Errors
/// When the kernel cannot enforce all of it.
pub(super) fn enter(grants: &Grants) -> Result<(), Error> {
    restrict_files(grants)?;
    let filter = filter().map_err(|e| Error::Filter(Box::new(e)))?;
    seccompiler::apply_filter(&filter).map_err(|e| Error::Filter(Box::new(e)))
}

fn restrict_files(grants: &Grants) -> Result<(), Error> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(Ruleset::create)
        .map_err(Error::Files)?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write =
        read | AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::MakeSym | AccessFs::RemoveFile;
    let wanted = grants.read.iter().map(|path| (path, read));
    for (path, access) in wanted.chain(grants.write.iter().map(|path| (path, write))) {
        let Ok(meta) = std::fs::metadata(path) else {
            continue;
        };
        let access: BitFlags<AccessFs> = if meta.is_dir() {
            access
        } else {
            access & AccessFs::from_file(LANDLOCK)
        };
        let fd = PathFd::new(path).map_err(|e| Error::Path(path.display().to_string(), e))?;
        ruleset = ruleset
            .add_rule(PathBeneath::new(fd, access))
            .map_err(Error::Files)?;
    }
    let status = ruleset.restrict_self().map_err(Error::Files)?;
    if status.ruleset == RulesetStatus::FullyEnforced && status.no_new_privs {
        Ok(())
    } else {
        Err(Error::Partial)
    }
}

/// System calls of a worker with one thread that reads files, answers on its channel and speaks on
/// connections it was handed. Absent on purpose: socket, connect, bind, listen, accept, execve,
/// clone (no thread either), ptrace, process_vm_*, pidfd_*, kill, mount, bpf, io_uring, keyctl.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fchmod,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_futex,
    libc::SYS_getdents64,
    libc::SYS_getpeername,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_symlinkat,
    libc::SYS_unlinkat,
    libc::SYS_write,
    libc::SYS_writev,
];

/// The older spellings that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const ALLOWED_OLDER: &[libc::c_long] = &[
    libc::SYS_epoll_wait,
    libc::SYS_lstat,
    libc::SYS_open,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_stat,
    libc::SYS_symlink,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_OLDER: &[libc::c_long] = &[];

fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED
        .iter()
        .chain(ALLOWED_OLDER)
        .map(|&number| (number, Vec::new()))
        .collect();
    // Memory is never made executable.
    let not_executable = SeccompRule::new(vec![SeccompCondition::new(
        2,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64),
        0,
    )?])?;
    rules.insert(libc::SYS_mmap, vec![not_executable.clone()]);
    rules.insert(libc::SYS_mprotect, vec![not_executable]);
    // The one control call that a non-blocking descriptor needs.
    let non_blocking = SeccompRule::new(vec![SeccompCondition::new(
        1,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        libc::FIONBIO,
    )?])?;
    rules.insert(libc::SYS_ioctl, vec![non_blocking]);
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::EPERM as u32),
        SeccompAction::Allow,
        arch,
    )?
    .try_into()
}

#[cfg(test)]
mod tests {
    use super::{ALLOWED, ALLOWED_OLDER, filter};

    #[test]
    fn the_filter_compiles_and_names_no_call_that_reaches_outside() {
        assert!(!filter().unwrap().is_empty());
        for denied in [
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_listen,
            libc::SYS_accept4,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_ptrace,
            libc::SYS_kill,
            libc::SYS_pidfd_getfd,
            libc::SYS_io_uring_setup,
            libc::SYS_setrlimit,
            libc::SYS_prlimit64,
        ] {
            assert!(!ALLOWED.contains(&denied) && !ALLOWED_OLDER.contains(&denied));
        }
    }
}
