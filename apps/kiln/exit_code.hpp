#pragma once

#include <string>

#include <kiln/result.hpp>

#include "apps/kiln/console.hpp"

namespace kiln::cli {

/// What the program returns. Stable: scripts test for these, docs/cli.md lists them.
enum ExitCode : int {
  kDone = 0,
  kFailed = 1,       ///< the thing asked for failed: a compile error, a file that is not there, damage found
  kUsage = 2,        ///< the command line makes no sense
  kUnavailable = 3,  ///< this machine lacks what is needed: no compiler, no device, an architecture it does not know
  kRefused = 4,      ///< policy says no: compiling is off and no cache has it
  // What an audit found, by the worst of it, from the severity on that --fail-on names.
  kFoundLow = 10,
  kFoundMedium = 11,
  kFoundHigh = 12,
  kFoundBlocking = 13,
};

inline ExitCode exit_code_of(Code code) {
  switch (code) {
    case Code::InvalidArgument: return kUsage;
    case Code::Unsupported:
    case Code::Unavailable: return kUnavailable;
    case Code::Refused: return kRefused;
    case Code::CompileFailed:
    case Code::Io:
    case Code::Corrupt:
    case Code::TimedOut:
    case Code::Cancelled:
    case Code::LoadRefused:
    case Code::Capturing:
    case Code::Internal: break;
  }
  return kFailed;
}

/// Tells the error; what the program returns for it.
inline int report(const Error& error, Console& console, const std::string& context = {}) {
  console.error(error, context);
  return exit_code_of(error.code);
}

}  // namespace kiln::cli
