// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <kiln/cccl.hpp>

#include "base/error.hpp"
#include "core/cccl_spec.hpp"

namespace kiln::cccl {

namespace {

std::string named_after(std::string what, Scalar first) {
  return std::move(what) + "_" + std::string(scalar_names()[static_cast<std::size_t>(first)]);
}
std::string named_after(std::string what, Scalar first, Scalar second) {
  return named_after(named_after(std::move(what), first), second);
}

Iterator pointer(Scalar scalar) { return Iterator::pointer(Type::of(scalar)); }

/// Returns the common name of a reduction operator.
std::string short_name(const Operator& op) {
  switch (op.kind) {
    case OperatorKind::Plus: return "sum";
    case OperatorKind::Minimum: return "min";
    case OperatorKind::Maximum: return "max";
    case OperatorKind::Stateless:
    case OperatorKind::Stateful: return op.name;
    default: return std::string(operator_names()[static_cast<std::size_t>(op.kind)]);
  }
}

/// The C++ type of a scalar, and the header that declares it, if any.
struct Spelling {
  const char* type;
  const char* header;
};
Spelling spelling(Scalar scalar) {
  static constexpr Spelling kSpellings[] = {{"signed char", ""},
                                            {"short", ""},
                                            {"int", ""},
                                            {"long long", ""},
                                            {"unsigned char", ""},
                                            {"unsigned short", ""},
                                            {"unsigned int", ""},
                                            {"unsigned long long", ""},
                                            {"__half", "#include <cuda_fp16.h>\n"},
                                            {"float", ""},
                                            {"double", ""},
                                            {"void", ""},
                                            {"bool", ""},
                                            {"__nv_bfloat16", "#include <cuda_bf16.h>\n"}};
  return kSpellings[static_cast<std::size_t>(scalar)];
}

/// Returns the source of a predicate from an expression in x, with the signature that the library calls. The line break
/// terminates a comment at the end of the expression.
std::string predicate_function(Scalar scalar, const std::string& expression) {
  const auto [type, header] = spelling(scalar);
  return std::string(header) + "extern \"C\" __device__ void kiln_select(void* argument, void* result) {\n  const " +
         type + " x = *static_cast<const " + type +
         "*>(argument);\n  *static_cast<bool*>(result) = static_cast<bool>(" + expression + "\n  );\n}\n";
}

std::vector<Spec> make_predefined_specs() {
  using Op = OperatorKind;
  // Radix sorts take by far the longest. The first two specs have no headers in common, so that each of two workers
  // precompiles a header set for all that follow. Adjacent specs after them differ in headers too, where possible.
  return {
      radix_sort_pairs<std::uint64_t, std::int32_t>(),
      merge_sort_pairs<std::uint64_t, std::int32_t>(),
      radix_sort_pairs<std::int32_t, std::int32_t>(),
      unique_by_key<std::uint64_t, std::int32_t>(),
      exclusive_scan<std::int64_t>(),
      segmented_reduce<double>(Op::Plus),
      unique_by_key<std::int32_t, std::int32_t>(),
      segmented_reduce<double>(Op::Minimum),
      select<std::int64_t>("x != 0"),
      segmented_reduce<double>(Op::Maximum),
      select<std::int32_t>("x != 0"),
      exclusive_scan<std::int32_t>(),
      reduce<double>(),
      lower_bound<std::uint64_t>(),
      reduce<std::int32_t>(),
      upper_bound<std::uint64_t>(),
      lower_bound<std::int32_t>(),
      upper_bound<std::int32_t>(),
  };
}

}  // namespace

const std::vector<Spec>& predefined_specs() {
  static const std::vector<Spec> specs = make_predefined_specs();
  return specs;
}

Result<Spec> find_predefined(std::string_view name) {
  std::string names;
  for (const Spec& spec : predefined_specs()) {
    if (spec.name == name) return spec;
    names += (names.empty() ? "" : ", ") + spec.name;
  }
  return make_error(Code::InvalidArgument,
                    "unknown CCCL spec '" + std::string(name.substr(0, kMaxNameLength)) + "'; use one of " + names);
}

namespace detail {

Spec scan(Scalar type, bool inclusive) {
  Spec spec;
  spec.name = named_after(inclusive ? "inclusive_scan" : "exclusive_scan", type);
  spec.algorithm = Algorithm::Scan;
  spec.iterators = {pointer(type), pointer(type)};
  spec.operators = {Operator::of(OperatorKind::Plus)};
  spec.type = Type::of(type);
  spec.inclusive = inclusive;
  return spec;
}

Spec select(Scalar type, const std::string& predicate_source) {
  const bool whole = predicate_source.find("extern \"C\"") != std::string::npos;
  Spec spec;
  spec.name = named_after("select", type);
  spec.algorithm = Algorithm::ThreeWayPartition;
  spec.iterators = {pointer(type), pointer(type), pointer(type), pointer(type), pointer(Scalar::I64)};
  spec.operators = {
      Operator::from_source("kiln_select", whole ? predicate_source : predicate_function(type, predicate_source)),
      // All items that are not selected go to the third output.
      Operator::from_source("kiln_select_none",
                            "extern \"C\" __device__ void kiln_select_none(void*, void* result) {\n"
                            "  *static_cast<bool*>(result) = false;\n}\n")};
  return spec;
}

Spec reduce(Scalar type, Operator op) {
  Spec spec;
  spec.name = named_after("reduce_" + short_name(op), type);
  spec.algorithm = Algorithm::Reduce;
  spec.iterators = {pointer(type), pointer(type)};
  spec.operators = {std::move(op)};
  spec.type = Type::of(type);
  return spec;
}

Spec segmented_reduce(Scalar type, Operator op) {
  Spec spec;
  spec.name = named_after("segmented_reduce_" + short_name(op), type);
  spec.algorithm = Algorithm::SegmentedReduce;
  spec.iterators = {pointer(type), pointer(type), pointer(Scalar::I64), pointer(Scalar::I64)};
  spec.operators = {std::move(op)};
  spec.type = Type::of(type);
  return spec;
}

Spec bound(Scalar type, Bound which) {
  Spec spec;
  spec.name = named_after(which == Bound::Lower ? "lower_bound" : "upper_bound", type);
  spec.algorithm = Algorithm::BinarySearch;
  // Positions are unsigned, as cuda.compute requires them, so that both share the artifact.
  spec.iterators = {pointer(type), pointer(type), pointer(Scalar::U64)};
  spec.operators = {Operator::of(OperatorKind::Less)};
  spec.bound = which;
  return spec;
}

Spec radix_sort_pairs(Scalar key, Scalar value, SortOrder order) {
  Spec spec;
  spec.name = named_after(order == SortOrder::Ascending ? "radix_sort" : "radix_sort_descending", key, value);
  spec.algorithm = Algorithm::RadixSort;
  spec.iterators = {pointer(key), pointer(value)};
  spec.order = order;
  return spec;
}

Spec merge_sort_pairs(Scalar key, Scalar value, Operator less) {
  const bool usual = less.kind == OperatorKind::Less;
  Spec spec;
  spec.name = named_after(usual ? "merge_sort" : "merge_sort_" + short_name(less), key, value);
  spec.algorithm = Algorithm::MergeSort;
  spec.iterators = {pointer(key), pointer(value), pointer(key), pointer(value)};
  spec.operators = {std::move(less)};
  return spec;
}

Spec unique_by_key(Scalar key, Scalar value) {
  Spec spec;
  spec.name = named_after("unique_by_key", key, value);
  spec.algorithm = Algorithm::UniqueByKey;
  spec.iterators = {pointer(key), pointer(value), pointer(key), pointer(value), pointer(Scalar::I64)};
  spec.operators = {Operator::of(OperatorKind::EqualTo)};
  return spec;
}

}  // namespace detail

}  // namespace kiln::cccl
