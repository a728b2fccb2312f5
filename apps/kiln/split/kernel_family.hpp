// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

/// The kernels that a source file instantiates from macros and templates, and the text that they have in common.
struct KernelFamily {
  struct Instance {
    std::string entry;   ///< name of the kernel, or a name expression such as `scale<float, 4>`
    std::string source;  ///< the text after the preamble; empty if the entry instantiates a template
    std::string origin;  ///< name of the macro or template
    std::size_t line = 0;
  };
  /// Code that the family does not contain, and why.
  struct Omission {
    std::size_t line = 0;
    std::string reason;
  };

  std::vector<Instance> instances;  ///< in file order
  std::vector<Omission> omissions;  ///< in file order
  std::string preamble;             ///< the file without its instances
  bool is_preamble_changed = false;
  /// Name of a header that is the preamble: all that the preamble contains is one quoted include of it. Or empty.
  std::string included_preamble;
};

/// Returns the names of the quoted includes of a source.
std::vector<std::string> quoted_includes(std::string_view text);

/// Finds the kernels that macros and explicit template instantiations of a source define, without running a compiler:
/// - a call of a macro whose body has one kernel,
/// - each such call in a macro that consists of such calls,
/// - `template __global__ void scale<float>(float*);`
/// `headers` are the texts of the headers that the source includes, for their macros. `entries` are further instances
/// of templates, as name expressions.
KernelFamily find_kernel_family(std::string_view text, bool opencl, const std::vector<std::string>& headers,
                                const std::vector<std::string>& entries);

}  // namespace kiln::cli
