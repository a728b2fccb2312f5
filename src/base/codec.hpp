// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include <kiln/key.hpp>

namespace kiln {

/// An encoder for kiln's binary formats: little-endian fixed-width numbers, and strings as a u32 length and their
/// bytes.
class BinaryWriter {
 public:
  BinaryWriter& u8(std::uint8_t value) { return raw(&value, 1); }
  BinaryWriter& u16(std::uint16_t value) { return number(value); }
  BinaryWriter& u32(std::uint32_t value) { return number(value); }
  BinaryWriter& u64(std::uint64_t value) { return number(value); }
  BinaryWriter& f64(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return u64(bits);
  }
  BinaryWriter& text(std::string_view value) {
    u32(static_cast<std::uint32_t>(value.size()));
    return raw(value.data(), value.size());
  }
  BinaryWriter& digest(const Digest& value) { return raw(value.bytes.data(), value.bytes.size()); }
  BinaryWriter& raw(const void* data, std::size_t size) {
    out_.append(static_cast<const char*>(data), size);
    return *this;
  }
  void reserve(std::size_t size) { out_.reserve(size); }

  const std::string& bytes() const& { return out_; }
  std::string bytes() && { return std::move(out_); }

 private:
  template <class T>
  BinaryWriter& number(T value) {
    static_assert(std::endian::native == std::endian::little);
    return raw(&value, sizeof value);
  }
  std::string out_;
};

/// A decoder for the output of `BinaryWriter`. After the first read past the end every read returns zero or empty and
/// `ok()` is false, so a parser checks once at its end. Lengths are checked against the remaining bytes before any
/// allocation.
class BinaryReader {
 public:
  explicit BinaryReader(std::span<const std::uint8_t> data) : rest_(data) {}
  explicit BinaryReader(std::string_view data)
      : rest_(reinterpret_cast<const std::uint8_t*>(data.data()), data.size()) {}

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  double f64() {
    const std::uint64_t bits = u64();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  std::string_view text() { return raw(u32()); }
  Digest digest() {
    Digest value;
    const std::string_view bytes = raw(value.bytes.size());
    if (bytes.size() == value.bytes.size()) std::memcpy(value.bytes.data(), bytes.data(), bytes.size());
    return value;
  }
  std::string_view raw(std::size_t size) {
    if (!ok_ || size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view bytes(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  /// Reads a count of elements that take at least `smallest` bytes each. A count that cannot fit into the rest is an
  /// error.
  std::uint32_t count(std::size_t smallest) {
    const std::uint32_t value = u32();
    if (smallest != 0 && value > rest_.size() / smallest) {
      ok_ = false;
      return 0;
    }
    return value;
  }

  bool ok() const { return ok_; }
  void fail() { ok_ = false; }
  std::size_t left() const { return rest_.size(); }
  /// Returns whether all bytes were read without an error.
  bool at_end() const { return ok_ && rest_.empty(); }

 private:
  template <class T>
  T number() {
    T value{};
    const std::string_view bytes = raw(sizeof value);
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::span<const std::uint8_t> rest_;
  bool ok_ = true;
};

}  // namespace kiln
