// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_owners.hpp"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "cache/cache_directory.hpp"

namespace kiln {

Status check_above_cache(const std::string& root, const std::vector<uid_t>& owners, const SystemFileRoot& files) {
  if (geteuid() != 0) return {};
  const auto other_owner = [&](std::string path) -> std::optional<std::string> {
    for (path = parent_path(path); path != "/" && path != "."; path = parent_path(path)) {
      struct stat status;
      if (lstat(path.c_str(), &status) != 0 || status.st_uid == 0) continue;
      if (std::find(owners.begin(), owners.end(), status.st_uid) == owners.end())
        return path + " belongs to user " + std::to_string(status.st_uid);
    }
    return std::nullopt;
  };
  std::optional<std::string> found = other_owner(normalize_path(root));
  char real[PATH_MAX];
  std::string existing = root;
  while (realpath(existing.c_str(), real) == nullptr && existing != "/" && existing != ".")
    existing = parent_path(existing);
  if (!found) found = other_owner(existing == root ? std::string(real) : std::string(real) + "/missing");
  // The users of a container are usually one person, who mounts directories of the host.
  if (!found || in_container(files)) return {};
  return make_error(Code::Denied, *found + ", who could replace the cache of root; run sudo with -H, set cache.dir " +
                                      "(KILN_CACHE_DIR), or add the user to cache.trusted_users");
}

bool is_trusted_cache(const std::string& root, const std::vector<uid_t>& owners) {
  for (const std::string& path : {root, join_path(root, CacheDirectory::kVersion)}) {
    const auto opened = open_trusted_directory(path, owners);
    if (!opened && opened.error().code != Code::Unavailable) return false;
  }
  return check_above_cache(root, owners).has_value();
}

}  // namespace kiln
