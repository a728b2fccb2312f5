// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/scan.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "apps/kiln/jit/entry_list.hpp"
#include "apps/kiln/jit/entry_pack.hpp"
#include "base/error.hpp"
#include "base/files/beneath.hpp"

namespace kiln::jit {
namespace {

constexpr int kToList = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::vector<std::string> sorted_names(int directory) {
  std::vector<std::string> names = list_directory(directory, ".");
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".." || !is_safe_path(name); });
  std::sort(names.begin(), names.end());
  return names;
}

// Appends the paths below a directory that match the pattern's components from `depth` on.
void find_matches(int directory, const std::string& prefix, const PathPattern& pattern, std::size_t depth,
                  mode_t wanted, std::vector<std::string>& found) {
  const bool last = depth + 1 == pattern.depth();
  for (const std::string& name : sorted_names(directory)) {
    if (found.size() >= kMaxListLines) return;
    if (depth == 0 && name.starts_with(".kiln-")) continue;  // kiln's own
    if (!pattern.matches_component(depth, name)) continue;
    if (!last) {
      const Fd below(openat(directory, name.c_str(), kToList));
      if (below) find_matches(below.get(), prefix + name + "/", pattern, depth + 1, wanted, found);
      continue;
    }
    struct stat status;
    if (fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if ((status.st_mode & S_IFMT) == wanted) found.push_back(prefix + name);
  }
}

Error not_taken(const std::string& path, const std::string& reason) {
  return make_error(Code::Denied, "'" + path + "' is not taken: " + reason);
}

// Owning a file is not enough: another user can have changed it if others can write to it. A group with the number of
// the user is that of this user alone, for which many systems use the umask 002.
Status check_owner(const std::string& path, const struct stat& status) {
  if (status.st_uid != geteuid()) return not_taken(path, "it belongs to another user; publish as that user");
  if ((status.st_mode & S_IWGRP) != 0 && status.st_gid != static_cast<gid_t>(status.st_uid)) {
    return not_taken(path, "group " + std::to_string(status.st_gid) + " can write to it; remove this permission");
  }
  if ((status.st_mode & S_IWOTH) != 0) return not_taken(path, "every user can write to it; remove this permission");
  return {};
}

Status add_file(const Rule& rule, const std::string& path, const struct stat& status, std::vector<ScannedFile>& files) {
  if (any_matches(rule.never, path)) return {};
  if (!S_ISREG(status.st_mode))
    return not_taken(path, "it is not a regular file; remove it, or name it in 'never' of the rule");
  if (Status owned = check_owner(path, status); !owned) return owned;
  if (files.size() >= kMaxPackFiles)
    return not_taken(path, "the entry has more than 10000 files; name some in 'never' of the rule");
  files.push_back({path, (status.st_mode & S_IXUSR) != 0, FileStamp::of(status)});
  return {};
}

Status add_folder(int directory, const std::string& prefix, const Rule& rule, std::vector<ScannedFile>& files,
                  unsigned depth) {
  if (depth >= kMaxPackDepth)
    return not_taken(prefix,
                     "its directories are nested too deeply (32 levels at most); name some in 'never' of the rule");
  for (const std::string& name : sorted_names(directory)) {
    const std::string path = prefix + name;
    struct stat status;
    if (fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;  // removed in the meantime
    if (!S_ISDIR(status.st_mode)) {
      if (Status added = add_file(rule, path, status, files); !added) return added;
      continue;
    }
    if (any_matches(rule.never, path)) continue;
    if (Status owned = check_owner(path, status); !owned) return owned;
    const Fd below(openat(directory, name.c_str(), kToList));
    if (!below) return io_error("cannot open", path, errno);
    if (Status added = add_folder(below.get(), path + "/", rule, files, depth + 1); !added) return added;
  }
  return {};
}

// Who can write to a directory above an entry can give the entry the name of another one.
Status check_above(int root, const std::string& path) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string above = path.substr(0, slash);
    const Fd directory = open_directory_beneath(root, above.c_str());
    struct stat status;
    if (!directory || fstat(directory.get(), &status) != 0) return io_error("cannot open", above, errno);
    if (Status owned = check_owner(above, status); !owned) return owned;
  }
  return {};
}

}  // namespace

std::vector<std::string> find_entries(int root, const Rule& rule) {
  std::vector<std::string> found;
  const mode_t wanted = rule.kind == Rule::Kind::File ? S_IFREG : S_IFDIR;
  for (const PathPattern& pattern : rule.entries) find_matches(root, "", pattern, 0, wanted, found);
  if (rule.kind == Rule::Kind::File) {
    std::erase_if(found, [&](const std::string& path) { return any_matches(rule.never, path); });
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Result<std::vector<ScannedFile>> scan_entry(int root, const Rule& rule, const std::string& path) {
  std::vector<ScannedFile> files;
  if (Status above = check_above(root, path); !above) return above.error();
  if (rule.kind == Rule::Kind::File) {
    const Fd file = open_beneath(root, path.c_str(), O_PATH | O_NOFOLLOW);
    struct stat status;
    if (!file || fstat(file.get(), &status) != 0) return io_error("cannot open", path, errno);
    if (Status added = add_file(rule, file_name(path), status, files); !added) return added.error();
    return files;
  }
  const Fd folder = open_beneath(root, path.c_str(), O_RDONLY | O_DIRECTORY);
  struct stat status;
  if (!folder || fstat(folder.get(), &status) != 0) return io_error("cannot open", path, errno);
  if (Status owned = check_owner(path, status); !owned) return owned.error();
  if (Status added = add_folder(folder.get(), "", rule, files, 0); !added) return added.error();
  std::sort(files.begin(), files.end(), [](const ScannedFile& a, const ScannedFile& b) { return a.path < b.path; });
  return files;
}

Result<Bytes> read_scanned(int root, const Rule& rule, const std::string& entry, const ScannedFile& file) {
  const std::string path = rule.kind == Rule::Kind::File ? entry : entry + "/" + file.path;
  const Fd fd = open_beneath(root, path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (!fd) return io_error("cannot open", path, errno);
  const auto is_same = [&] {
    struct stat status;
    return fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) && FileStamp::of(status) == file.stamp;
  };
  const Error changed = make_error(Code::Unavailable, "'" + path + "' changed while it was read");
  if (!is_same()) return changed;
  auto bytes = read_all(fd.get(), file.stamp.size, path);
  if (!bytes) return bytes;
  if (bytes->size() != file.stamp.size || !is_same()) return changed;
  return bytes;
}

}  // namespace kiln::jit
