// SPDX-License-Identifier: Apache-2.0
// An operation without a variant, which must not compile. With KILN_WITH_A_VARIANT it has one and must compile.
#include <kiln/runtime.hpp>

namespace {

using Within = kiln::Result<bool>(kiln::runtime::Dispatch&, double);

#ifdef KILN_WITH_A_VARIANT
kiln::Result<bool> within(kiln::runtime::Dispatch&, double x) { return x > 0; }

constexpr kiln::runtime::Variant kOnCpu{kiln::runtime::Backend::Cpu, kiln::runtime::Robustness::Exact,
                                        kiln::runtime::Precision::Fp64, kiln::runtime::Determinism::Deterministic};
constexpr auto kWithin = kiln::runtime::operation<Within>("within", kiln::runtime::PrecisionClass::Predicate,
                                                          kiln::runtime::Implementation<Within>{kOnCpu, &within});
#else
constexpr auto kWithin = kiln::runtime::operation<Within>("within", kiln::runtime::PrecisionClass::Predicate);
#endif

}  // namespace

kiln::Result<bool> run_within(kiln::runtime::Runtime& runtime) { return kiln::runtime::run(runtime, kWithin, {}, 1.0); }
