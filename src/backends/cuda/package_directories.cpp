#include "backends/cuda/package_directories.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/files/files.hpp"
#include "base/process/dynamic_library.hpp"
#include "base/process/environment.hpp"

namespace kiln {
namespace {

// Adds lib/python3.<minor>/site-packages of a prefix, and dist-packages, which is Debian's name.
void add_prefix(PackageDirectories& all, const std::string& prefix, const char* found_by) {
  std::vector<std::string> names = list_directory(AT_FDCWD, (prefix + "/lib").c_str());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!name.starts_with("python3")) continue;
    for (const char* packages : {"/site-packages", "/dist-packages"}) {
      std::string path = prefix + "/lib/" + name + packages;
      const bool known =
          path == all.own || std::any_of(all.installed.begin(), all.installed.end(),
                                         [&](const PackageDirectory& each) { return each.path == path; });
      if (!known && is_directory(path)) all.installed.push_back({std::move(path), found_by});
    }
  }
}

}  // namespace

PackageDirectories PackageDirectories::of(const std::string& file, const std::string& environment) {
  PackageDirectories all;
  const std::string directory = parent_path(file);
  const std::string above = parent_path(directory);
  if (file_name(directory) != "bin") {
    all.own = above;  // site-packages/kiln/_kiln.so is next to site-packages/nvidia
  } else if (file_name(above) == "kiln") {
    all.own = parent_path(above);  // site-packages/kiln/bin/kiln
  } else {
    add_prefix(all, above, "prefix");
  }
  if (!environment.empty()) add_prefix(all, environment, "VIRTUAL_ENV");
  return all;
}

PackageDirectories PackageDirectories::of_this_process() {
  return of(path_of_address(reinterpret_cast<const void*>(&PackageDirectories::of)),
            environment_variable("VIRTUAL_ENV").value_or(""));
}

}  // namespace kiln
