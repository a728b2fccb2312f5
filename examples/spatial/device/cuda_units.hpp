// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/cccl.hpp>
#include <kiln/unit.hpp>

#include "spatial/device/primitives.hpp"

/// The units that the CUDA variants compile: units of spatial/kernels/ and CCCL algorithms.
namespace spatial::cuda {

/// Returns the unit that contains the kernel, or null if there is none.
const kiln::Unit* find_unit(const std::string& kernel);
/// Returns all units, without the CCCL algorithms.
std::vector<kiln::Unit> units();

/// A scan of 32-bit sums that saturate at the maximum, so that no caller mistakes a wrapped sum for a size. Saturating
/// addition is associative, as a scan requires.
const kiln::cccl::Spec& saturating_scan();
/// A selection of the 32-bit numbers that are not zero.
const kiln::cccl::Spec& selection();
/// A sort by 64-bit keys. The library has no sort of keys alone, so this one also sorts values.
const kiln::cccl::Spec& sort();
/// The first of equal adjacent 32-bit keys, with their values.
const kiln::cccl::Spec& unique();
/// A reduction of segments of doubles that 32-bit offsets delimit.
const kiln::cccl::Spec& segmented_reduction(Reduction reduction);

}  // namespace spatial::cuda
