#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <kiln/export.hpp>
#include <kiln/needs.hpp>
#include <kiln/runtime/mode.hpp>

namespace kiln::runtime {

/// How far a result may be from the exact one.
enum class Robustness : unsigned char {
  Exact,    ///< the answer for the coordinates as they are, always
  Bounded,  ///< may differ from it where the operation's documentation says so, and a test pins that
};
/// What is computed in. Storage is always fp64.
enum class Precision : unsigned char { Fp64, Fp32, Mixed /**< fp32, and fp64 where that does not decide */ };
enum class Determinism : unsigned char {
  Deterministic,  ///< equal inputs, equal bytes
  Unordered,      ///< the same rows, in an order that may differ from run to run
};
KILN_API const char* to_string(Robustness robustness);
KILN_API const char* to_string(Precision precision);
KILN_API const char* to_string(Determinism determinism);

/// What an operation asks of numbers; with the device's fp64 ratio it decides the precision that is computed in.
enum class PrecisionClass : unsigned char {
  Predicate,  ///< a wrong sign is a wrong answer
  Metric,     ///< a length, an area: a relative error is one
  Coarse,     ///< a filter that may let too much pass, never too little
};
KILN_API const char* to_string(PrecisionClass precision);
/// fp64 where the device is good at it (a ratio of at most 4) or the class needs it; else Mixed for predicates, Fp32
/// for filters. A ratio of zero, unknown, is fp64.
KILN_API Precision planned_precision(PrecisionClass wanted, unsigned fp64_ratio);

/// As many rows as there never are.
inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

/// One way to carry an operation out, as far as choosing is concerned.
struct Variant {
  Backend backend = Backend::Cpu;
  Robustness robustness = Robustness::Exact;
  Precision precision = Precision::Fp64;
  Determinism determinism = Determinism::Deterministic;
  /// From how many rows on auto takes it, while the rows are on the host and nothing was measured on this machine.
  std::uint64_t crossover = 0;
  /// What it compiles; null for one that compiles nothing.
  const Needs* needs = nullptr;
};

/// Something that a program can do in several ways. Made by `operation` below, once, at namespace scope; making it does
/// nothing. Variants stand in the order in which their author prefers them.
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

/// A variant and the function that is it.
template <class Function>
struct Implementation {
  Variant variant;
  Function* run;
};

/// An operation whose variants are functions of one type; their first parameter is a `Dispatch&`.
template <class Function, std::size_t Count>
class OperationOf final : public Operation {
  static_assert(Count > 0, "an operation needs a variant that carries it out");

 public:
  template <class... Implementations>
  constexpr OperationOf(const char* name, PrecisionClass precision, const Implementations&... implementations)
      : Operation(name, precision, variants_, Count), variants_{implementations.variant...},
        functions_{implementations.run...} {
    static_assert(sizeof...(Implementations) == Count);
  }

  /// The function of one of its own variants.
  constexpr Function* function(const Variant& variant) const { return functions_[&variant - variants_]; }

 private:
  Variant variants_[Count];
  Function* functions_[Count];
};

/// `inline constexpr auto kWithin = operation<Result<Mask>(Dispatch&, const Points&)>("spatial.within", …, {{…}, f})`:
/// without an implementation it does not compile.
template <class Function, class... Implementations>
constexpr OperationOf<Function, sizeof...(Implementations)> operation(const char* name, PrecisionClass precision,
                                                                      const Implementations&... implementations) {
  return OperationOf<Function, sizeof...(Implementations)>(name, precision, implementations...);
}

}  // namespace kiln::runtime
