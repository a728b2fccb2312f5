// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/recipe.hpp"

namespace kiln {

/// The restrictions that a worker puts on itself before it opens a compiler. Part of each job; the first one counts.
struct SandboxPlan {
  enum class Mode : std::uint8_t {
    Off = 0,
    NoPrograms = 1,      ///< the compiler is a library and starts no process
    MayRunPrograms = 2,  ///< the compiler runs programs, such as a linker
  };
  Mode mode = Mode::Off;
  /// True if include roots and the working directory are readable. That is necessary if the compiler opens files from
  /// other programs, or in a way that the worker cannot intercept, so that the worker cannot request them from the
  /// host.
  bool reads_roots = false;
  std::vector<std::string> readable;  ///< directories and files that can be read, in addition to the system's
  std::vector<std::string> writable;  ///< directories that can be written
};

/// The user's settings for sandboxes (worker.sandbox and worker.readable).
struct SandboxSettings {
  bool enabled = true;
  std::vector<std::string> readable;  ///< directories that every compile can read
};

/// Returns the directories that can contain the unit's headers, and files that its options name: the working directory,
/// include roots, and arguments of options such as `-I`, also in NVRTC_APPEND_FLAGS and NVRTC_PREPEND_FLAGS. The paths
/// are returned as given. The working directory `/` is omitted, because it contains all files.
std::vector<std::string> input_places(const Recipe& recipe);

/// Returns the plan for the worker that compiles this recipe. It depends only on the kind of the unit and on the
/// compiler, so that a worker serves all units of its compiler: the host opens the files of include roots
/// (`WorkerFiles`). `is_unseen` means that the compiler opens files in a way that the worker cannot intercept. In that
/// case, and if the compiler runs programs, the roots are readable.
SandboxPlan sandbox_plan(const Recipe& recipe, const SandboxSettings& settings, bool is_unseen);

/// The components of a sandbox that a kernel supports or that are in force.
struct SandboxParts {
  bool seccomp = false;
  int landlock_abi = 0;  ///< 0 means none
  /// Returns human-readable text: "seccomp and Landlock (ABI 7)".
  std::string text() const;
};

/// Returns the components that this kernel supports for this process.
SandboxParts available_sandbox();

/// Restricts this process and its child processes permanently. Call it before the process has a second thread.
/// Components that the kernel does not support or rejects are skipped. Returns the components in force.
SandboxParts enter_sandbox(const SandboxPlan& plan);

}  // namespace kiln
