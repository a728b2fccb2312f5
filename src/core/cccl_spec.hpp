// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <kiln/cccl.hpp>

namespace kiln::cccl {

/// The inputs of an algorithm, and the fields of a spec that affect its code.
struct AlgorithmTraits {
  const char* name;       ///< the name that the library uses
  const char* iterators;  ///< the roles of the iterators, in order
  std::size_t iterator_count;
  std::size_t operator_count;
  bool type = false;
  bool init = false;
  bool order = false;
  bool determinism = false;
  bool bound = false;
  bool inclusive = false;
  bool histogram = false;  ///< channels, active_channels, levels, even
};
const AlgorithmTraits& traits_of(Algorithm algorithm);
/// Returns the shapes of all algorithms, in the order of Algorithm.
std::span<const AlgorithmTraits> all_traits();

/// The names `i32`, `f64`, … in the order of Scalar, and `plus`, `less`, … in the order of OperatorKind.
std::span<const std::string_view> scalar_names();
std::span<const std::string_view> operator_names();

/// Returns whether an operator has its own code instead of being built into the library.
inline bool has_code(const Operator& op) {
  return op.kind == OperatorKind::Stateless || op.kind == OperatorKind::Stateful;
}
/// Returns whether code of the spec is compiled once for several targets, so that `shared_capability` matters.
bool shares_code(const Spec& spec);
/// Returns whether all names and sources are UTF-8.
bool is_utf8(const Spec& spec);
/// Returns an error for a location in a spec, such as `iterators[1].advance.name`.
Error spec_error(const std::string& place, const std::string& what);
/// Returns the location that such an error names; empty if it names none.
std::string_view error_field(const Error& error);

// Limits for specs from untrusted input.
inline constexpr std::size_t kMaxTextLength = 1 << 20;
inline constexpr std::size_t kMaxState = 4096;
inline constexpr std::size_t kMaxParts = 16;  ///< maximum number of iterators, and of operators
inline constexpr std::size_t kMaxNameLength = 256;
inline constexpr int kMaxChannels = 4;  ///< limit of the library
inline constexpr int kMaxLevels = 1 << 30;
inline constexpr int kMaxCapability = 9999;

}  // namespace kiln::cccl
