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

/// Returns all kernels: gemm_S_T and argmax_S_T for the semirings plus_times, max_plus, min_plus, max_times, min_times
/// and max_min and the types f32 and f64; backward_a_P_f32 and backward_b_P_f32 for the products plus and times;
/// batched_S_f32 for the first three semirings.
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
