#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/export.hpp>
#include <kiln/needs.hpp>
#include <kiln/result.hpp>
#include <kiln/session.hpp>
#include <kiln/unit.hpp>

/// NVIDIA's algorithms (scan, sort, reduce, …) as units: compiled by NVIDIA's own CCCL C library, kept like any other
/// unit, and called through it. docs/cccl.md has the whole story.
namespace kiln::cccl {

/// The library's algorithms.
enum class Algorithm : unsigned char {
  Scan,
  Reduce,
  SegmentedReduce,
  ThreeWayPartition,
  BinarySearch,
  RadixSort,
  MergeSort,
  UniqueByKey,
  UnaryTransform,
  BinaryTransform,
  For,
  Histogram,
  SegmentedSort,
};
KILN_API const char* to_string(Algorithm algorithm);

/// What an element is. The numbers are the library's.
enum class Scalar : unsigned char { I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64, Storage, Bool, Bf16 };
struct Type {
  Scalar scalar = Scalar::I32;
  std::size_t size = 4;  ///< that of the scalar; for Storage, bytes that the library only moves, one's own
  std::size_t alignment = 4;

  KILN_API static Type of(Scalar scalar);
  static Type storage(std::size_t size, std::size_t alignment) { return {Scalar::Storage, size, alignment}; }
};
bool operator==(const Type& a, const Type& b);

/// The scalar of a C++ type.
template <typename T>
constexpr Scalar scalar_of();

/// What is done to elements. The numbers are the library's.
enum class OperatorKind : unsigned char {
  Stateless,
  Stateful,
  Plus,
  Minus,
  Multiplies,
  Divides,
  Modulus,
  EqualTo,
  NotEqualTo,
  Greater,
  Less,
  GreaterEqual,
  LessEqual,
  LogicalAnd,
  LogicalOr,
  LogicalNot,
  BitAnd,
  BitOr,
  BitXor,
  BitNot,
  Identity,
  Negate,
  Minimum,
  Maximum,
};
struct Operator {
  OperatorKind kind = OperatorKind::Plus;
  /// Stateless and Stateful: the name of a function `extern "C" __device__ void name(void* argument…, void* result)`,
  /// a stateful one with its state before the arguments, and the C++ source that defines it.
  std::string name;
  std::string source;
  std::size_t state_size = 0;
  std::size_t state_alignment = 1;
  /// Its code is compiled once, for the lowest of the targets that the spec is for (`Spec::for_targets`), and linked
  /// into each; else it is compiled for each.
  bool shared = false;

  static Operator of(OperatorKind kind) { return Operator{kind, {}, {}, 0, 1, false}; }
  static Operator from_source(std::string name, std::string source) {
    return Operator{OperatorKind::Stateless, std::move(name), std::move(source), 0, 1, false};
  }
};

/// Where elements come from or go: a pointer, or something that two device functions make an iterator of.
struct Iterator {
  Type value;
  bool custom = false;
  // Of a custom one: its state, and functions as in Operator that advance it and read (or write) through it.
  std::size_t state_size = 8;
  std::size_t state_alignment = 8;
  Operator advance;
  Operator dereference;

  static Iterator pointer(Type value) { return Iterator{value, false, 8, 8, {}, {}}; }
};

enum class Init : unsigned char { Value, Future, None };
enum class Order : unsigned char { Ascending, Descending };
enum class Determinism : unsigned char { NotGuaranteed, RunToRun, GpuToGpu };
enum class Bound : unsigned char { Lower, Upper };

/// One algorithm for certain types and operators: all that decides its code besides the target. A value.
struct KILN_API Spec {
  std::string name;  ///< what people call it; part of no key
  Algorithm algorithm = Algorithm::Reduce;
  /// As many, and in the order, as docs/cccl.md says for the algorithm.
  std::vector<Iterator> iterators;
  std::vector<Operator> operators;
  Type type;  ///< of what is accumulated (reduce, scan, segmented reduce); of levels (histogram)
  Init init = Init::Value;
  Order order = Order::Ascending;
  Determinism determinism = Determinism::RunToRun;
  Bound bound = Bound::Lower;
  bool inclusive = false;  ///< scan
  // Histogram.
  int channels = 1;
  int active_channels = 1;
  int levels = 0;
  bool even = true;
  /// For which capability operators that are shared are compiled (80 for sm_80); 0: each target's own.
  int shared_for = 0;

  /// This spec for a list of targets: what they share is built for the lowest.
  Spec for_targets(const std::vector<Target>& targets) const;

  /// The canonical form, docs/cccl-spec.md: equal for specs that compile alike, whatever their names.
  std::string text() const;
  /// Reads it, and looser forms that people write. Code::InvalidArgument says what is wrong and where.
  static Result<Spec> parse(std::string_view text);
  /// Whether it has the iterators and operators that its algorithm takes.
  Status check() const;

  /// The unit of kind "cccl" that it is.
  Unit unit() const;
  operator Unit() const { return unit(); }  // NOLINT(google-explicit-constructor): a spec is a unit where one is meant
};

/// The 18 founding specs (W1), in an order in which two cores finish early: the longest first.
KILN_API const std::vector<Spec>& founding();
/// One of them by its name, such as `radix_sort_u64_i32`; Code::InvalidArgument lists the names.
KILN_API Result<Spec> named(std::string_view name);

// The typed front.
namespace detail {
KILN_API Spec scan(Scalar type, bool inclusive);
KILN_API Spec select(Scalar type, const std::string& predicate_source);
KILN_API Spec reduce(Scalar type, Operator op);
KILN_API Spec segmented_reduce(Scalar type, Operator op);
KILN_API Spec bound(Scalar type, Bound which);
KILN_API Spec radix_sort_pairs(Scalar key, Scalar value, Order order);
KILN_API Spec merge_sort_pairs(Scalar key, Scalar value, Operator less);
KILN_API Spec unique_by_key(Scalar key, Scalar value);
}  // namespace detail

/// Sums.
template <typename T>
Spec exclusive_scan() {
  return detail::scan(scalar_of<T>(), false);
}
template <typename T>
Spec inclusive_scan() {
  return detail::scan(scalar_of<T>(), true);
}
/// The elements for which a predicate holds, in order. `predicate_source` is an expression in `x`, such as `x != 0`, or
/// the whole source of a function `extern "C" __device__ void kiln_select(void* x, void* result)`.
template <typename T>
Spec select(const std::string& predicate_source) {
  return detail::select(scalar_of<T>(), predicate_source);
}
template <typename T>
Spec reduce(OperatorKind op = OperatorKind::Plus) {
  return detail::reduce(scalar_of<T>(), Operator::of(op));
}
template <typename T>
Spec segmented_reduce(OperatorKind op = OperatorKind::Plus) {
  return detail::segmented_reduce(scalar_of<T>(), Operator::of(op));
}
template <typename T>
Spec lower_bound() {
  return detail::bound(scalar_of<T>(), Bound::Lower);
}
template <typename T>
Spec upper_bound() {
  return detail::bound(scalar_of<T>(), Bound::Upper);
}
template <typename K, typename V>
Spec radix_sort_pairs(Order order = Order::Ascending) {
  return detail::radix_sort_pairs(scalar_of<K>(), scalar_of<V>(), order);
}
template <typename K, typename V>
Spec merge_sort_pairs(OperatorKind less = OperatorKind::Less) {
  return detail::merge_sort_pairs(scalar_of<K>(), scalar_of<V>(), Operator::of(less));
}
template <typename K, typename V>
Spec unique_by_key() {
  return detail::unique_by_key(scalar_of<K>(), scalar_of<V>());
}

/// One run of an algorithm. What each algorithm takes is in docs/cccl.md; what it does not take is left as it is.
struct Call {
  void* stream = nullptr;  ///< CUstream; the caller's, and never the null stream
  /// Device pointers, or host pointers to the states of custom iterators, in the order of docs/cccl.md: reduce and
  /// scan take in, out; sorts keys in, keys out, values in, values out; …
  std::vector<const void*> iterators;
  std::uint64_t items = 0;
  std::uint64_t others = 0;           ///< segments; values to search for; histogram: rows
  const void* init = nullptr;         ///< host memory: the initial value; a device pointer for Init::Future
  std::vector<void*> operator_state;  ///< of stateful operators, in their order; host memory
  int first_bit = 0;                  ///< radix sort
  int last_bit = 0;                   ///< 0: all bits of the key
  // Histogram: lowest and highest level, host memory of the level's type; the samples from one row to the next.
  const void* lower_level = nullptr;
  const void* upper_level = nullptr;
  std::uint64_t row_stride = 0;
  /// The caller's own temporary storage on the device, instead of the callable's.
  void* temporary = nullptr;
  std::size_t temporary_bytes = 0;
};

/// What the caller does where the algorithm is not ready: his own code, or another library's.
using OneShot = std::function<Status(const Call&)>;

/// A compiled algorithm that is loaded: copies share it and its storage, so one is kept rather than asked for again.
/// Any thread. No call synchronises, uses the null stream, or reads device memory on the host.
class KILN_API Callable {
 public:
  /// Puts it on the stream. Temporary storage comes from the session's allocator, per callable and stream, and is kept:
  /// grown when a call needs more, never shrunk. On a stream that records a graph it must be there already: Code::
  /// Capturing where it is too small (`reserve` before), and what a graph has used stays until the callable ends.
  Status operator()(const Call& call) const;
  /// Sees to temporary storage for calls like this one on its stream.
  Status reserve(const Call& call) const;
  /// Gives back the storage that is kept for a stream: before the stream is destroyed, where that is before the
  /// callable ends. Code::InvalidArgument where a graph was recorded with it.
  Status release(void* stream) const;
  /// How much temporary storage such a call needs.
  Result<std::size_t> temp_bytes(const Call& call) const;
  /// Which kernels it has, by their symbols.
  const std::vector<std::string>& kernels() const;
  /// Whether it is for the device of the calling thread's current context.
  Result<bool> is_for_here() const;

  struct State;
  explicit Callable(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

/// The algorithm for the current device: at once where it is ready, else after at most `limit`. Code::TimedOut, or
/// Code::Unavailable with what is missing (no library, one of an unknown release, no device) and what to do.
KILN_API Result<Callable> get(Session& session, const Spec& spec, std::chrono::nanoseconds limit = kForever,
                              Caller caller = Caller::here());

/// An algorithm for those who do not wait: `run` uses the warm callable where it is ready and takes the one-shot road
/// where it is not, while it is compiled in the background. An event says for each run which it was, and why. Copies
/// share what became ready; one thread at a time.
class KILN_API Patient {
 public:
  Patient(Session& session, Spec spec, OneShot one_shot);
  Status run(const Call& call, Caller caller = Caller::here());
  /// Whether the last run was warm.
  bool was_warm() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Builds a spec for each of the targets, none of which needs to be here (A2), in parallel; in the order of the
/// targets.
KILN_API std::vector<Result<Artifact>> build(Session& session, const Spec& spec, const std::vector<Target>& targets,
                                             std::chrono::nanoseconds limit = kForever);

inline bool operator==(const Type& a, const Type& b) {
  return a.scalar == b.scalar && a.size == b.size && a.alignment == b.alignment;
}

template <>
constexpr Scalar scalar_of<std::int8_t>() {
  return Scalar::I8;
}
template <>
constexpr Scalar scalar_of<std::int16_t>() {
  return Scalar::I16;
}
template <>
constexpr Scalar scalar_of<std::int32_t>() {
  return Scalar::I32;
}
template <>
constexpr Scalar scalar_of<std::int64_t>() {
  return Scalar::I64;
}
template <>
constexpr Scalar scalar_of<std::uint8_t>() {
  return Scalar::U8;
}
template <>
constexpr Scalar scalar_of<std::uint16_t>() {
  return Scalar::U16;
}
template <>
constexpr Scalar scalar_of<std::uint32_t>() {
  return Scalar::U32;
}
template <>
constexpr Scalar scalar_of<std::uint64_t>() {
  return Scalar::U64;
}
template <>
constexpr Scalar scalar_of<float>() {
  return Scalar::F32;
}
template <>
constexpr Scalar scalar_of<double>() {
  return Scalar::F64;
}
template <>
constexpr Scalar scalar_of<bool>() {
  return Scalar::Bool;
}

}  // namespace kiln::cccl
