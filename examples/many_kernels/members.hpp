#pragma once

#include <string>
#include <vector>

#include <kiln/kiln.hpp>

namespace semiring {

enum class Backend { OpenCl, Cuda };

/// One kernel of the family: its name, and the line that makes it of the preamble in kernels/semiring/.
struct Member {
  std::string name;
  std::string instance;
};

/// All of them: gemm_S_T and argmax_S_T for the semirings plus_times, max_plus, min_plus, max_times, min_times and
/// max_min and the types f32 and f64; backward_a_P_f32 and backward_b_P_f32 for the products plus and times;
/// batched_S_f32 for the first three semirings.
const std::vector<Member>& members();

/// What most users need: (max, +) forward, with the winners, backward to both factors, and batched.
const kiln::Needs& typical(Backend backend);
/// All 31.
const kiln::Needs& everything(Backend backend);
/// The names of the kernels in `typical`.
const std::vector<std::string>& typical_names();

/// The unit of the kernel of this name; null where there is none.
const kiln::Unit* find_unit(Backend backend, const std::string& name);

}  // namespace semiring
