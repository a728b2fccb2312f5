// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <iterator>

#include "apps/kiln/jit/built_in_rules.hpp"
#include "apps/kiln/jit/rule.hpp"
#include "base/files/files.hpp"
#include "session/config/member_reader.hpp"

namespace kiln::jit {

Result<std::vector<Rule>> load_rules(const std::string& directory) {
  std::vector<Rule> all;
  const auto append = [&](Result<std::vector<Rule>> rules) -> Status {
    if (!rules) return rules.error();
    std::move(rules->begin(), rules->end(), std::back_inserter(all));
    return {};
  };
  if (!directory.empty()) {
    auto names = read_directory(AT_FDCWD, directory.c_str());
    if (!names) return names.error();
    std::sort(names->begin(), names->end());
    for (const std::string& name : *names) {
      if (!name.ends_with(".toml")) continue;
      const std::string path = join_path(directory, name);
      const auto text = read_protected_file(path);
      if (!text) return text.error();
      if (!*text) continue;
      if (Status added = append(parse_rules((*text)->view(), path)); !added) return added.error();
    }
  }
  for (const BuiltInRules& file : built_in_rules()) {
    if (Status added = append(parse_rules(file.text, file.name)); !added) return added.error();
  }
  return all;
}

}  // namespace kiln::jit
