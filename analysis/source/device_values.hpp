// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analysis/source/rail_patterns.hpp"

namespace kiln::source {

/// A name in a function of a source.
using LocalName = std::pair<std::uint32_t, std::string_view>;
struct LocalNameHash {
  std::size_t operator()(const LocalName& name) const {
    return std::hash<std::string_view>()(name.second) ^ (name.first * std::size_t{0x9E3779B97F4A7C15});
  }
};

/// The names of a source that hold device arrays or values that were read from a device, as far as assignments in the
/// same function show it. The order of statements does not count. Not thread-safe.
class DeviceValues {
 public:
  /// Both must outlive this object.
  DeviceValues(const Structure& source, const Imports& imports);

  /// Returns whether the number of iterations of a loop comes from the device.
  bool drive(const Loop& loop) const;
  /// Returns whether the pattern of the word at `at` applies here, with its library.
  bool is_hit(std::size_t at, const Pattern& pattern) const;
  /// Returns whether the word at `at` copies a Thrust vector to the host.
  bool is_thrust_read(std::size_t at) const;
  /// Returns whether `int(…)` at `at` reads a scalar from an array that is known to be on a device.
  bool is_scalar_read(std::size_t at) const { return scalar_read(at) == ScalarRead::Known; }

 private:
  static constexpr unsigned kRead = 1;    // a value on the host that was read from a device
  static constexpr unsigned kDevice = 2;  // an array on a device
  static constexpr unsigned kSized = 4;   // an array on a device whose size depends on data
  static constexpr unsigned kHost = 8;    // an array on the host
  unsigned flags_of(std::size_t at) const;
  unsigned expression_flags(TokenRange range) const;
  unsigned value_flags(TokenRange range) const;
  unsigned word_flags(std::size_t at, TokenRange range) const;
  unsigned module_flags(std::size_t at) const;
  bool ends_in_metadata(std::size_t at, std::size_t end) const;
  bool is_read(std::size_t at) const;
  enum class ScalarRead : unsigned char { None, Likely, Known };
  ScalarRead scalar_read(std::size_t at) const;
  void add_statement(TokenRange statement);
  void add_target(std::size_t at, unsigned flags);
  void add_destination(std::size_t call);

  const Structure& source_;
  const Imports& imports_;
  std::unordered_map<LocalName, unsigned, LocalNameHash> names_;
};

}  // namespace kiln::source
