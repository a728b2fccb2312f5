// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/hash.hpp"
#include "core/dependency_set.hpp"

namespace kiln {

constexpr std::uint8_t kDependencySetVersion = 1;

/// A `Writer` (base/codec.hpp) that writes to a hash. Encoding the dependency set of a CUB unit (50 KB) into memory
/// only to hash it would cost one page fault per page, which takes as long as the hash itself. Not thread-safe.
class HashingWriter {
 public:
  explicit HashingWriter(Sha256& hash) : hash_(hash) {}
  ~HashingWriter() { flush(); }
  HashingWriter(const HashingWriter&) = delete;
  HashingWriter& operator=(const HashingWriter&) = delete;

  HashingWriter& u8(std::uint8_t value) { return raw(&value, sizeof value); }
  HashingWriter& u16(std::uint16_t value) { return raw(&value, sizeof value); }
  HashingWriter& u32(std::uint32_t value) { return raw(&value, sizeof value); }
  HashingWriter& u64(std::uint64_t value) { return raw(&value, sizeof value); }
  HashingWriter& text(std::string_view value) {
    return u32(static_cast<std::uint32_t>(value.size())).raw(value.data(), value.size());
  }
  HashingWriter& digest(const Digest& value) { return raw(value.bytes.data(), value.bytes.size()); }
  HashingWriter& raw(const void* data, std::size_t size) {
    if (size > buffer_.size() - used_) flush();
    if (size > buffer_.size()) {
      hash_.add({static_cast<const std::uint8_t*>(data), size});
      return *this;
    }
    std::memcpy(buffer_.data() + used_, data, size);
    used_ += size;
    return *this;
  }

 private:
  void flush() {
    hash_.add({buffer_.data(), used_});
    used_ = 0;
  }

  Sha256& hash_;
  std::array<std::uint8_t, 4096> buffer_;
  std::size_t used_ = 0;
};

/// Writes the canonical bytes of a dependency set (docs/internals/formats/cache-folder.md) to either kind of writer.
template <class Out>
void write_dependency_set(Out& out, const DependencySet& dependency_set) {
  const bool bound = !dependency_set.duplicate_files.empty() || !dependency_set.nested_roots.empty();
  const int flags = (dependency_set.embeds_paths ? 1 : 0) | (dependency_set.embeds_mtimes ? 2 : 0) | (bound ? 4 : 0);
  out.u8(kDependencySetVersion).u8(static_cast<std::uint8_t>(flags));
  if (dependency_set.embeds_paths) {
    out.text(dependency_set.working_directory).u32(static_cast<std::uint32_t>(dependency_set.root_paths.size()));
    for (const std::string& path : dependency_set.root_paths) out.text(path);
  }
  out.u32(static_cast<std::uint32_t>(dependency_set.items.size()));
  for (const DependencySet::Dependency& item : dependency_set.items) {
    out.u16(item.root).u8(static_cast<std::uint8_t>(item.state)).text(item.name);
    if (item.state == DependencySet::State::Read || item.state == DependencySet::State::Sentinel)
      out.digest(item.digest);
    if (dependency_set.embeds_mtimes) out.u64(static_cast<std::uint64_t>(item.modified_s));
  }
  if (!bound) return;
  out.u32(static_cast<std::uint32_t>(dependency_set.duplicate_files.size()));
  for (const DependencySet::DuplicateFiles& pair : dependency_set.duplicate_files)
    out.u32(pair.first).u32(pair.second).u8(pair.same_file ? 1 : 0);
  out.u32(static_cast<std::uint32_t>(dependency_set.nested_roots.size()));
  for (const DependencySet::NestedRoot& nesting : dependency_set.nested_roots) {
    out.u16(nesting.outer).u16(nesting.inner).text(nesting.subpath);
  }
}

}  // namespace kiln
