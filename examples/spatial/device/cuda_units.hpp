#pragma once

#include <string>
#include <vector>

#include <kiln/cccl.hpp>
#include <kiln/unit.hpp>

/// What the variants on CUDA compile: units of kernels/, and three algorithms of CCCL's.
namespace spatial::cuda {

/// The unit that has the kernel of this name; null where none has.
const kiln::Unit* find_unit(const std::string& kernel);
/// All of them, without the algorithms.
std::vector<kiln::Unit> units();

/// Sums of numbers of 32 bits that stay at the largest one where they would pass it, so that no caller takes a sum that
/// wrapped around for a size. That is associative, as a scan wants it.
const kiln::cccl::Spec& saturating_scan();
/// Those of numbers of 32 bits that are not zero.
const kiln::cccl::Spec& selection();
/// By keys of 64 bits. The library has no sort of keys alone, so there are values beside them.
const kiln::cccl::Spec& sort();

}  // namespace spatial::cuda
