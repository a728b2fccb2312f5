// SPDX-License-Identifier: Apache-2.0
// Calls of compiled algorithms. The library's functions take the build result by value, so that each size is listed
// here.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backends/cccl/cccl_arguments.hpp"
#include "backends/cccl/cccl_library.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

using cccl::Algorithm;
using cccl::Init;
using cccl_abi::AnyBuild;
using cccl_abi::BuildOf;
using cccl_abi::Iterator;
using cccl_abi::Op;
using cccl_abi::Outcome;
using cccl_abi::Value;

// Returns the index of the spec's iterator for each iterator of a call, in the call's order: docs/reference/cccl.md.
std::vector<std::size_t> places_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::For: return {0};
    case Algorithm::Scan:
    case Algorithm::Reduce:
    case Algorithm::UnaryTransform:
    case Algorithm::Histogram: return {0, 1};
    case Algorithm::BinarySearch:
    case Algorithm::BinaryTransform: return {0, 1, 2};
    case Algorithm::SegmentedReduce: return {0, 1, 2, 3};
    case Algorithm::ThreeWayPartition:
    case Algorithm::UniqueByKey: return {0, 1, 2, 3, 4};
    // Sorts are called with keys in, keys out, values in, values out, regardless of the order in their specs.
    case Algorithm::RadixSort: return {0, 0, 1, 1};
    case Algorithm::MergeSort: return {0, 2, 1, 3};
    case Algorithm::SegmentedSort: return {0, 0, 1, 1, 2, 3};
  }
  return {};
}

bool takes_init(const cccl::Spec& spec) {
  return spec.algorithm == Algorithm::SegmentedReduce ||
         ((spec.algorithm == Algorithm::Reduce || spec.algorithm == Algorithm::Scan) && spec.init != Init::None);
}

// A call in the library's types. The spec and the call must outlive it. Not thread-safe.
class Arguments {
 public:
  // `asks` means that only the size of the storage is queried, without access to the caller's data.
  Arguments(const cccl::Spec& spec, const cccl::Call& call, bool asks)
      : spec_(spec), call_(call), asks_(asks), described_(spec, kSource), places_(places_of(spec.algorithm)) {}

  Status check() const;
  Iterator it(std::size_t place);
  Op op(std::size_t index) const;
  Op no_op() const { return described_.no_op(); }
  Value init() { return value(call_.init); }
  Value value(const void* state);
  // Returns an initial value that is on the device.
  Iterator future();
  // A size query needs no stream.
  void* stream() const { return call_.stream ? call_.stream->native() : nullptr; }

 private:
  static inline const std::vector<std::string> kSource;

  const cccl::Spec& spec_;
  const cccl::Call& call_;
  const bool asks_;
  CcclArguments described_;
  const std::vector<std::size_t> places_;
};

Error wrong(const cccl::Spec& spec, const std::string& what) {
  return make_error(Code::InvalidArgument,
                    std::string(to_string(spec.algorithm)) + ": " + what + " (docs/reference/cccl.md)");
}

Status Arguments::check() const {
  if (spec_.algorithm == Algorithm::Reduce) {
    // The library would treat the device address of the value as a host address.
    const bool atomic = spec_.determinism == cccl::Determinism::NotGuaranteed;
    if (spec_.init == Init::Future)
      return make_error(Code::Unsupported, "reduce supports only an initial value on the host");
    if (spec_.init == Init::None && atomic) {
      return make_error(Code::Unsupported, "reduce needs an initial value if its determinism is not guaranteed");
    }
  }
  if (asks_) return {};
  if (call_.iterators.size() != places_.size()) {
    return wrong(spec_, "a call takes " + std::to_string(places_.size()) + " iterators, not " +
                            std::to_string(call_.iterators.size()));
  }
  for (std::size_t i = 0; i < places_.size() && call_.items > 0; ++i) {
    // The library treats values at a null address as an algorithm without values and returns wrong results without an
    // error.
    if (call_.iterators[i] == nullptr) return wrong(spec_, "iterator " + std::to_string(i) + " is null");
  }
  if (takes_init(spec_) && call_.init == nullptr) return wrong(spec_, "it needs an initial value, but `init` is null");
  if (spec_.algorithm == Algorithm::Histogram && (call_.lower_level == nullptr || call_.upper_level == nullptr)) {
    return wrong(spec_, "it needs a lower and an upper level");
  }
  const auto stateful = std::count_if(spec_.operators.begin(), spec_.operators.end(), [](const cccl::Operator& one) {
    return one.kind == cccl::OperatorKind::Stateful;
  });
  if (call_.operator_state.size() < static_cast<std::size_t>(stateful)) {
    return wrong(spec_,
                 std::to_string(stateful) + " of its operators have a state, but `operator_state` has fewer elements");
  }
  return {};
}

Iterator Arguments::it(std::size_t place) {
  Iterator iterator = described_.iterator(places_[place]);
  // A pointer is its own state; other iterators have the state that the caller gives. A size query can have neither
  // yet.
  const bool given = place < call_.iterators.size() && call_.iterators[place] != nullptr;
  if (given) iterator.state = const_cast<void*>(call_.iterators[place]);
  return iterator;
}

Op Arguments::op(std::size_t index) const {
  Op op = described_.op(index);
  if (spec_.operators[index].kind != cccl::OperatorKind::Stateful) return op;
  const auto before =
      std::count_if(spec_.operators.begin(), spec_.operators.begin() + static_cast<std::ptrdiff_t>(index),
                    [](const cccl::Operator& one) { return one.kind == cccl::OperatorKind::Stateful; });
  const auto place = static_cast<std::size_t>(before);
  if (place < call_.operator_state.size() && call_.operator_state[place] != nullptr) {
    op.state = call_.operator_state[place];
  }
  return op;
}

Value Arguments::value(const void* state) {
  Value value = described_.zero();
  if (state != nullptr) value.state = const_cast<void*>(state);
  return value;
}

Iterator Arguments::future() {
  Iterator iterator;
  iterator.size = sizeof(void*);
  iterator.alignment = alignof(void*);
  iterator.kind = cccl_abi::kPointer;
  iterator.value = type_info(spec_.type);
  iterator.state = const_cast<void*>(call_.init != nullptr ? call_.init : described_.zero().state);
  return iterator;
}

template <std::size_t Size, class... Types>
Outcome run_by(void* function, const AnyBuild& build, Types... arguments) {
  static_assert(Size <= sizeof(AnyBuild) && Size % 8 == 0);
  BuildOf<Size> by_value;
  std::memcpy(by_value.bytes, build.bytes, Size);
  return reinterpret_cast<Outcome (*)(BuildOf<Size>, Types...)>(function)(by_value, arguments...);
}

// Returns the library's function name for a spec.
std::string function_of(const cccl::Spec& spec) {
  std::string name = "cccl_device_";
  switch (spec.algorithm) {
    case Algorithm::Scan:
      name += spec.inclusive ? "inclusive_scan" : "exclusive_scan";
      return name + (spec.init == Init::Future ? "_future_value" : spec.init == Init::None ? "_no_init" : "");
    case Algorithm::Reduce:
      return name + (spec.determinism == cccl::Determinism::NotGuaranteed ? "reduce_nondeterministic"
                                                                          : to_string(spec.algorithm));
    case Algorithm::Histogram: return name + (spec.even ? "histogram_even" : "histogram_range");
    default: return name + to_string(spec.algorithm);
  }
}

struct Storage {
  void* memory;
  std::size_t* bytes;
};

Outcome run_scan(void* f, const AnyBuild& build, const cccl::Spec& spec, const cccl::Call& call, Arguments& a,
                 const Storage& s) {
  constexpr std::size_t kSize = 184;
  switch (spec.init) {
    case Init::Value:
      return run_by<kSize>(f, build, s.memory, s.bytes, a.it(0), a.it(1), call.items, a.op(0), a.init(), a.stream());
    case Init::Future:
      return run_by<kSize>(f, build, s.memory, s.bytes, a.it(0), a.it(1), call.items, a.op(0), a.future(), a.stream());
    case Init::None:
      return run_by<kSize>(f, build, s.memory, s.bytes, a.it(0), a.it(1), call.items, a.op(0), a.stream());
  }
  return -1;
}

Outcome run_radix_sort(void* f, const AnyBuild& build, const cccl::Spec& spec, const cccl::Call& call, Arguments& a,
                       const Storage& s) {
  // More bits need more storage, so that the query always uses all bits: its result is enough for any number of them.
  const int all = static_cast<int>(spec.iterators[0].value.size) * 8;
  const bool asks = s.memory == nullptr;
  const int first = asks ? 0 : call.begin_bit;
  const int last = asks || call.end_bit == 0 ? all : call.end_bit;
  int selector = 0;
  return run_by<288>(f, build, s.memory, s.bytes, a.it(0), a.it(1), a.it(2), a.it(3), a.no_op(), call.items, first,
                     last, false, &selector, a.stream());
}

Outcome run_histogram(void* f, const AnyBuild& build, const cccl::Spec& spec, const cccl::Call& call, Arguments& a,
                      const Storage& s) {
  std::int32_t levels = spec.levels;
  const Value level_count{type_info(cccl::Type::of(cccl::Scalar::I32)), &levels};
  const std::uint64_t row = call.items * static_cast<std::uint64_t>(spec.channels);
  const std::uint64_t stride = call.row_stride != 0 ? call.row_stride : row;
  return run_by<168>(f, build, s.memory, s.bytes, a.it(0), a.it(1), level_count, a.value(call.lower_level),
                     a.value(call.upper_level), static_cast<std::int64_t>(call.items),
                     static_cast<std::int64_t>(call.secondary_items), static_cast<std::int64_t>(stride), a.stream());
}

// Each line is the parameter list of the library function after the build result, and the size of the build result.
Outcome run_any(void* f, const AnyBuild& b, const cccl::Spec& spec, const cccl::Call& call, Arguments& a,
                const Storage& s) {
  const std::uint64_t n = call.items;
  const auto items = static_cast<std::int64_t>(call.items);
  const auto others = static_cast<std::int64_t>(call.secondary_items);
  void* const stream = a.stream();
  int selector = 0;
  switch (spec.algorithm) {
    case Algorithm::Scan: return run_scan(f, b, spec, call, a, s);
    case Algorithm::Reduce: return run_by<120>(f, b, s.memory, s.bytes, a.it(0), a.it(1), n, a.op(0), a.init(), stream);
    case Algorithm::SegmentedReduce:
      return run_by<80>(f, b, s.memory, s.bytes, a.it(0), a.it(1), call.secondary_items, a.it(2), a.it(3), a.op(0),
                        a.init(), std::size_t{0}, stream);
    case Algorithm::ThreeWayPartition:
      return run_by<88>(f, b, s.memory, s.bytes, a.it(0), a.it(1), a.it(2), a.it(3), a.it(4), a.op(0), a.op(1), items,
                        stream);
    case Algorithm::BinarySearch:
      return run_by<104>(f, b, a.it(0), n, a.it(1), call.secondary_items, a.it(2), a.op(0), stream);
    case Algorithm::RadixSort: return run_radix_sort(f, b, spec, call, a, s);
    case Algorithm::MergeSort:
      return run_by<152>(f, b, s.memory, s.bytes, a.it(0), a.it(2), a.it(1), a.it(3), n, a.op(0), stream);
    case Algorithm::UniqueByKey:
      return run_by<104>(f, b, s.memory, s.bytes, a.it(0), a.it(1), a.it(2), a.it(3), a.it(4), a.op(0), n, stream);
    case Algorithm::UnaryTransform: return run_by<88>(f, b, a.it(0), a.it(1), n, a.op(0), stream);
    case Algorithm::BinaryTransform: return run_by<88>(f, b, a.it(0), a.it(1), a.it(2), n, a.op(0), stream);
    case Algorithm::For: return run_by<56>(f, b, a.it(0), n, a.op(0), stream);
    case Algorithm::Histogram: return run_histogram(f, b, spec, call, a, s);
    case Algorithm::SegmentedSort:
      return run_by<400>(f, b, s.memory, s.bytes, a.it(0), a.it(1), a.it(2), a.it(3), items, others, a.it(4), a.it(5),
                         false, &selector, stream);
  }
  return -1;
}

Status verified(const cccl::Spec& spec, Outcome outcome) {
  const std::string what =
      std::string("the CCCL library failed to run ") + to_string(spec.algorithm) + " (error " + std::to_string(outcome);
  switch (outcome) {
    case 0: return {};
    case 3:    // not initialized
    case 100:  // no device
    case 101: return make_error(Code::Unavailable, what + "): there is no device");
    case 209: return make_error(Code::LoadRejected, what + "): its code is for another capability");
    default: return make_error(Code::Internal, what + ")");
  }
}

}  // namespace

bool takes_temporary(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::BinarySearch:
    case Algorithm::UnaryTransform:
    case Algorithm::BinaryTransform:
    case Algorithm::For: return false;
    default: return true;
  }
}

Status CcclBuild::run(const cccl::Spec& spec, const cccl::Call& call, void* storage, std::size_t& bytes) const {
  if (spec.algorithm != algorithm_) return make_error(Code::Internal, "the spec is of another algorithm");
  const bool asks = storage == nullptr && takes_temporary(algorithm_);
  Arguments arguments(spec, call, asks);
  if (Status good = arguments.check(); !good) return good;
  const std::string name = function_of(spec);
  void* const function = library_->library_.find(name.c_str());
  if (function == nullptr) {
    return make_error(Code::Unsupported, "cuda-cccl " + library_->version() + " has no function " + name);
  }
  return verified(spec, run_any(function, *build_, spec, call, arguments, {storage, &bytes}));
}

}  // namespace kiln
