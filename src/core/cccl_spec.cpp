// SPDX-License-Identifier: Apache-2.0
#include "core/cccl_spec.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "core/recipe.hpp"

namespace kiln::cccl {

namespace {

constexpr AlgorithmTraits kShapes[] = {
    {.name = "scan",
     .iterators = "in, out",
     .iterator_count = 2,
     .operator_count = 1,
     .type = true,
     .init = true,
     .inclusive = true},
    {.name = "reduce",
     .iterators = "in, out",
     .iterator_count = 2,
     .operator_count = 1,
     .type = true,
     .init = true,
     .determinism = true},
    {.name = "segmented_reduce",
     .iterators = "in, out, begin offsets, end offsets",
     .iterator_count = 4,
     .operator_count = 1,
     .type = true},
    {.name = "three_way_partition",
     .iterators = "in, first part, second part, rest, counts",
     .iterator_count = 5,
     .operator_count = 2},
    {.name = "binary_search",
     .iterators = "data, values, out",
     .iterator_count = 3,
     .operator_count = 1,
     .bound = true},
    {.name = "radix_sort", .iterators = "keys, values", .iterator_count = 2, .operator_count = 0, .order = true},
    {.name = "merge_sort",
     .iterators = "keys in, values in, keys out, values out",
     .iterator_count = 4,
     .operator_count = 1},
    {.name = "unique_by_key",
     .iterators = "keys in, values in, keys out, values out, count",
     .iterator_count = 5,
     .operator_count = 1},
    {.name = "unary_transform", .iterators = "in, out", .iterator_count = 2, .operator_count = 1},
    {.name = "binary_transform", .iterators = "first in, second in, out", .iterator_count = 3, .operator_count = 1},
    {.name = "for", .iterators = "data", .iterator_count = 1, .operator_count = 1},
    {.name = "histogram",
     .iterators = "samples, histogram",
     .iterator_count = 2,
     .operator_count = 0,
     .type = true,
     .histogram = true},
    {.name = "segmented_sort",
     .iterators = "keys, values, begin offsets, end offsets",
     .iterator_count = 4,
     .operator_count = 0,
     .order = true},
};

constexpr std::string_view kScalars[] = {"i8",  "i16", "i32", "i64", "u8",      "u16",  "u32",
                                         "u64", "f16", "f32", "f64", "storage", "bool", "bf16"};
constexpr std::size_t kScalarSizes[] = {1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 1, 2};

constexpr std::string_view kOperators[] = {
    "stateless",    "stateful", "plus",    "minus",         "multiplies", "divides",     "modulus",    "equal_to",
    "not_equal_to", "greater",  "less",    "greater_equal", "less_equal", "logical_and", "logical_or", "logical_not",
    "bit_and",      "bit_or",   "bit_xor", "bit_not",       "identity",   "negate",      "minimum",    "maximum"};

constexpr std::string_view kErrorStart = "CCCL spec: ";

bool is_identifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return c == '_' || (c < 0x80 && std::isalnum(c) != 0); });
}

bool is_alignment(std::size_t value) { return value != 0 && value <= kMaxState && (value & (value - 1)) == 0; }

/// Returns the operators that have code, including those of iterators, with the location of each.
std::vector<std::pair<const Operator*, std::string>> code_of(const Spec& spec) {
  std::vector<std::pair<const Operator*, std::string>> all;
  for (std::size_t i = 0; i != spec.iterators.size(); ++i) {
    if (!spec.iterators[i].custom) continue;
    const std::string where = "iterators[" + std::to_string(i) + "].";
    all.emplace_back(&spec.iterators[i].advance, where + "advance");
    all.emplace_back(&spec.iterators[i].dereference, where + "dereference");
  }
  for (std::size_t i = 0; i != spec.operators.size(); ++i) {
    if (has_code(spec.operators[i])) all.emplace_back(&spec.operators[i], "operators[" + std::to_string(i) + "]");
  }
  return all;
}

Status check_type(const Type& type, const std::string& where) {
  if (type.scalar != Scalar::Storage) {
    if (static_cast<std::size_t>(type.scalar) < std::size(kScalars) && type == Type::of(type.scalar)) return {};
    return spec_error(where, "size and alignment do not match the scalar");
  }
  if (!is_alignment(type.alignment)) return spec_error(where + ".alignment", "must be a power of two, at most 4096");
  if (type.size == 0 || type.size > kMaxState || type.size % type.alignment != 0)
    return spec_error(where + ".storage", "must be a multiple of the alignment, from 1 to 4096");
  return {};
}

Status check_code(const Spec& spec) {
  const auto all = code_of(spec);
  for (const auto& [op, where] : all) {
    if (!has_code(*op)) return spec_error(where, "the functions of an iterator need a name and a source");
    if (!is_identifier(op->name) || op->name.size() > kMaxNameLength)
      return spec_error(where + ".name", "must be a C identifier of at most 256 characters");
    const bool elsewhere = std::any_of(all.begin(), all.end(), [&op = op](const auto& other) {
      return other.first != op && other.first->name == op->name && !other.first->source.empty();
    });
    if (op->source.empty() && !elsewhere)
      return spec_error(where + ".source", "is empty, and no other operator of the spec defines '" + op->name + "'");
    if (!is_alignment(op->state_alignment))
      return spec_error(where + ".state_alignment", "must be a power of two, at most 4096");
    const bool stateful = op->kind == OperatorKind::Stateful;
    if (op->state_size > kMaxState || stateful != (op->state_size != 0))
      return spec_error(where + ".state_size", stateful ? "must be from 1 to 4096" : "must be 0 without a state");
  }
  return {};
}

Status check_iterators(const Spec& spec) {
  for (std::size_t i = 0; i != spec.iterators.size(); ++i) {
    const Iterator& it = spec.iterators[i];
    const std::string where = "iterators[" + std::to_string(i) + "]";
    if (Status type = check_type(it.value, where); !type) return type;
    if (!it.custom) continue;
    if (it.state_size == 0 || it.state_size > kMaxState)
      return spec_error(where + ".state_size", "must be from 1 to 4096");
    if (!is_alignment(it.state_alignment))
      return spec_error(where + ".state_alignment", "must be a power of two, at most 4096");
  }
  return {};
}

Status check_histogram(const Spec& spec) {
  if (spec.channels < 1 || spec.channels > kMaxChannels) return spec_error("channels", "must be from 1 to 4");
  if (spec.active_channels < 1 || spec.active_channels > spec.channels)
    return spec_error("active_channels", "must be from 1 to the number of channels");
  if (spec.levels < 2 || spec.levels > kMaxLevels)
    return spec_error("levels", "must be at least 2, one more than bins");
  return {};
}

Status check_counts(const Spec& spec, const AlgorithmTraits& shape) {
  const auto count = [&](const char* what, std::size_t have, std::size_t want, const std::string& names) -> Status {
    if (have == want) return {};
    return spec_error(
        what, std::string(shape.name) + " takes " + std::to_string(want) + names + ", not " + std::to_string(have));
  };
  if (Status status =
          count("iterators", spec.iterators.size(), shape.iterator_count, std::string(" (") + shape.iterators + ")");
      !status)
    return status;
  return count("operators", spec.operators.size(), shape.operator_count, "");
}

/// Returns the suffix that distinguishes specs of one algorithm by type.
std::string type_suffix(const Type& type) {
  if (type.scalar == Scalar::Storage) return "_storage" + std::to_string(type.size);
  return "_" + std::string(kScalars[static_cast<std::size_t>(type.scalar)]);
}

std::string derived_name(const Spec& spec) {
  const AlgorithmTraits& shape = traits_of(spec.algorithm);
  std::string name = shape.name;
  if (shape.type && !shape.histogram) return name + type_suffix(spec.type);
  const bool pairs = spec.algorithm == Algorithm::RadixSort || spec.algorithm == Algorithm::MergeSort ||
                     spec.algorithm == Algorithm::UniqueByKey || spec.algorithm == Algorithm::SegmentedSort;
  for (std::size_t i = 0; i != std::min<std::size_t>(spec.iterators.size(), pairs ? 2 : 1); ++i)
    name += type_suffix(spec.iterators[i].value);
  return name;
}

}  // namespace

const AlgorithmTraits& traits_of(Algorithm algorithm) { return kShapes[static_cast<std::size_t>(algorithm)]; }
std::span<const AlgorithmTraits> all_traits() { return kShapes; }
std::span<const std::string_view> scalar_names() { return kScalars; }
std::span<const std::string_view> operator_names() { return kOperators; }

Error spec_error(const std::string& place, const std::string& what) {
  return make_error(Code::InvalidArgument, std::string(kErrorStart) + place + ": " + what);
}

std::string_view error_field(const Error& error) {
  const std::string_view message = error.message;
  if (message.substr(0, kErrorStart.size()) != kErrorStart) return {};
  const std::string_view rest = message.substr(kErrorStart.size());
  const std::size_t end = rest.find(": ");
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

const char* to_string(Algorithm algorithm) { return traits_of(algorithm).name; }

bool shares_code(const Spec& spec) {
  const auto all = code_of(spec);
  return std::any_of(all.begin(), all.end(), [](const auto& code) { return code.first->shared; });
}

Type Type::of(Scalar scalar) {
  const std::size_t size = kScalarSizes[static_cast<std::size_t>(scalar)];
  return {scalar, size, size};
}

Status Spec::validate() const {
  if (static_cast<std::size_t>(algorithm) >= std::size(kShapes)) return spec_error("algorithm", "is unknown");
  if (name.size() > kMaxNameLength) return spec_error("name", "has more than 256 characters");
  const AlgorithmTraits& shape = traits_of(algorithm);
  if (Status status = check_counts(*this, shape); !status) return status;
  if (Status status = check_iterators(*this); !status) return status;
  if (Status status = check_code(*this); !status) return status;
  if (shape.type) {
    if (Status status = check_type(type, "type"); !status) return status;
  }
  if (shape.histogram) {
    if (Status status = check_histogram(*this); !status) return status;
  }
  if (shared_capability < 0 || shared_capability > kMaxCapability)
    return spec_error("shared_for", "must be a compute capability, such as 80");
  if (!is_utf8(*this)) return spec_error("document", "names and sources must be UTF-8");
  if (text().size() > kMaxTextLength) return spec_error("document", "must be at most one megabyte");
  return {};
}

Spec Spec::for_targets(const std::vector<Target>& targets) const {
  Spec spec = *this;
  spec.shared_capability = 0;
  for (const Target& target : targets) {
    const int capability = capability_of(target, true).value_or(0);
    if (capability > 0 && (spec.shared_capability == 0 || capability < spec.shared_capability))
      spec.shared_capability = capability;
  }
  return spec;
}

Unit Spec::unit() const { return Unit::of_kind("cccl", name.empty() ? derived_name(*this) : name, text()); }

}  // namespace kiln::cccl
