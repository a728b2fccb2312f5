#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/hash.hpp"
#include "core/closure.hpp"

namespace kiln {

constexpr std::uint8_t kClosureVersion = 1;

/// As `Writer` of base/codec.hpp, to a hash: the encoding of a CUB unit's closure (50 KB) that is made only to be
/// hashed costs as many page faults as it has pages, which is as much as hashing it.
class HashWriter {
 public:
  explicit HashWriter(Sha256& hash) : hash_(hash) {}
  ~HashWriter() { flush(); }
  HashWriter(const HashWriter&) = delete;
  HashWriter& operator=(const HashWriter&) = delete;

  HashWriter& u8(std::uint8_t value) { return raw(&value, sizeof value); }
  HashWriter& u16(std::uint16_t value) { return raw(&value, sizeof value); }
  HashWriter& u32(std::uint32_t value) { return raw(&value, sizeof value); }
  HashWriter& u64(std::uint64_t value) { return raw(&value, sizeof value); }
  HashWriter& text(std::string_view value) {
    return u32(static_cast<std::uint32_t>(value.size())).raw(value.data(), value.size());
  }
  HashWriter& digest(const Digest& value) { return raw(value.bytes.data(), value.bytes.size()); }
  HashWriter& raw(const void* data, std::size_t size) {
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

/// The canonical bytes of a closure, docs/closure-format.md, to a writer of either kind.
template <class Out>
void write_closure(Out& out, const Closure& closure) {
  const bool bound = !closure.twins.empty() || !closure.nestings.empty();
  const int flags = (closure.located ? 1 : 0) | (closure.timed ? 2 : 0) | (bound ? 4 : 0);
  out.u8(kClosureVersion).u8(static_cast<std::uint8_t>(flags));
  if (closure.located) {
    out.text(closure.working_directory).u32(static_cast<std::uint32_t>(closure.root_paths.size()));
    for (const std::string& path : closure.root_paths) out.text(path);
  }
  out.u32(static_cast<std::uint32_t>(closure.items.size()));
  for (const Closure::Item& item : closure.items) {
    out.u16(item.root).u8(static_cast<std::uint8_t>(item.state)).text(item.name);
    if (item.state == Closure::State::Read || item.state == Closure::State::Sealed) out.digest(item.digest);
    if (closure.timed) out.u64(static_cast<std::uint64_t>(item.modified_s));
  }
  if (!bound) return;
  out.u32(static_cast<std::uint32_t>(closure.twins.size()));
  for (const Closure::Twins& pair : closure.twins) out.u32(pair.first).u32(pair.second).u8(pair.one_file ? 1 : 0);
  out.u32(static_cast<std::uint32_t>(closure.nestings.size()));
  for (const Closure::Nesting& nesting : closure.nestings) {
    out.u16(nesting.outer).u16(nesting.inner).text(nesting.below);
  }
}

}  // namespace kiln
