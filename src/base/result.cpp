// SPDX-License-Identifier: Apache-2.0
#include <kiln/result.hpp>

#include <cerrno>
#include <system_error>

#include "base/error.hpp"

namespace kiln {

const char* to_string(Code code) {
  switch (code) {
    case Code::InvalidArgument: return "invalid_argument";
    case Code::Unsupported: return "unsupported";
    case Code::Unavailable: return "unavailable";
    case Code::CompileFailed: return "compile_failed";
    case Code::Denied: return "denied";
    case Code::Io: return "io";
    case Code::Corrupt: return "corrupt";
    case Code::TimedOut: return "timed_out";
    case Code::Cancelled: return "cancelled";
    case Code::LoadRejected: return "load_rejected";
    case Code::Capturing: return "capturing";
    case Code::Internal: return "internal";
  }
  return "unknown";
}

Error make_error(Code code, std::string message, std::string log) { return {code, std::move(message), std::move(log)}; }

Error out_of_memory() noexcept { return {Code::Unavailable, "out of memory", {}}; }

std::string errno_message(int error) { return std::generic_category().message(error); }

Error io_error(std::string_view what, std::string_view path, int error) {
  return {Code::Io, std::string(what) + " " + std::string(path) + ": " + errno_message(error), {}};
}

}  // namespace kiln
