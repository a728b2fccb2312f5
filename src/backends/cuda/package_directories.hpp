#pragma once

#include <string>
#include <vector>

namespace kiln {

/// A directory into which pip installs packages, such as site-packages, and why it is searched.
struct PackageDirectory {
  std::string path;
  const char* found_by = "";  ///< prefix: that of this program; VIRTUAL_ENV: the active virtual environment
};

/// Where packages with NVIDIA's libraries are searched. A value type.
struct PackageDirectories {
  std::string own;                          ///< directory that contains kiln's own package or library
  std::vector<PackageDirectory> installed;  ///< of the prefix in whose `bin` this program is, then of VIRTUAL_ENV

  static PackageDirectories of_this_process();
  /// Returns those of a program or library at the path `file`. `environment` is the root of the active virtual
  /// environment; empty if there is none.
  static PackageDirectories of(const std::string& file, const std::string& environment);
};

}  // namespace kiln
