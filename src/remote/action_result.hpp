#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// The part of a remote-execution `ActionResult` that kiln writes and reads: files by digest, and what the action said
/// on its standard output, which is where kiln's own record lies. Servers that check what they are given accept it.
/// Fields that kiln does not know are skipped. docs/remote-format.md has the field numbers.
struct ActionResult {
  struct File {
    std::string path;
    Digest digest;
    std::uint64_t size = 0;
  };
  std::vector<File> files;
  std::string said;

  std::string encode() const;
  /// Code::Corrupt for what is no such message. Every length is checked; at most 64 files.
  static Result<ActionResult> decode(std::span<const std::uint8_t> body);
};

}  // namespace kiln
