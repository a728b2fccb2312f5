// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kiln {

/// A shared, immutable span of bytes. Copying it copies a pointer; each copy keeps the memory alive.
class Bytes {
 public:
  Bytes() = default;
  /// Creates a view of [data, data + size) that keeps `owner` alive.
  Bytes(std::shared_ptr<const void> owner, const std::uint8_t* data, std::size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}

  [[nodiscard]] static Bytes copy_of(std::string_view text) { return of(std::string(text)); }
  [[nodiscard]] static Bytes of(std::string text) {
    auto owner = std::make_shared<const std::string>(std::move(text));
    const auto* data = reinterpret_cast<const std::uint8_t*>(owner->data());
    const std::size_t size = owner->size();
    return Bytes(std::move(owner), data, size);
  }

  /// Returns a view of [offset, offset + size), which must be within this one. It keeps the whole memory alive.
  [[nodiscard]] Bytes slice(std::size_t offset, std::size_t size) const { return Bytes(owner_, data_ + offset, size); }

  const std::uint8_t* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const std::uint8_t* begin() const noexcept { return data_; }
  const std::uint8_t* end() const noexcept { return data_ + size_; }
  std::string_view view() const noexcept { return {reinterpret_cast<const char*>(data_), size_}; }

  friend bool operator==(const Bytes& a, const Bytes& b) { return a.view() == b.view(); }
  friend bool operator!=(const Bytes& a, const Bytes& b) { return !(a == b); }

 private:
  std::shared_ptr<const void> owner_;
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace kiln
