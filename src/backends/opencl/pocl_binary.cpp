// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/pocl_binary.hpp"

#include <string>

#include "base/codec.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic("poclbin\0", 8);
constexpr std::uint32_t kOldest = 9;
constexpr std::uint32_t kNewest = 12;
constexpr std::uint64_t kHasVariables = 2;
constexpr std::size_t kDirectoryAt = 36;
constexpr std::size_t kDirectorySize = 41;

bool files_are_whole(std::string_view bytes) {
  BinaryReader in(bytes);
  while (in.ok() && in.left() != 0) {
    const std::string_view name = in.text();
    (void)in.text();
    if (name.empty() || name.find("..") != std::string_view::npos) return false;
  }
  return in.at_end();
}

bool kernel_is_whole(BinaryReader& in) {
  // Minimum size of a record: two sizes of eight bytes and three numbers of four.
  constexpr std::uint64_t kMinimum = 28;
  const std::uint64_t size = in.u64();
  const std::uint64_t files = in.u64();
  if (!in.ok() || size < kMinimum || files > size - kMinimum) return false;
  const std::string_view rest = in.raw(size - 16);
  return in.ok() && files_are_whole(rest.substr(rest.size() - files));
}

bool is_whole(std::string_view bytes) {
  BinaryReader in(bytes);
  if (in.raw(kMagic.size()) != kMagic) return false;
  (void)in.u64();
  const std::uint32_t version = in.u32();
  const std::uint32_t kernels = in.u32();
  const std::uint64_t flags = in.u64();
  const std::uint32_t directories = in.u32();
  (void)in.raw(kDirectorySize);
  if (!in.ok() || version < kOldest || version > kNewest) return false;
  if (version > kOldest && (flags & kHasVariables) != 0) (void)in.u64();
  for (std::uint32_t i = 0; i < directories && in.ok(); ++i) {
    if (!files_are_whole(in.raw(in.u64()))) return false;
  }
  for (std::uint32_t i = 0; i < kernels; ++i) {
    if (!kernel_is_whole(in)) return false;
  }
  return in.at_end();
}

}  // namespace

Status check_pocl_binary(std::string_view bytes) {
  if (is_whole(bytes)) return {};
  return make_error(Code::LoadRejected, "these " + std::to_string(bytes.size()) +
                                            " bytes are not a complete PoCL binary of a supported version");
}

std::string with_pocl_directory(std::string_view whole, std::string_view name) {
  std::string bytes(whole);
  std::string field(name.substr(0, kDirectorySize - 1));
  field.resize(kDirectorySize);
  bytes.replace(kDirectoryAt, kDirectorySize, field);
  return bytes;
}

}  // namespace kiln
