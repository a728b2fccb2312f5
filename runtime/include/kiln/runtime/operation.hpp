// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include <kiln/export.hpp>
#include <kiln/requirements.hpp>
#include <kiln/runtime/mode.hpp>

namespace kiln::runtime {

/// How exact a result is.
enum class Robustness : unsigned char {
  Exact,    ///< always the exact result for the given coordinates
  Bounded,  ///< may deviate as documented for the operation and fixed by a test
};
/// The precision of the computation. Storage is always fp64.
enum class Precision : unsigned char { Fp64, Fp32, Mixed /**< fp32, and fp64 where that does not decide */ };
enum class Determinism : unsigned char {
  Deterministic,  ///< equal inputs give equal bytes
  Unordered,      ///< the same rows, in an order that can differ between runs
};
KILN_API const char* to_string(Robustness robustness);
KILN_API const char* to_string(Precision precision);
KILN_API const char* to_string(Determinism determinism);

/// The precision requirement of an operation. Together with the device's fp64 ratio it determines the precision of the
/// computation.
enum class PrecisionClass : unsigned char {
  Predicate,     ///< a wrong sign is a wrong result
  Metric,        ///< a length or an area; the fp32 variant documents its error bound
  Coarse,        ///< a filter that can pass too much, but never too little
  Constructive,  ///< new coordinates, which later operations use as input; only variants in fp64 are used
};
KILN_API const char* to_string(PrecisionClass precision);

/// Whether the plan may use less than fp64.
enum class PrecisionPolicy : unsigned char {
  Auto,  ///< by the class of the operation and the device
  Fp64,  ///< always fp64; variants that compute in less are not used
};
KILN_API const char* to_string(PrecisionPolicy policy);
/// Returns the policy, or no value if the text is not `auto` or `fp64`.
KILN_API std::optional<PrecisionPolicy> parse_precision_policy(std::string_view text);

/// Returns Fp64 if the policy or the class requires it, if the device computes it efficiently (a ratio of at most 4) or
/// if the ratio is unknown (0). Otherwise returns Mixed for predicates and Fp32 for metrics and filters.
KILN_API Precision planned_precision(PrecisionClass wanted, unsigned fp64_ratio,
                                     PrecisionPolicy policy = PrecisionPolicy::Auto);

/// A row count that means that a variant is never selected by size.
inline constexpr std::uint64_t kNoCrossover = std::numeric_limits<std::uint64_t>::max();

/// One implementation of an operation, as described for selection. The author states its backend, robustness, precision
/// and determinism; they have no defaults, and a variant that does not state them does not compile.
struct Variant {
  constexpr Variant(Backend its_backend, Robustness its_robustness, Precision its_precision,
                    Determinism its_determinism, std::uint64_t its_crossover = 0,
                    const Requirements* its_requirements = nullptr)
      : backend(its_backend), robustness(its_robustness), precision(its_precision), determinism(its_determinism),
        crossover(its_crossover), requirements(its_requirements) {}

  Backend backend;
  Robustness robustness;
  Precision precision;
  Determinism determinism;
  /// Number of rows at or above which auto mode selects the variant, if the rows are on the host and this machine is
  /// not calibrated.
  std::uint64_t crossover;
  /// The units that it compiles; null if it compiles nothing.
  const Requirements* requirements;
};

/// An operation with several implementations. Create it once at namespace scope with `operation` below; the constructor
/// does no work. It, its variants and their requirements must outlive every runtime that decided about it, because a
/// runtime identifies them by their addresses. Variants are listed in the author's order of preference. Immutable.
class Operation {
 public:
  constexpr const char* name() const { return name_; }
  constexpr PrecisionClass precision() const { return precision_; }
  constexpr const Variant* begin() const { return variants_; }
  constexpr const Variant* end() const { return variants_ + count_; }

  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

 protected:
  constexpr Operation(const char* name, PrecisionClass precision, const Variant* variants, std::size_t count)
      : name_(name), precision_(precision), variants_(variants), count_(count) {}
  ~Operation() = default;

 private:
  const char* name_;
  PrecisionClass precision_;
  const Variant* variants_;
  std::size_t count_;
};

/// A variant and its function.
template <class Function>
struct Implementation {
  Variant variant;
  Function* run;
};

/// An operation with variants that are functions of one type. The first parameter of the functions is a `Dispatch&`.
template <class Function, std::size_t Count>
class OperationOf final : public Operation {
  static_assert(Count > 0, "an operation needs at least one implementation");

 public:
  template <class... Implementations>
  constexpr OperationOf(const char* name, PrecisionClass precision, const Implementations&... implementations)
      : Operation(name, precision, variants_, Count), variants_{implementations.variant...},
        functions_{implementations.run...} {
    static_assert(sizeof...(Implementations) == Count);
  }

  /// Returns the function of a variant, which must belong to this operation.
  constexpr Function* function(const Variant& variant) const { return functions_[&variant - variants_]; }

 private:
  Variant variants_[Count];
  Function* functions_[Count];
};

/// Creates an operation. Without an implementation it does not compile.
///
///     using Within = Result<Mask>(Dispatch&, const Points&);
///     inline constexpr auto kWithin = operation<Within>("spatial.within", PrecisionClass::Predicate,
///         Implementation<Within>{{Backend::Cpu, Robustness::Exact, Precision::Fp64, Determinism::Deterministic},
///                                &within_on_cpu});
template <class Function, class... Implementations>
constexpr OperationOf<Function, sizeof...(Implementations)> operation(const char* name, PrecisionClass precision,
                                                                      const Implementations&... implementations) {
  return OperationOf<Function, sizeof...(Implementations)>(name, precision, implementations...);
}

}  // namespace kiln::runtime
