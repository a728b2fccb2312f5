# SPDX-License-Identifier: Apache-2.0
"""The faults: for every system call of an operation, the errors that it can return, half of the bytes if it transfers bytes, and
a kill -9 right after it."""
import dataclasses
import random

# Errors of the kernel, a full disk, a network file system or a busy host. If a fault costs a real compile, only the
# first two are used.
ERRORS = {
    "openat": ["EMFILE", "EACCES", "EIO", "ENOMEM", "EINTR", "ESTALE", "ENOSPC"],
    "openat2": ["EMFILE", "EACCES", "EIO", "ENOMEM", "EINTR", "ESTALE", "ENOSYS", "EPERM"],
    "open": ["EMFILE", "EACCES", "EIO", "EINTR"],
    "read": ["EIO", "EINTR", "ESTALE"],
    "pread64": ["EIO", "EINTR", "ESTALE"],
    "readv": ["EIO", "EINTR"],
    "write": ["ENOSPC", "EIO", "EINTR", "EDQUOT"],
    "writev": ["ENOSPC", "EIO", "EINTR"],
    "pwrite64": ["ENOSPC", "EIO", "EINTR"],
    "close": ["EIO", "EINTR", "ENOSPC"],
    "fstat": ["EIO", "ENOMEM", "ESTALE"],
    "newfstatat": ["EACCES", "EIO", "ENOMEM", "ESTALE"],
    "statx": ["EACCES", "EIO", "ENOMEM"],
    "fstatfs": ["EIO", "ENOSYS", "EINTR"],
    "statfs": ["EIO", "EACCES", "EINTR"],
    "lseek": ["EIO", "EINVAL"],
    "getdents64": ["EIO", "ENOMEM", "ESTALE"],
    "mkdirat": ["EACCES", "ENOSPC", "EROFS", "EIO"],
    "mkdir": ["EACCES", "ENOSPC", "EROFS", "EIO"],
    "renameat": ["EIO", "ENOSPC", "EACCES", "ESTALE", "late-EIO"],
    "renameat2": ["EIO", "ENOSPC", "EINVAL", "late-EIO"],
    "rename": ["EIO", "ENOSPC", "EACCES", "late-EIO"],
    "linkat": ["EIO", "ENOSPC", "EPERM", "late-EIO"],
    "unlinkat": ["EIO", "EACCES", "EBUSY", "late-EIO"],
    "unlink": ["EIO", "EACCES", "EBUSY"],
    "ftruncate": ["EIO", "ENOSPC", "EINTR"],
    "fallocate": ["ENOSPC", "EOPNOTSUPP"],
    "fsync": ["EIO", "ENOSPC"],
    "fdatasync": ["EIO", "ENOSPC"],
    "fchmod": ["EPERM", "EIO"],
    "utimensat": ["EACCES", "EIO"],
    "faccessat": ["EACCES", "EIO"],
    "faccessat2": ["EACCES", "EIO", "ENOSYS"],
    "access": ["EACCES", "EIO"],
    "readlink": ["EACCES", "ENOMEM"],
    "readlinkat": ["EACCES", "ENOMEM"],
    "getcwd": ["ENOENT", "ENOMEM"],
    "fcntl": ["ENOLCK", "EINTR", "EAGAIN"],
    "flock": ["ENOLCK", "EINTR"],
    "mmap": ["ENOMEM", "EAGAIN"],
    "mremap": ["ENOMEM"],
    "mprotect": ["ENOMEM", "EACCES"],
    "brk": ["ENOMEM"],
    "madvise": ["ENOMEM", "EAGAIN"],
    "munmap": ["ENOMEM"],
    "clone3": ["EAGAIN", "ENOMEM"],
    "clone": ["EAGAIN", "ENOMEM"],
    "vfork": ["EAGAIN", "ENOMEM"],
    "fork": ["EAGAIN", "ENOMEM"],
    "execve": ["EACCES", "ENOMEM", "ENOENT"],
    "wait4": ["EINTR", "ECHILD"],
    "waitid": ["EINTR", "ECHILD"],
    "pidfd_open": ["EMFILE", "ENOSYS"],
    "pidfd_send_signal": ["EPERM", "ENOSYS"],
    "pipe2": ["EMFILE", "ENFILE"],
    "socketpair": ["EMFILE", "ENFILE"],
    "socket": ["EMFILE", "EACCES"],
    "connect": ["ECONNREFUSED", "EINTR", "EACCES"],
    "sendto": ["EPIPE", "EINTR", "ENOBUFS"],
    "sendmsg": ["EPIPE", "EINTR", "ENOBUFS"],
    "recvfrom": ["ECONNRESET", "EINTR", "ENOMEM"],
    "recvmsg": ["ECONNRESET", "EINTR", "ENOMEM"],
    "dup": ["EMFILE", "EINTR"],
    "dup2": ["EBUSY", "EINTR"],
    "dup3": ["EBUSY", "EINTR"],
    "eventfd2": ["EMFILE", "ENOMEM"],
    "memfd_create": ["EMFILE", "ENOMEM"],
    "poll": ["EINTR", "ENOMEM"],
    "ppoll": ["EINTR", "ENOMEM"],
    "epoll_wait": ["EINTR"],
    "clock_nanosleep": ["EINTR"],
    "nanosleep": ["EINTR"],
    "futex": ["EINTR", "EAGAIN"],
    "getrandom": ["EINTR", "ENOSYS"],
    "prlimit64": ["EPERM", "ENOSYS"],
    "sched_getaffinity": ["EPERM", "ENOSYS"],
    "personality": ["EPERM"],
    "prctl": ["EPERM", "EINVAL"],
    "setsid": ["EPERM"],
    "sysinfo": ["EFAULT"],
    "uname": ["EFAULT"],
    "ioctl": ["ENOTTY", "EIO"],
    "fadvise64": ["EINVAL"],
    "setpriority": ["EACCES", "EPERM"],
    "sched_setattr": ["EPERM", "EINVAL"],
    "kill": ["EPERM", "ESRCH"],
    "tgkill": ["EAGAIN", "ESRCH"],
    "copy_file_range": ["EXDEV", "EIO", "ENOSPC"],
    "sendfile": ["EIO", "EINVAL"],
}
# Calls that transfer bytes and can report a partial transfer.
MOVES = {"read", "pread64", "write", "pwrite64", "sendto", "recvfrom"}
# Calls after which no process is left to kill, or that the C library makes to end a thread.
ENDS = {"exit_group", "exit", "rt_sigreturn"}
# Calls that a signal can interrupt. An EINTR storm fails every third of them.
RESTARTABLE = ["openat", "openat2", "read", "pread64", "write", "pwrite64", "fcntl", "flock", "poll", "ppoll", "wait4", "waitid", "sendto", "sendmsg",
               "recvfrom", "recvmsg", "clock_nanosleep", "futex", "ftruncate", "fstatfs", "getrandom", "connect"]


@dataclasses.dataclass(frozen=True)
class Fault:
    process: int
    call: str
    occurrence: int
    what: str
    every: int = 0

    def __str__(self):
        times = f"{self.occurrence}/{self.every}" if self.every else str(self.occurrence)
        return f"{self.process}:{self.call}:{times}:{self.what}"

    def options(self):
        """Returns the arguments of fault_inject."""
        return ["--fault", str(self)]

    def before(self):
        """Returns the command that runs the program."""
        return []

    @property
    def kind(self):
        if self.every:
            return "EINTR storm"
        return {"kill": "kill -9", "short": "half of the bytes"}.get(self.what, "error")


def parsed(text):
    """Parses a fault as written by str()."""
    process, call, times, what = text.split(":")
    occurrence, _, every = times.partition("/")
    return Fault(int(process), call, int(occurrence), what, int(every or 0))


def of_call(process, call, occurrence, errors_at_most):
    """Yields every fault of one call."""
    if call in ENDS:
        return []
    whats = ERRORS.get(call, [])[:errors_at_most]
    if call in MOVES:
        whats = whats + ["short"]
    return [Fault(process, call, occurrence, what) for what in whats + ["kill"]]


def planned(calls, every, errors_at_most, processes):
    """Returns the faults for the recorded calls, (process, call, occurrence) each. For a process it takes every `every[process]`th
    call, counted over all of them, so that the sampling does not favor any call."""
    faults = []
    seen = dict.fromkeys(processes, 0)
    first = set()
    for process, call, occurrence in calls:
        if process not in seen:
            continue
        seen[process] += 1
        # The first call of each name is always included, so that every kind of call fails at least once.
        if seen[process] % every.get(process, 1) and (process, call) in first:
            continue
        first.add((process, call))
        faults += of_call(process, call, occurrence, errors_at_most)
    return faults


def storms(calls):
    made = {call for _, call, _ in calls}
    of_all = "+".join(call for call in RESTARTABLE if call in made)
    faults = [Fault(0, of_all, phase, "EINTR", 3) for phase in (1, 2, 3)] if of_all else []
    return faults + [Fault(0, call, phase, "EINTR", 3) for call in RESTARTABLE if call in made for phase in (1, 2, 3)]


def sample(faults, count, seed):
    """Returns a sample that is the same on every machine with the same calls."""
    return sorted(random.Random(seed).sample(faults, min(count, len(faults))), key=str)
