// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// The root of the kernel's information files. Tests set their own; all other callers use the default.
struct SystemFileRoot {
  std::string root;  ///< prefix of `/proc/…` and `/sys/…`
  std::optional<std::uint32_t>
      filesystem{};  ///< type of the file system at `/`, as in statfs(2); not set: that of `root`
};

/// Returns the number of CPUs that this process can use, by its affinity and its cgroup quota; at least 1. Fast enough
/// for any caller: the quota is read at most once a second.
unsigned usable_cores();
/// Returns the CPU quota of the cgroup of this process and its parents, in CPUs, rounded up. Returns nothing if there
/// is no quota. Reads files.
std::optional<unsigned> cgroup_cores(const SystemFileRoot& files = {});

/// Returns the bytes of memory that are available without swapping, by the machine and the cgroups of this process.
/// Returns the maximum value if neither is known. Reads files.
std::uint64_t available_memory(const SystemFileRoot& files = {});

/// Returns the bytes of memory that this process and others of its cgroup can use in total: the smallest limit of the
/// cgroup and its parents, or the machine's memory. Returns the maximum value if neither is known. Reads files.
std::uint64_t memory_limit(const SystemFileRoot& files = {});

/// Returns the peak resident memory of this process in bytes; 0 if unknown. Not the value of getrusage, which includes
/// the parent's peak. Reads files.
std::uint64_t peak_memory(const SystemFileRoot& files = {});

/// Returns the model name of the first CPU, or the architecture if there is none. Reads files.
std::string processor_model(const SystemFileRoot& files = {});

/// Returns whether this process runs in a container, whose files and host name end with it. Cannot detect every
/// container. Reads files.
bool in_container(const SystemFileRoot& files = {});

/// Returns the identity of this host, for files that are of no use elsewhere: its machine id and name. In a container
/// both belong to the container and change with it, so it is the id of the machine's boot instead. Reads files.
std::string host_identity(const SystemFileRoot& files = {});

/// Returns a random number for names and seeds, not for secrets: if the kernel has no random bytes yet, it is made from
/// the process id and the time.
std::uint64_t random_number();
/// Returns such a number as 16 hexadecimal digits.
std::string random_digits();

/// Returns the command line of this process as a shell would show it. The value of an option that is named like a
/// secret is replaced by `***`. Reads files; empty if unknown.
std::string current_command_line(const SystemFileRoot& files = {});
/// Returns the name of this program: the base name of the script for an interpreter (python train.py), else of the
/// executable; `python -c` and `python -m module` as they are. Reads files; empty if unknown.
std::string program_name(const SystemFileRoot& files = {});
/// Formats a command line in that form.
std::string format_command_line(const std::vector<std::string>& arguments);

/// The kernel's information about a process at one time.
struct ProcessSample {
  char state = 0;              ///< as in proc(5): R, S, D, T, t, Z, …
  pid_t parent = 0;            ///< parent process id
  std::uint64_t cpu_time = 0;  ///< total CPU time used, in ticks
  std::uint64_t started = 0;   ///< start time, in ticks since boot
  /// Returns whether a signal or a debugger has stopped the process.
  bool is_stopped() const { return state == 'T' || state == 't'; }
};
/// Returns nothing if the process does not exist or is not accessible. Reads files.
std::optional<ProcessSample> sample_process(pid_t process, const SystemFileRoot& files = {});

/// Returns the start time of a process in ticks since boot; together with the process id it is unique. Returns nothing
/// if there is no such process, or if it is a zombie. Reads files.
std::optional<std::uint64_t> process_start_time(pid_t process, const SystemFileRoot& files = {});
/// Returns whether a process is stopped, by a signal (SIGSTOP, Ctrl-Z) or by a debugger; false if unknown. Reads files.
bool is_process_stopped(pid_t process, const SystemFileRoot& files = {});
/// Returns the id of the PID namespace of this process; 0 if unknown.
std::uint64_t pid_namespace_id(const SystemFileRoot& files = {});
/// Returns whether this process has another IPC namespace than the host, and thus in a container usually its own
/// /dev/shm. Returns false if unknown. Reads files.
bool has_own_ipc_namespace(const SystemFileRoot& files = {});

/// Returns the name of the calling thread; empty if unknown.
std::string thread_name();

}  // namespace kiln
