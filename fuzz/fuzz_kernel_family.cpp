// SPDX-License-Identifier: Apache-2.0
// Looks for kernel instances in arbitrary bytes, as `kiln split` does in a source, and for the names of kernels, as
// messages about unknown entry points do. Reads no file.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "apps/kiln/split/kernel_family.hpp"
#include "backends/kernel_entries.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const kiln::cli::KernelFamily family = kiln::cli::find_kernel_family(text, false, {}, {});
  kiln::fuzz::require(family.preamble.size() <= size, "a preamble is part of the source");
  kiln::fuzz::require(family.is_preamble_changed || family.preamble == text, "a source without instances is unchanged");
  std::set<std::string> entries;
  for (const auto& instance : family.instances) {
    kiln::fuzz::require(entries.insert(instance.entry).second, "no two instances have the same entry");
    kiln::fuzz::require(!instance.entry.empty() && instance.line > 0, "an instance has a name and a line");
  }
  for (const std::string& name : kiln::kernel_names(text)) kiln::fuzz::require(!name.empty(), "a kernel has a name");
  const auto unknown = kiln::find_unknown_entry(text);
  kiln::fuzz::require(!unknown || !unknown->entry.empty(), "an unknown entry has a name");
  return 0;
}
