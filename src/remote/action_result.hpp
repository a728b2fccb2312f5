// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// The part of a remote-execution `ActionResult` that kiln writes and reads: output files by digest, and the standard
/// output of the action, in which kiln stores its own record. Servers that validate uploads accept it. `decode` skips
/// unknown fields. docs/internals/formats/remote.md lists the field numbers.
struct ActionResult {
  struct File {
    std::string path;
    Digest digest;
    std::uint64_t size = 0;
    std::string contents = {};  ///< the file itself, if it is small; empty means that it is only in the CAS
  };
  std::vector<File> files;
  std::string stdout_raw;

  std::string encode() const;
  /// Returns Code::Corrupt for a malformed message. Checks every length and accepts at most 64 files.
  static Result<ActionResult> decode(std::span<const std::uint8_t> body);
};

}  // namespace kiln
