// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/source/source_tokens.hpp"
#include "apps/kiln/split/kernel_family.hpp"
#include "apps/kiln/split/macros.hpp"

namespace kiln::cli {

/// A search for the kernels that macro calls define. The size of the texts that it makes is limited, for each call and
/// for all of them. Not thread-safe.
class MacroKernels {
 public:
  /// The kernels of a macro call, or the reason why they cannot be instances. Neither if the macro has no kernel.
  struct Found {
    std::vector<KernelFamily::Instance> instances;
    std::string problem;
  };

  /// The table must outlive the search.
  explicit MacroKernels(const MacroTable& macros) : macros_(macros) {}

  Found find(const MacroCall& call);
  /// Returns the name in the declarator after the kernel word at index `at`, with template arguments if it has any;
  /// empty if it is not found.
  std::string kernel_name(std::string_view text, const TokenList& tokens, std::size_t at);

 private:
  std::string expanded_word(const MacroCall& call);
  std::string other_code(const TokenList& tokens, std::size_t at, const std::string& entry) const;
  Found expand(const MacroCall& call, unsigned depth);
  Found expand_list(std::string_view body, const TokenList& tokens, unsigned depth);

  const MacroTable& macros_;
  std::deque<std::string> expanded_;  // the texts that tokens point to
  std::vector<const Macro*> open_;    // those that are being expanded, which the preprocessor does not expand again
  std::size_t expansions_ = 0;
  std::size_t expanded_size_ = 0;  // of the current macro call
  std::size_t expanded_size_in_all_ = 0;
};

}  // namespace kiln::cli
