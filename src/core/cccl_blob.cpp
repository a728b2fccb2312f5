// SPDX-License-Identifier: Apache-2.0
#include "core/cccl_blob.hpp"

#include <algorithm>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "core/cccl_spec.hpp"

namespace kiln {
namespace {

constexpr std::string_view kBlobMagic = "CCCLSER1";
constexpr std::string_view kElfMagic = "\177ELF";
// The fields before the cubin depend on the algorithm. The longest known ones take 109 bytes.
constexpr std::size_t kMaxBlobHead = 4096;
constexpr std::size_t kMaxSections = 4096;

Error bad_blob(const std::string& reason) { return make_error(Code::Corrupt, "invalid CCCL blob: " + reason); }

// Returns the cubin: the first ELF file whose size, in the eight bytes before it, is within the blob.
std::string_view cubin_of(std::string_view blob) {
  const std::string_view head = blob.substr(0, kMaxBlobHead);
  for (std::size_t at = head.find(kElfMagic); at != std::string_view::npos; at = head.find(kElfMagic, at + 1)) {
    if (at < kBlobMagic.size() + sizeof(std::uint64_t)) continue;
    const std::uint64_t size = BinaryReader(blob.substr(at - sizeof(std::uint64_t))).u64();
    if (size >= kElfMagic.size() && size <= blob.size() - at) return blob.substr(at, size);
  }
  return {};
}

}  // namespace

Result<CcclBlob> read_cccl_blob(std::string_view blob, const std::vector<std::string>& kernels) {
  BinaryReader head(blob);
  if (head.raw(kBlobMagic.size()) != kBlobMagic) return bad_blob("wrong magic");
  (void)head.u32();  // the algorithm
  (void)head.u32();  // the version of the form
  CcclBlob contents;
  const std::uint32_t capability = head.u32();
  if (capability == 0 || capability > static_cast<std::uint32_t>(cccl::kMaxCapability)) {
    return bad_blob("wrong compute capability");
  }
  contents.capability = static_cast<int>(capability);
  contents.code = cubin_of(blob);
  if (contents.code.empty()) return bad_blob("it has no cubin");
  const auto code_end = static_cast<std::size_t>(contents.code.data() + contents.code.size() - blob.data());
  BinaryReader sections(blob.substr(code_end));
  for (std::size_t count = 0; sections.ok() && sections.left() != 0; ++count) {
    if (count == kMaxSections) return bad_blob("too many sections");
    const std::string_view section = sections.raw(sections.u64());
    if (std::find(kernels.begin(), kernels.end(), section) != kernels.end()) {
      contents.kernels.push_back(section);
    } else {
      contents.policy_bytes += section.size();
    }
  }
  if (!sections.at_end()) return bad_blob("truncated");
  return contents;
}

}  // namespace kiln
