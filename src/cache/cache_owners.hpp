// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "base/process/system_info.hpp"

namespace kiln {

/// For root outside of a container, as under `sudo -E`: returns Code::Denied if a user who is neither root nor one of
/// `owners` owns a directory or link above a cache. That user could put another directory in its place, in which root
/// would then create files. `files` is for tests.
Status check_above_cache(const std::string& root, const std::vector<uid_t>& owners, const SystemFileRoot& files = {});

/// Returns whether files may be written to `<root>/v1` by their path: the directories belong to this user, root or
/// `owners`, or do not exist yet.
bool is_trusted_cache(const std::string& root, const std::vector<uid_t>& owners);

}  // namespace kiln
