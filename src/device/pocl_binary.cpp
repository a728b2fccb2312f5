#include "device/pocl_binary.hpp"

#include <string>

#include "base/codec.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic("poclbin\0", 8);
constexpr std::uint32_t kOldest = 9;
constexpr std::uint32_t kNewest = 12;
constexpr std::uint64_t kHasVariables = 2;
constexpr std::size_t kFolderAt = 36;
constexpr std::size_t kFolderSize = 41;

bool files_are_whole(std::string_view bytes) {
  Reader in(bytes);
  while (in.ok() && in.left() != 0) {
    const std::string_view name = in.text();
    (void)in.text();
    if (name.empty() || name.find("..") != std::string_view::npos) return false;
  }
  return in.done();
}

bool kernel_is_whole(Reader& in) {
  // Two sizes of eight bytes and three numbers of four are the least that a record has.
  constexpr std::uint64_t kLeast = 28;
  const std::uint64_t size = in.u64();
  const std::uint64_t files = in.u64();
  if (!in.ok() || size < kLeast || files > size - kLeast) return false;
  const std::string_view rest = in.raw(size - 16);
  return in.ok() && files_are_whole(rest.substr(rest.size() - files));
}

bool is_whole(std::string_view bytes) {
  Reader in(bytes);
  if (in.raw(kMagic.size()) != kMagic) return false;
  (void)in.u64();
  const std::uint32_t version = in.u32();
  const std::uint32_t kernels = in.u32();
  const std::uint64_t flags = in.u64();
  const std::uint32_t folders = in.u32();
  (void)in.raw(kFolderSize);
  if (!in.ok() || version < kOldest || version > kNewest) return false;
  if (version > kOldest && (flags & kHasVariables) != 0) (void)in.u64();
  for (std::uint32_t i = 0; i < folders && in.ok(); ++i) {
    if (!files_are_whole(in.raw(in.u64()))) return false;
  }
  for (std::uint32_t i = 0; i < kernels; ++i) {
    if (!kernel_is_whole(in)) return false;
  }
  return in.done();
}

}  // namespace

Status check_pocl_binary(std::string_view bytes) {
  if (is_whole(bytes)) return {};
  return failure(Code::LoadRefused,
                 "these " + std::to_string(bytes.size()) + " bytes are no whole PoCL binary of a form that kiln knows");
}

std::string with_pocl_folder(std::string_view whole, std::string_view name) {
  std::string bytes(whole);
  std::string field(name.substr(0, kFolderSize - 1));
  field.resize(kFolderSize);
  bytes.replace(kFolderAt, kFolderSize, field);
  return bytes;
}

}  // namespace kiln
