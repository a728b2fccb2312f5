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

/// What people call the operator of a reduction.
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

/// The C++ type of a scalar, and the header that declares it where one does.
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

/// A predicate that is an expression in x, as the library calls predicates. The line break ends a comment at its end.
std::string predicate_function(Scalar scalar, const std::string& expression) {
  const auto [type, header] = spelling(scalar);
  return std::string(header) + "extern \"C\" __device__ void kiln_select(void* argument, void* result) {\n  const " +
         type + " x = *static_cast<const " + type +
         "*>(argument);\n  *static_cast<bool*>(result) = static_cast<bool>(" + expression + "\n  );\n}\n";
}

std::vector<Spec> make_founding() {
  using Op = OperatorKind;
  // Radix sorts take longest by far. The first two have no headers in common, so that of two workers each makes a set
  // for all that follow; nor do neighbours after them, where they can help it.
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

const std::vector<Spec>& founding() {
  static const std::vector<Spec> specs = make_founding();
  return specs;
}

Result<Spec> named(std::string_view name) {
  std::string names;
  for (const Spec& spec : founding()) {
    if (spec.name == name) return spec;
    names += (names.empty() ? "" : ", ") + spec.name;
  }
  return failure(Code::InvalidArgument,
                 "there is no CCCL spec called '" + std::string(name.substr(0, kMostName)) + "'; there are " + names);
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
      // What is not selected is all rest.
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
  spec.iterators = {pointer(type), pointer(type), pointer(Scalar::I64)};
  spec.operators = {Operator::of(OperatorKind::Less)};
  spec.bound = which;
  return spec;
}

Spec radix_sort_pairs(Scalar key, Scalar value, Order order) {
  Spec spec;
  spec.name = named_after(order == Order::Ascending ? "radix_sort" : "radix_sort_descending", key, value);
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
