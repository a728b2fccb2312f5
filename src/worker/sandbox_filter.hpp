// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln {

/// Returns true if this kernel supports seccomp filters for this architecture.
bool has_system_call_filter();

/// Denies system calls by which a compiler could reach other processes, the network or the system's configuration, for
/// this process and its child processes. A denied call fails with EPERM, so that a library that only probes for a
/// feature continues. Needs no_new_privs. `may_run_programs` allows execve and fork. Returns false if the kernel
/// rejects the filter.
bool filter_system_calls(bool may_run_programs);

}  // namespace kiln
