// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_split.hpp"

#include <algorithm>
#include <map>

#include "base/hash.hpp"
#include "core/compatibility.hpp"
#include "core/recipe.hpp"

namespace kiln {
namespace {

bool is_ascii_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// `sm_90` for `sm_90a`: the number identifies a device.
std::string device_name(const Target& target) {
  const std::optional<int> number = capability_of(target, true);
  return number ? "sm_" + std::to_string(*number) : target.architecture;
}

bool is_cuda(const Target& target) {
  return target.form != Form::OpenClBinary && target.form != Form::External && capability_of(target, true).has_value();
}

// Returns a name that can be part of a file name and of a tag: letters, digits and ._- only. A digest keeps different
// targets apart whose names differ in other characters.
std::string plain_name(const std::string& text) {
  constexpr std::size_t kMaxLength = 40;
  std::string name;
  for (const char c : text.substr(0, kMaxLength)) {
    const bool is_plain = is_ascii_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
    name += is_plain ? c : '-';
  }
  return name == text ? name : name + '-' + sha256(text).hex().substr(0, 8);
}

// Returns the target of the part that a member starts: the device of machine code, or the PTX.
Target part_target(const Target& target) {
  const Form form = target.form == Form::Ptx ? Form::Ptx : Form::Cubin;
  return is_cuda(target) ? Target{device_name(target), form} : target;
}

// Returns the rank of code in a part; 0 if a device of the part cannot use it.
unsigned rank_in(const Target& part, const Target& made) {
  if (!is_cuda(part) || !is_cuda(made)) return part == made ? 1 : 0;
  if (part.form == Form::Ptx && made.form != Form::Ptx) return 0;
  if (made.form == Form::LtoIr) return device_name(made) == part.architecture ? 1 : 0;
  const Form form = made.form == Form::Cccl ? Form::Cccl : Form::Cubin;
  const std::optional<unsigned> rank = compatibility_rank(made, {part.architecture, form});
  return rank ? *rank + 1 : 0;
}

// Returns true for code that does not replace other code of its unit: LTO-IR is only linked, and a device that is newer
// than its part may not run `sm_90a` and `sm_100f`.
bool is_additional(const Target& made) {
  return is_cuda(made) && (made.form == Form::LtoIr || !capability_of(made).has_value());
}

std::vector<BundleMember> members_of(const Target& part, const std::vector<BundleMember>& members) {
  std::map<UnitKey, unsigned> best;
  for (const BundleMember& member : members) {
    const Target& made = member.artifact.target;
    if (!is_additional(made)) best[member.unit] = std::max(best[member.unit], rank_in(part, made));
  }
  std::vector<BundleMember> chosen;
  for (const BundleMember& member : members) {
    const Target& made = member.artifact.target;
    const unsigned rank = rank_in(part, made);
    if (rank != 0 && (is_additional(made) || rank == best[member.unit])) chosen.push_back(member);
  }
  return chosen;
}

}  // namespace

std::vector<BundlePart> split_by_architecture(const std::vector<BundleMember>& members) {
  std::map<std::string, Target> targets;
  for (const BundleMember& member : members) {
    const Target part = part_target(member.artifact.target);
    targets.emplace(plain_name(part.name()), part);
  }
  std::vector<BundlePart> parts;
  for (const auto& [name, target] : targets) parts.push_back({name, members_of(target, members)});
  return parts;
}

std::optional<std::size_t> best_part(const std::vector<std::string>& names, const Target& device) {
  std::optional<std::size_t> best;
  unsigned best_rank = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Result<Target> made = Target::parse(names[i]);
    const std::optional<unsigned> rank = made ? compatibility_rank(*made, device) : std::nullopt;
    if (!rank || *rank + 1 <= best_rank) continue;
    best_rank = *rank + 1;
    best = i;
  }
  return best;
}

}  // namespace kiln
