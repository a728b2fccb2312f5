// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/package_directories.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/files/owned_file.hpp"
#include "base/process/dynamic_library.hpp"
#include "base/process/environment.hpp"

namespace kiln {
namespace {

constexpr const char* kPackages[] = {"/nvidia", "/cuda"};  // contain NVRTC and CCCL

// Only this user and root may be able to change the directory, the packages in it, and the path to them.
Status check_installed(const std::string& path) {
  for (const char* package : kPackages) {
    if (Status owned = check_owned_directory(path + package); !owned && owned.error().code != Code::Unavailable) {
      return owned;
    }
  }
  return {};
}

// The owner of kiln's package is trusted already, for example the administrator of a shared installation. So is a group
// that can write to this directory, because it can replace kiln's package.
Status check_own(const std::string& path, const std::string& own_package) {
  struct stat status;
  if (stat(own_package.c_str(), &status) != 0) return io_error("cannot stat", own_package, errno);
  const uid_t owner = status.st_uid;
  for (const std::string& each : {path, path + kPackages[0], path + kPackages[1]}) {
    if (stat(each.c_str(), &status) != 0) continue;
    status.st_mode &= ~static_cast<mode_t>(S_IWGRP);
    if (is_owned(status, {owner})) continue;
    return make_error(Code::Denied, "other users can change the packages in " + each + "; give it the owner of " +
                                        own_package + ", and run: chmod o-w '" + each + "'");
  }
  return {};
}

// Returns whether `package` is kiln's Python package, or another one in a directory of pip.
bool is_package(const std::string& package) {
  const std::string directory = file_name(parent_path(package));
  if (directory == "site-packages" || directory == "dist-packages") return true;
  return file_name(package) == "kiln" && exists(package + "/__init__.py");
}

// Adds lib/python3.<minor>/site-packages of a prefix, and dist-packages, which is Debian's name.
void add_prefix(PackageDirectories& all, const std::string& prefix, const char* found_by) {
  std::vector<std::string> names = list_directory(AT_FDCWD, (prefix + "/lib").c_str());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!name.starts_with("python3")) continue;
    for (const char* packages : {"/site-packages", "/dist-packages"}) {
      std::string path = prefix + "/lib/" + name + packages;
      const auto is_same = [&](const PackageDirectory& each) { return each.path == path; };
      const bool known = path == all.own || std::any_of(all.installed.begin(), all.installed.end(), is_same) ||
                         std::any_of(all.skipped.begin(), all.skipped.end(), is_same);
      if (known || !is_directory(path)) continue;
      if (Status checked = check_installed(path); !checked) {
        all.skipped.push_back({std::move(path), found_by, checked.error().message});
      } else {
        all.installed.push_back({std::move(path), found_by});
      }
    }
  }
}

}  // namespace

PackageDirectories PackageDirectories::of(const std::string& file, const std::string& environment) {
  PackageDirectories all;
  const std::string directory = parent_path(file);
  const bool is_in_bin = file_name(directory) == "bin";
  // site-packages/kiln/_kiln.so and site-packages/kiln/bin/kiln are next to site-packages/nvidia.
  const std::string package = is_in_bin ? parent_path(directory) : directory;
  if (is_package(package)) {
    std::string path = parent_path(package);
    if (Status checked = check_own(path, package); !checked) {
      all.skipped.push_back({std::move(path), "package", checked.error().message});
    } else {
      all.own = std::move(path);
    }
  } else if (is_in_bin) {
    add_prefix(all, package, "prefix");
  }
  if (!environment.empty()) add_prefix(all, environment, "VIRTUAL_ENV");
  return all;
}

PackageDirectories PackageDirectories::of_this_process() {
  return of(path_of_address(reinterpret_cast<const void*>(&PackageDirectories::of)),
            environment_variable("VIRTUAL_ENV").value_or(""));
}

}  // namespace kiln
