//! The sandbox of the engine process in two stages (inference 1.3).
//!
//! Stage A comes before a byte of the model is parsed: no socket, no connect, no exec, no trace, no new process, and
//! Landlock leaves one file to read. Stage B comes after the warm-up, when all threads exist and all files are open:
//! no open of anything, no new thread, no executable memory. Both are lists of what is allowed; everything else
//! returns an error and does not kill, so an unforeseen call costs a request and not the process.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Why a stage is not in force.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("process attributes cannot be set")]
    Process(#[from] rustix::io::Errno),
    #[error("`/proc/self` cannot be used")]
    Proc(#[source] std::io::Error),
    #[error("the filter of system calls cannot be built")]
    Build(#[from] seccompiler::BackendError),
    #[error("the filter of system calls cannot be put in force")]
    Apply(#[from] seccompiler::Error),
    #[error("Landlock cannot be put in force")]
    Landlock(#[from] landlock::RulesetError),
    #[error("the kernel enforces Landlock only in part")]
    Partial,
}

/// What the process gives up before it reads its first frame.
pub(crate) fn enter() -> Result<(), Error> {
    // A parent that is gone already shows as end of file on the channel.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    limit(Resource::Core, 0)?;
    // After an out-of-memory kill of this process the incident goes on; after one of core it does not.
    std::fs::write("/proc/self/oom_score_adj", "500").map_err(Error::Proc)?;
    close_strays()?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Closes every descriptor above the channel that the parent let slip through.
fn close_strays() -> Result<(), Error> {
    let mut strays = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").map_err(Error::Proc)? {
        let name = entry.map_err(Error::Proc)?.file_name();
        if let Some(fd) = name.to_str().and_then(|name| name.parse::<i32>().ok())
            && fd > super::CHANNEL
        {
            strays.push(fd);
        }
    }
    // The descriptor of the listing itself was in the list and is closed by now.
    strays.retain(|fd| std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok());
    for fd in strays {
        // SAFETY: this runs first in a process with one thread that has opened nothing yet, so the descriptor is
        // open, as was just seen, and no value of this program owns one above the channel.
        unsafe { rustix::io::close(fd) };
    }
    Ok(())
}

/// Bounds the address space.
pub(crate) fn limit_memory(bytes: u64) -> Result<(), Error> {
    limit(Resource::As, bytes)
}

fn limit(resource: Resource, value: u64) -> Result<(), Error> {
    let both = Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    Ok(rustix::process::setrlimit(resource, both)?)
}

/// Stage A. The calling thread must be the only one.
pub(crate) fn stage_a(model: BorrowedFd<'_>) -> Result<(), Error> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V2))?
        .create()?
        .add_rule(PathBeneath::new(model, AccessFs::ReadFile))?
        .restrict_self()?;
    if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
        return Err(Error::Partial);
    }
    let mut rules = working()?;
    for call in [
        libc::SYS_open,
        libc::SYS_openat,
        libc::SYS_stat,
        libc::SYS_newfstatat,
        libc::SYS_statx,
        libc::SYS_readlink,
        libc::SYS_readlinkat,
        libc::SYS_access,
        libc::SYS_faccessat,
        libc::SYS_faccessat2,
        libc::SYS_getdents64,
        libc::SYS_fadvise64,
        libc::SYS_getcwd,
        libc::SYS_prlimit64,
        libc::SYS_setrlimit,
        libc::SYS_prctl,
        libc::SYS_seccomp,
        libc::SYS_uname,
        libc::SYS_set_tid_address,
        libc::SYS_sched_setaffinity,
        // Answered with ENOSYS by the second filter: its flags lie in memory, where no filter can look.
        libc::SYS_clone3,
    ] {
        rules.insert(call, Vec::new());
    }
    // Threads, never processes.
    rules.insert(
        libc::SYS_clone,
        vec![masked(0, libc::CLONE_THREAD.cast_unsigned(), true)?],
    );
    apply(rules)?;
    no_clone3()
}

/// Stage B, for all threads at once.
pub(crate) fn stage_b() -> Result<(), Error> {
    apply_with_clone3(working()?)
}

/// What is left after the warm-up: memory, locks, clocks, the channel, and the end.
fn working() -> Result<BTreeMap<i64, Vec<SeccompRule>>, Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = [
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_pread64,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
        libc::SYS_shutdown,
        libc::SYS_poll,
        libc::SYS_ppoll,
        libc::SYS_lseek,
        libc::SYS_fstat,
        libc::SYS_close,
        libc::SYS_futex,
        libc::SYS_brk,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_getcpu,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_getrusage,
        libc::SYS_sysinfo,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_set_robust_list,
        libc::SYS_rseq,
        libc::SYS_membarrier,
        libc::SYS_restart_syscall,
        libc::SYS_tgkill,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ]
    .into_iter()
    .map(|call| (call, Vec::new()))
    .collect();
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(
            call,
            vec![masked(2, libc::PROT_EXEC.cast_unsigned(), false)?],
        );
    }
    Ok(rules)
}

/// A rule that holds when the bit of the argument is set, or when it is not.
fn masked(argument: u8, bit: u32, set: bool) -> Result<SeccompRule, Error> {
    let bit = u64::from(bit);
    let condition = SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(bit),
        if set { bit } else { 0 },
    )?;
    Ok(SeccompRule::new(vec![condition])?)
}

fn apply_with_clone3(mut rules: BTreeMap<i64, Vec<SeccompRule>>) -> Result<(), Error> {
    rules.insert(libc::SYS_clone3, Vec::new());
    apply(rules)
}

fn apply(rules: BTreeMap<i64, Vec<SeccompRule>>) -> Result<(), Error> {
    install(SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        SeccompAction::Allow,
        TargetArch::x86_64,
    )?)
}

/// The C library falls back to `clone` when `clone3` does not exist.
fn no_clone3() -> Result<(), Error> {
    install(SeccompFilter::new(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
        TargetArch::x86_64,
    )?)
}

fn install(filter: SeccompFilter) -> Result<(), Error> {
    let program: BpfProgram = filter.try_into()?;
    Ok(seccompiler::apply_filter_all_threads(&program)?)
}
