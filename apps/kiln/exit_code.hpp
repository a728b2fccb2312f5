// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kiln/result.hpp>

#include "apps/kiln/output/console.hpp"

namespace kiln::cli {

/// The exit codes of the program. Stable, because scripts test for them; docs/reference/errors.md lists them.
enum ExitCode : int {
  kSuccess = 0,
  kFailed = 1,       ///< the command failed: a compile error, a missing file, corruption
  kUsage = 2,        ///< invalid command line
  kUnavailable = 3,  ///< this machine lacks something: a compiler, a device, support for an architecture
  kDenied = 4,       ///< denied by policy, for example compiling is disabled and the cache misses
  // The worst severity of an audit, if it is at least the severity of --fail-on.
  kAuditLow = 10,
  kAuditMedium = 11,
  kAuditHigh = 12,
  kAuditBlocking = 13,
  kAuditInconclusive = 14,  ///< no such finding, but the trace lacks evidence
  kAuditRegression = 15,    ///< no new finding, but the second trace is worse than the first
};

inline ExitCode exit_code_of(Code code) {
  switch (code) {
    case Code::InvalidArgument: return kUsage;
    case Code::Unsupported:
    case Code::Unavailable: return kUnavailable;
    case Code::Denied: return kDenied;
    case Code::CompileFailed:
    case Code::Io:
    case Code::Corrupt:
    case Code::TimedOut:
    case Code::Cancelled:
    case Code::LoadRejected:
    case Code::Capturing:
    case Code::Internal: break;
  }
  return kFailed;
}

/// Prints the error and returns its exit code.
inline int report(const Error& error, Console& console, const std::string& context = {}) {
  console.error(error, context);
  return exit_code_of(error.code);
}

}  // namespace kiln::cli
