#include "core/unit_fingerprint.hpp"

#include <algorithm>
#include <string_view>

#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr std::size_t kSample = 256;

std::uint64_t mixed(std::uint64_t sum, std::uint64_t value) { return (sum ^ value) * 0x9e3779b97f4a7c15ULL + 1; }
std::uint64_t mixed(std::uint64_t sum, std::string_view text) { return mixed(sum, xxh3(as_bytes(text))); }

}  // namespace

std::uint64_t fingerprint_of(const Unit& unit) {
  std::uint64_t sum = mixed(0, unit.kind());
  // Equal CCCL units can have different names.
  if (unit.kind() != "cccl") sum = mixed(sum, unit.name());
  const std::string_view source = unit.source();
  sum = mixed(sum, source.size());
  sum = mixed(sum, source.substr(0, kSample));
  if (source.size() > kSample) sum = mixed(sum, source.substr(source.size() - kSample));
  if (source.size() > 4 * kSample) sum = mixed(sum, source.substr(source.size() / 2, kSample));
  sum = mixed(sum, unit.preamble().size());
  sum = mixed(sum, unit.options().size());
  for (const std::string& entry : unit.entries()) sum = mixed(sum, entry);
  return sum;
}

}  // namespace kiln
