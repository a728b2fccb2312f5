// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/memory_settings.hpp"

#include <algorithm>

#include "runtime/dispatch/effective_settings.hpp"

namespace kiln::runtime {
namespace {

std::optional<unsigned> parse_retries(std::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '0' + static_cast<int>(kMaxMemoryRetries)) return std::nullopt;
  return static_cast<unsigned>(text[0] - '0');
}

std::optional<std::uint64_t> parse_limit(std::string_view text) {
  if (text == "none" || text == "0") return 0;
  const Result<std::uint64_t> size = parse_size(text);
  return size ? std::optional(*size) : std::nullopt;
}

}  // namespace

RequestedMemory RequestedMemory::read(VariableReader& variables) {
  RequestedMemory made;
  made.tier = variables.read("KILN_MEMORY_TIER", &parse_memory_tier);
  made.limit = variables.read("KILN_MEMORY_LIMIT", &parse_limit);
  made.retries = variables.read("KILN_OOM_RETRIES", &parse_retries);
  return made;
}

Memory::Settings effective_memory(const RequestedMemory& program, const RequestedMemory& environment) {
  const auto tier = effective_setting(program.tier, environment.tier, MemoryTier::Pool);
  const auto limit = effective_setting(program.limit, environment.limit, std::uint64_t{0});
  const auto retries = effective_setting(program.retries, environment.retries, kMaxMemoryRetries);
  return {tier.value,  limit.value,  std::min(retries.value, kMaxMemoryRetries),
          tier.source, limit.source, retries.source};
}

}  // namespace kiln::runtime
