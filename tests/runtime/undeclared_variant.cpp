// SPDX-License-Identifier: Apache-2.0
// Variants that leave out a claim, which must not compile. With KILN_DECLARED the variant states all and must compile.
#include <kiln/runtime.hpp>

using kiln::runtime::Backend;
using kiln::runtime::Determinism;
using kiln::runtime::Precision;
using kiln::runtime::Robustness;
using kiln::runtime::Variant;

#if defined(KILN_DECLARED)
constexpr Variant kVariant{Backend::Cpu, Robustness::Exact, Precision::Fp64, Determinism::Deterministic};
#elif defined(KILN_NOTHING)
constexpr Variant kVariant{};
#elif defined(KILN_BACKEND_ALONE)
constexpr Variant kVariant{Backend::Cpu};
#elif defined(KILN_NO_PRECISION)
constexpr Variant kVariant{Backend::Cpu, Robustness::Exact};
#elif defined(KILN_NO_DETERMINISM)
constexpr Variant kVariant{Backend::Cpu, Robustness::Exact, Precision::Fp64};
#endif

const Variant& variant() { return kVariant; }
