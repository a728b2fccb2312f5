#pragma once

#include <kiln/runtime.hpp>

namespace kiln::test {

/// An operation that a device is worth: the sum of a series for each row, by one thread of the processor or by an
/// OpenCL kernel. PoCL is the same processor with all of its cores and vectors, so that it wins for many rows.
runtime::Trial series_trial();

}  // namespace kiln::test
