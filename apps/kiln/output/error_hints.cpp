// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/output/error_hints.hpp"

namespace kiln::cli {
namespace {

std::string_view hint_of_corruption(std::string_view command) {
  if (command.starts_with("kiln cache")) return "'kiln cache verify' finds and removes corrupt entries";
  if (command.starts_with("kiln bundle") || command.starts_with("kiln warm")) {
    return "fetch or build the bundle again; 'kiln bundle verify' checks if it is intact";
  }
  if (command.starts_with("kiln remote")) {
    return "'kiln remote verify --download' finds corrupt entries, and 'kiln remote rm KEY' removes them";
  }
  if (command.starts_with("kiln audit") || command.starts_with("kiln device-usage") ||
      command.starts_with("kiln report")) {
    return "record the trace again with KILN_TRACE and let the program exit normally";
  }
  return "create the file again; for a cache, 'kiln cache verify' finds and removes corrupt entries";
}

}  // namespace

bool names_next_step(std::string_view message) {
  return message.find("; ") != std::string_view::npos || message.find("'kiln ") != std::string_view::npos;
}

std::string_view hint_for(Code code, std::string_view command) {
  switch (code) {
    case Code::InvalidArgument: return "run the command with '--help' to see its arguments";
    case Code::Unsupported: return "'kiln doctor' shows what this machine and this build of kiln support";
    case Code::Unavailable: return "'kiln doctor' shows what is missing and how to install it";
    case Code::CompileFailed: return "fix the compiler errors above; failed compiles are not cached";
    case Code::Denied: return "'kiln config show' prints the setting that denies it and its source";
    case Code::Io:
      return command.starts_with("kiln remote") ? "'kiln remote stats' checks if the store responds"
                                                : "check the path and its permissions";
    case Code::Corrupt: return hint_of_corruption(command);
    case Code::TimedOut: return "try again; 'kiln doctor' measures the response time of every server";
    case Code::Cancelled: return "run the command again; finished work is cached";
    case Code::LoadRejected:
      return "compile for a device of this machine; 'kiln doctor' lists the devices and their architectures";
    case Code::Capturing: return "get the kernel before the capture begins";
    case Code::Internal:
      return "this is a bug in kiln: please report it, with 'kiln version' and the output of --verbose";
  }
  return "'kiln doctor' checks this machine";
}

}  // namespace kiln::cli
