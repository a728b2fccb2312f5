#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <kiln/cccl.hpp>

namespace kiln::cccl {

/// What an algorithm takes, and which fields of a spec decide its code.
struct Shape {
  const char* name;       ///< the library's
  const char* iterators;  ///< what they are for, in their order
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
const Shape& shape_of(Algorithm algorithm);
/// All of them, in the order of Algorithm.
std::span<const Shape> shapes();

/// `i32`, `f64`, …, in the order of Scalar; `plus`, `less`, …, in that of OperatorKind.
std::span<const std::string_view> scalar_names();
std::span<const std::string_view> operator_names();

/// Whether an operator brings code of its own, rather than being one that the library has.
inline bool has_code(const Operator& op) {
  return op.kind == OperatorKind::Stateless || op.kind == OperatorKind::Stateful;
}
/// Whether code of the spec is compiled once for several targets, so that `shared_for` matters.
bool shares_code(const Spec& spec);
/// Whether all names and sources are UTF-8.
bool is_text(const Spec& spec);
/// What is wrong with a spec at a place in it, such as `iterators[1].advance.name`.
Error spec_error(const std::string& place, const std::string& what);
/// The place that such an error names; empty where it names none.
std::string_view field_of(const Error& error);

// What bounds a spec that comes from outside.
inline constexpr std::size_t kMostText = 1 << 20;
inline constexpr std::size_t kMostState = 4096;
inline constexpr std::size_t kMostParts = 16;  ///< iterators, and operators
inline constexpr std::size_t kMostName = 256;
inline constexpr int kMostChannels = 4;  ///< the library's own limit
inline constexpr int kMostLevels = 1 << 30;
inline constexpr int kMostCapability = 9999;

}  // namespace kiln::cccl
