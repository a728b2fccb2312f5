// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "project.hpp"

namespace kiln::test {

/// An edit of project files that another thread can make while a compiler runs. It uses absolute paths only.
struct Edit {
  /// True if one system call makes the change visible and the compiler searches for the file once. A result from that
  /// time is then of the old or of the new files. False if the compiler may see part of the edit.
  bool is_atomic = true;
  std::function<void()> apply;   ///< empty if the edit is not possible in the current project
  std::function<void()> revert;  ///< restores the old content in the same way
};

struct EditKind {
  const char* name;
  /// Can change files permanently.
  Edit (*prepare)(Project&, Random&);
};
const std::vector<EditKind>& edit_kinds();

}  // namespace kiln::test
