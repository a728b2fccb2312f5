// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/operation.hpp>

namespace kiln::runtime {
namespace {

// Above this fp64 ratio, double precision costs more than error control in single precision.
constexpr unsigned kGoodRatio = 4;

}  // namespace

Precision planned_precision(PrecisionClass wanted, unsigned fp64_ratio, PrecisionPolicy policy) {
  if (policy == PrecisionPolicy::Fp64 || fp64_ratio <= kGoodRatio) return Precision::Fp64;
  switch (wanted) {
    case PrecisionClass::Predicate: return Precision::Mixed;
    case PrecisionClass::Metric:
    case PrecisionClass::Coarse: return Precision::Fp32;
    case PrecisionClass::Constructive: break;
  }
  return Precision::Fp64;
}

}  // namespace kiln::runtime
