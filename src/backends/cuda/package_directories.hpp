// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kiln {

/// A directory into which pip installs packages, such as site-packages, and why it is searched.
struct PackageDirectory {
  std::string path;
  const char* found_by = "";  ///< package: kiln's own; prefix: of this program; VIRTUAL_ENV: active environment
  std::string reason = {};    ///< why it is skipped; empty if it is searched
};

/// Where packages with NVIDIA's libraries are searched. kiln loads these libraries, so a directory is skipped if other
/// users can add or replace packages there, except users who can replace kiln's own package. A value type.
struct PackageDirectories {
  std::string own;                          ///< directory that contains kiln's own package, or one that includes kiln
  std::vector<PackageDirectory> installed;  ///< of the prefix in whose `bin` this program is, then of VIRTUAL_ENV
  std::vector<PackageDirectory> skipped;    ///< not searched, with the reason, for reports

  static PackageDirectories of_this_process();
  /// Returns those of a program or library at the path `file`. `environment` is the root of the active virtual
  /// environment; empty if there is none.
  static PackageDirectories of(const std::string& file, const std::string& environment);
};

}  // namespace kiln
