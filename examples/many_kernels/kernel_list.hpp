// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/kiln.hpp>

namespace semiring {

using kiln::Backend;

/// One kernel of the family: its name and the line that instantiates it from the preamble in
/// examples/many_kernels/kernels/.
struct Member {
  std::string name;
  std::string instance;
};

/// Returns all 31 kernels: gemm_S_T and argmax_S_T for the semirings max_plus, min_plus and max_times and the types
/// f32, f64, i32 and i64; backward_a_T and backward_b_T for f32 and f64; batched_S_f32 for each semiring.
const std::vector<Member>& members();

/// Returns the kernels that most users need: (max, +) forward, with the winners, backward to both factors, and batched.
const kiln::Requirements& typical(Backend backend);
/// Returns all 31 kernels.
const kiln::Requirements& everything(Backend backend);
/// Returns the names of the kernels in `typical`.
const std::vector<std::string>& typical_names();

/// Returns the unit that contains the kernel `name`, or null if there is none.
const kiln::Unit* find_unit(Backend backend, const std::string& name);

}  // namespace semiring
