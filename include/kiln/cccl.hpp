// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/export.hpp>
#include <kiln/kernel.hpp>
#include <kiln/requirements.hpp>
#include <kiln/result.hpp>
#include <kiln/session.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>
#include <kiln/wait.hpp>

/// NVIDIA's parallel algorithms (scan, sort, reduce, …) as units. NVIDIA's CCCL C library compiles and runs them; kiln
/// caches them like any other unit. See docs/reference/cccl.md.
namespace kiln::cccl {

/// The algorithms of the library.
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

/// The type of an element. The values are those of the library.
enum class Scalar : unsigned char { I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64, Storage, Bool, Bf16 };
/// The type of an element with its size and alignment.
struct Type {
  Scalar scalar = Scalar::I32;
  std::size_t size = 4;  ///< size of the scalar; for Storage, opaque bytes that the library only moves, any size
  std::size_t alignment = 4;

  [[nodiscard]] KILN_API static Type of(Scalar scalar);
  [[nodiscard]] static Type storage(std::size_t size, std::size_t alignment) {
    return {Scalar::Storage, size, alignment};
  }
};
bool operator==(const Type& a, const Type& b);
bool operator!=(const Type& a, const Type& b);

/// Returns the scalar that corresponds to a C++ type.
template <typename T>
constexpr Scalar scalar_of();

/// The operation on elements. The values are those of the library.
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
/// An operator: one of the library's, or a device function from source.
struct Operator {
  OperatorKind kind = OperatorKind::Plus;
  /// For Stateless and Stateful: the name of a function `extern "C" __device__ void name(void* argument…, void*
  /// result)`, and the C++ source that defines it. A stateful function takes its state before the arguments.
  std::string name;
  std::string source;
  std::size_t state_size = 0;
  std::size_t state_alignment = 1;
  /// If true, the operator is compiled once, for the lowest target of the spec (`Spec::for_targets`), and linked into
  /// each target. If false, it is compiled for each target.
  bool shared = false;

  [[nodiscard]] static Operator of(OperatorKind kind) { return Operator{kind, {}, {}, 0, 1, false}; }
  [[nodiscard]] static Operator from_source(std::string name, std::string source) {
    return Operator{OperatorKind::Stateless, std::move(name), std::move(source), 0, 1, false};
  }
};

/// The source or destination of elements: a pointer, or an iterator that two device functions define.
struct Iterator {
  Type value;
  bool custom = false;
  // For a custom iterator: its state, and functions as in Operator that advance it and read or write through it.
  std::size_t state_size = 8;
  std::size_t state_alignment = 8;
  Operator advance;
  Operator dereference;

  [[nodiscard]] static Iterator pointer(Type value) { return Iterator{value, false, 8, 8, {}, {}}; }
};

/// The kind of initial value: a host value, a value in device memory, or none.
enum class Init : unsigned char { Value, Future, None };
enum class SortOrder : unsigned char { Ascending, Descending };
enum class Determinism : unsigned char { NotGuaranteed, RunToRun, GpuToGpu };
enum class Bound : unsigned char { Lower, Upper };

/// One algorithm for certain types and operators. A spec and a target together determine the code.
struct KILN_API Spec {
  std::string name;  ///< display name; not part of any key
  Algorithm algorithm = Algorithm::Reduce;
  /// docs/reference/cccl.md defines the number and order for each algorithm.
  std::vector<Iterator> iterators;
  std::vector<Operator> operators;
  Type type;  ///< type of the accumulator (reduce, scan, segmented reduce) or of the levels (histogram)
  Init init = Init::Value;
  SortOrder order = SortOrder::Ascending;
  Determinism determinism = Determinism::RunToRun;
  Bound bound = Bound::Lower;
  bool inclusive = false;  ///< for scans
  // For histograms.
  int channels = 1;
  int active_channels = 1;
  int levels = 0;
  bool even = true;
  /// Compute capability that shared operators are compiled for (80 for sm_80); 0 means that of each target.
  int shared_capability = 0;

  /// Returns this spec for a list of targets. Shared operators are compiled for the lowest one.
  [[nodiscard]] Spec for_targets(const std::vector<Target>& targets) const;

  /// Returns the canonical form (docs/reference/cccl.md). It is equal for specs that compile alike, regardless of their
  /// names.
  std::string text() const;
  /// Parses the canonical form and looser hand-written forms. Code::InvalidArgument names the error and its position.
  static Result<Spec> parse(std::string_view text);
  /// Returns an error if the iterators and operators do not match the algorithm.
  Status validate() const;

  /// Returns the unit of kind "cccl" for this spec.
  [[nodiscard]] Unit unit() const;
  operator Unit() const { return unit(); }  // NOLINT(google-explicit-constructor): a spec is a unit where one is meant
};

/// Returns the 18 predefined specs, longest compile first, so that two cores finish early.
KILN_API const std::vector<Spec>& predefined_specs();
/// Returns a predefined spec by name, such as `radix_sort_u64_i32`. Code::InvalidArgument lists the names.
KILN_API Result<Spec> find_predefined(std::string_view name);

// The typed interface.
namespace detail {
struct CallableAccess;
KILN_API Spec scan(Scalar type, bool inclusive);
KILN_API Spec select(Scalar type, const std::string& predicate_source);
KILN_API Spec reduce(Scalar type, Operator op);
KILN_API Spec segmented_reduce(Scalar type, Operator op);
KILN_API Spec bound(Scalar type, Bound which);
KILN_API Spec radix_sort_pairs(Scalar key, Scalar value, SortOrder order);
KILN_API Spec merge_sort_pairs(Scalar key, Scalar value, Operator less);
KILN_API Spec unique_by_key(Scalar key, Scalar value);
}  // namespace detail

/// Prefix sums.
template <typename T>
[[nodiscard]] Spec exclusive_scan() {
  return detail::scan(scalar_of<T>(), false);
}
template <typename T>
[[nodiscard]] Spec inclusive_scan() {
  return detail::scan(scalar_of<T>(), true);
}
/// The elements that satisfy a predicate, in order. `predicate_source` is an expression in `x`, such as `x != 0`, or
/// the complete source of a function `extern "C" __device__ void kiln_select(void* x, void* result)`.
template <typename T>
[[nodiscard]] Spec select(const std::string& predicate_source) {
  return detail::select(scalar_of<T>(), predicate_source);
}
template <typename T>
[[nodiscard]] Spec reduce(OperatorKind op = OperatorKind::Plus) {
  return detail::reduce(scalar_of<T>(), Operator::of(op));
}
template <typename T>
[[nodiscard]] Spec segmented_reduce(OperatorKind op = OperatorKind::Plus) {
  return detail::segmented_reduce(scalar_of<T>(), Operator::of(op));
}
template <typename T>
[[nodiscard]] Spec lower_bound() {
  return detail::bound(scalar_of<T>(), Bound::Lower);
}
template <typename T>
[[nodiscard]] Spec upper_bound() {
  return detail::bound(scalar_of<T>(), Bound::Upper);
}
template <typename K, typename V>
[[nodiscard]] Spec radix_sort_pairs(SortOrder order = SortOrder::Ascending) {
  return detail::radix_sort_pairs(scalar_of<K>(), scalar_of<V>(), order);
}
template <typename K, typename V>
[[nodiscard]] Spec merge_sort_pairs(OperatorKind less = OperatorKind::Less) {
  return detail::merge_sort_pairs(scalar_of<K>(), scalar_of<V>(), Operator::of(less));
}
template <typename K, typename V>
[[nodiscard]] Spec unique_by_key() {
  return detail::unique_by_key(scalar_of<K>(), scalar_of<V>());
}

/// The arguments of one run of an algorithm. docs/reference/cccl.md lists which members each algorithm uses; it ignores
/// the others.
struct Call {
  /// The stream of the call; required. CUDA's default streams are accepted (`kiln/cuda.hpp`).
  std::optional<StreamRef> stream;
  /// Device pointers, or host pointers to the states of custom iterators, in the order of docs/reference/cccl.md.
  /// Reduce and scan take input, output; sorts take keys in, keys out, values in, values out.
  std::vector<const void*> iterators;
  std::uint64_t items = 0;
  std::uint64_t secondary_items = 0;  ///< number of segments, of values to search for, or of histogram rows
  const void* init = nullptr;         ///< initial value in host memory; a device pointer for Init::Future
  std::vector<void*> operator_state;  ///< states of the stateful operators, in order; host memory
  int begin_bit = 0;                  ///< for radix sort
  int end_bit = 0;                    ///< 0 means all bits of the key
  // For histograms: the lowest and highest level, in host memory and of the level's type, and the number of samples
  // from one row to the next.
  const void* lower_level = nullptr;
  const void* upper_level = nullptr;
  std::uint64_t row_stride = 0;
  /// The caller's temporary storage on the device, used instead of the callable's.
  void* temp_storage = nullptr;
  std::size_t temp_storage_bytes = 0;
};

/// A function of the caller that runs if the algorithm is not ready: the caller's own code or another library.
using FallbackFunction = std::function<Status(const Call&)>;

/// A loaded algorithm. Copies share it and its storage, so keep one instead of getting it again. No call synchronizes
/// or reads device memory on the host. Thread-safe.
class KILN_API Callable {
 public:
  /// Runs the algorithm on the stream. Temporary storage comes from the session's allocator, per callable and stream.
  /// The callable keeps it, grows it when a call needs more and never shrinks it. On a stream that captures a graph the
  /// storage must already be large enough (`reserve`); otherwise the call returns Code::Capturing. Storage that a graph
  /// has used stays allocated until the callable is destroyed.
  ///
  /// Storage of the legacy default stream belongs to the current context, and is freed only while that is current. A
  /// call on the per-thread default stream allocates its storage and frees it in stream order.
  Status operator()(const Call& call) const;
  /// Allocates temporary storage for calls like this one on its stream.
  Status reserve(const Call& call) const;
  /// Frees the storage of a stream. Call it before the stream is destroyed, if that is before the callable is
  /// destroyed. Returns Code::InvalidArgument if a graph was captured with the storage.
  Status release(StreamRef stream) const;
  /// Returns the size in bytes of the temporary storage that such a call needs.
  Result<std::size_t> temp_storage_bytes(const Call& call) const;
  /// Returns the symbols of its kernels.
  const std::vector<std::string>& kernels() const;
  /// Returns true if it was compiled for the device of the calling thread's current context.
  Result<bool> matches_current_device() const;

  struct State;

 private:
  friend struct detail::CallableAccess;
  explicit Callable(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// The time that `get` waits by default. A caller has another way to run an algorithm: its own code or a library.
inline constexpr std::chrono::seconds kCallableTimeout{5};

/// Returns the algorithm for the current device, without waiting if it is ready, otherwise after at most `wait`.
/// Errors: Code::TimedOut if it is still being compiled, which continues; or Code::Unavailable, which names what is
/// missing (no library, a library of an unknown release, no device) and the next step. The caller then runs its own
/// code, and the event `called_fallback` has the reason.
KILN_API Result<Callable> get(Session& session, const Spec& spec, Wait wait = kCallableTimeout,
                              Caller caller = Caller::here());

/// A callable for callers that do not wait. `run` uses the compiled algorithm if it is ready; otherwise it calls the
/// caller's fallback while the algorithm is compiled in the background. Each run emits `called_compiled`, or
/// `called_fallback` with the reason. Copies share the loaded algorithm. Not thread-safe.
class KILN_API NonBlockingCallable {
 public:
  NonBlockingCallable(Session& session, Spec spec, FallbackFunction fallback);
  Status run(const Call& call, Caller caller = Caller::here());
  /// Returns true if the last run used the compiled algorithm.
  bool used_compiled() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Compiles a spec for each target in parallel. The devices need not be present. Returns the results in the order of
/// the targets.
[[nodiscard]] KILN_API std::vector<Result<Artifact>> compile_for_targets(Session& session, const Spec& spec,
                                                                         const std::vector<Target>& targets,
                                                                         Wait wait = kForever,
                                                                         Caller caller = Caller::here());

/// The description of a CCCL artifact, read from its bytes without the library.
struct ArtifactInfo {
  std::string spec;                  ///< canonical text
  std::string release;               ///< cuda-cccl release whose library built it, such as "1.2.1"
  int capability = 0;                ///< compute capability: 90 for sm_90
  std::size_t policy_bytes = 0;      ///< size of the runtime policy, which is opaque
  std::vector<std::string> kernels;  ///< lowered names; `Artifact::entries` has them too
};
/// Returns the description. Errors: Code::InvalidArgument if the artifact is of another form, Code::Corrupt.
[[nodiscard]] KILN_API Result<ArtifactInfo> artifact_info(const Artifact& artifact);
/// Returns the serialized form of the library itself, without kiln's envelope. The library's deserialize functions and
/// the build results of cuda.compute read it without kiln. They do not detect corruption. Errors as in `artifact_info`.
[[nodiscard]] KILN_API Result<Bytes> library_bytes(const Artifact& artifact);
/// Returns the artifacts of one spec for several targets in the form that `cuda.compute.deserialize` reads. Returns
/// Code::Unsupported if cuda.compute does not have the algorithm or if kiln does not know the form of its release.
[[nodiscard]] KILN_API Result<Bytes> cuda_compute_bytes(const std::vector<Artifact>& artifacts);

inline bool operator==(const Type& a, const Type& b) {
  return a.scalar == b.scalar && a.size == b.size && a.alignment == b.alignment;
}
inline bool operator!=(const Type& a, const Type& b) { return !(a == b); }

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
