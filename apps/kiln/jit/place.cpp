// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/place.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <random>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/beneath.hpp"
#include "base/files/owned_file.hpp"
#include "base/hash.hpp"

namespace kiln::jit {
namespace {

using namespace std::chrono_literals;

constexpr auto kStale = 1h;

// Renames without replacing anything. Returns false if the target exists.
Result<bool> rename_new(int from, const std::string& name, int to, const std::string& target, bool is_file) {
  if (syscall(SYS_renameat2, from, name.c_str(), to, target.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno == EINVAL || errno == ENOSYS) {
    // File systems without this flag: a link never replaces a file, and rename never replaces a directory with files.
    const int done =
        is_file ? linkat(from, name.c_str(), to, target.c_str(), 0) : renameat(from, name.c_str(), to, target.c_str());
    if (done == 0) {
      if (is_file) unlinkat(from, name.c_str(), 0);
      return true;
    }
    if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) return false;
  }
  return io_error("cannot rename to", target, errno);
}

void remove_tree(int directory, const std::string& name) {
  if (unlinkat(directory, name.c_str(), 0) == 0) return;
  if (const Fd below = open_beneath(directory, name.c_str(), O_RDONLY | O_DIRECTORY)) remove_contents(below.get());
  unlinkat(directory, name.c_str(), AT_REMOVEDIR);
}

// Removes temporary directories that killed processes left.
void remove_stale(int root) {
  const auto now = system_clock().wall();
  for (const std::string& name : list_directory(root, ".")) {
    struct stat status;
    if (!name.starts_with(kTemporaryPrefix) || fstatat(root, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const auto changed = std::chrono::seconds(status.st_ctim.tv_sec);
    if (S_ISDIR(status.st_mode) && status.st_uid == geteuid() && now - changed > kStale) remove_tree(root, name);
  }
}

std::string random_name() {
  std::random_device source;
  const std::uint32_t numbers[2] = {source(), source()};
  return std::string(kTemporaryPrefix) + hex_of({reinterpret_cast<const std::uint8_t*>(numbers), sizeof numbers});
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

}  // namespace

Result<Fd> open_root(const std::string& root, bool create) {
  if (!root.starts_with('/')) {
    return make_error(Code::InvalidArgument, "the cache directory '" + root + "' is not an absolute path; use one");
  }
  Status owned = check_owned_directory(root);
  if (!owned && owned.error().code == Code::Unavailable && create) {
    if (Status made = make_directories(root); !made) return made.error();
    owned = check_owned_directory(root);
  }
  if (!owned) return owned.error();
  Fd directory(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status;
  if (!directory || fstat(directory.get(), &status) != 0) return io_error("cannot open", root, errno);
  if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return make_error(Code::Denied, "the cache directory " + root +
                                        " belongs to another user or others can write to it; use a directory of your "
                                        "own with mode 0700");
  }
  return directory;
}

Status check_writable_root(const std::string& root) {
  const auto directory = open_root(root, true);
  if (!directory) return directory.error();
  if (faccessat(directory->get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return io_error("cannot write to", root, errno);
  return {};
}

EntryPlacer::~EntryPlacer() {
  if (!temporary_) return;
  remove_contents(temporary_.get());
  unlinkat(root_.get(), temporary_name_.c_str(), AT_REMOVEDIR);
}

Status EntryPlacer::make_temporary() {
  if (temporary_) return {};
  remove_stale(root_.get());
  temporary_name_ = random_name();
  if (mkdirat(root_.get(), temporary_name_.c_str(), 0700) != 0)
    return io_error("cannot create a directory in", root_path_, errno);
  temporary_ = open_beneath(root_.get(), temporary_name_.c_str(), O_RDONLY | O_DIRECTORY);
  if (!temporary_) return io_error("cannot open", join_path(root_path_, temporary_name_), errno);
  return {};
}

bool EntryPlacer::is_present(const std::string& path) const {
  const std::string directory = directory_of(path);
  const Fd parent = directory.empty() ? Fd() : open_directory_beneath(root_.get(), directory.c_str());
  if (!directory.empty() && !parent) return false;
  struct stat status;
  return fstatat(parent ? parent.get() : root_.get(), file_name(path).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Status EntryPlacer::write_file(int directory, const PackedFile& file, const std::string& name) const {
  const Fd out(openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                      file.executable ? 0755 : 0644));
  if (!out) return io_error("cannot create", name, errno);
  if (!file.rewritten) return write_all(out.get(), file.bytes, name);
  return write_all(out.get(), replace_all(file.bytes, kRootPlaceholder, root_path_), name);
}

Result<bool> EntryPlacer::place_folder(const std::string& path, const EntryPack& pack) {
  const std::string name = std::to_string(count_++);
  if (mkdirat(temporary_.get(), name.c_str(), 0700) != 0) return io_error("cannot create", name, errno);
  const Fd folder = open_directory_beneath(temporary_.get(), name.c_str());
  if (!folder) return io_error("cannot open", name, errno);
  for (const PackedFile& file : pack.files) {
    const std::string file_path(file.path);
    const std::string below = directory_of(file_path);
    const Fd directory = below.empty() ? Fd() : make_directory_beneath(folder.get(), below.c_str(), 0700);
    if (!below.empty() && !directory) return io_error("cannot create", file_path, errno);
    if (Status written = write_file(directory ? directory.get() : folder.get(), file, file_name(file_path)); !written)
      return written.error();
  }
  const std::string above = directory_of(path);
  const Fd parent = above.empty() ? Fd() : make_directory_beneath(root_.get(), above.c_str(), 0700);
  if (!above.empty() && !parent) return io_error("cannot create", join_path(root_path_, above), errno);
  const auto renamed = rename_new(temporary_.get(), name, parent ? parent.get() : root_.get(), file_name(path), false);
  if (!renamed || !*renamed) remove_tree(temporary_.get(), name);
  return renamed;
}

Result<bool> EntryPlacer::place_file(int parent, const std::string& name, const PackedFile& file) {
  struct stat status;
  if (fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return false;
  const std::string temporary = std::to_string(count_++);
  if (Status written = write_file(temporary_.get(), file, temporary); !written) return written.error();
  const auto renamed = rename_new(temporary_.get(), temporary, parent, name, true);
  if (!renamed || !*renamed) unlinkat(temporary_.get(), temporary.c_str(), 0);
  return renamed;
}

Result<bool> EntryPlacer::place(const std::string& path, const EntryPack& pack) {
  const bool rewrites =
      std::any_of(pack.files.begin(), pack.files.end(), [](const PackedFile& f) { return f.rewritten; });
  if (rewrites && !is_plain_root(root_path_)) {
    return make_error(Code::Unsupported, "the path of the cache directory cannot be written into files: '" +
                                             root_path_ + "'; use a path of letters, digits and -_.+@=,:~");
  }
  if (Status made = make_temporary(); !made) return made.error();
  if (pack.kind == Rule::Kind::File) {
    const std::string above = directory_of(path);
    const Fd parent = above.empty() ? Fd() : make_directory_beneath(root_.get(), above.c_str(), 0700);
    if (!above.empty() && !parent) return io_error("cannot create", join_path(root_path_, above), errno);
    return place_file(parent ? parent.get() : root_.get(), file_name(path), pack.files.front());
  }
  return place_folder(path, pack);
}

Status check_pack(const Rule& rule, const std::string& path, const EntryPack& pack) {
  const auto bad = [&](const std::string& reason) {
    return make_error(Code::Denied,
                      "the entry '" + path + "' does not match the rule of " + rule.system + ": " + reason);
  };
  if (!is_safe_path(path) || !rule.is_entry(path)) return bad("its path matches no pattern");
  if (pack.kind != rule.kind) return bad("it is of another kind");
  if (rule.kind == Rule::Kind::File && pack.files.front().path != file_name(path)) return bad("it has another name");
  for (const PackedFile& file : pack.files) {
    if (any_matches(rule.never, file.path)) return bad("it contains the file '" + std::string(file.path) + "'");
    if (file.rewritten && !any_matches(rule.rewrite, file.path))
      return bad("the rule does not rewrite '" + std::string(file.path) + "'");
  }
  for (const PathPattern& pattern : rule.whole) {
    const auto matches = [&](const PackedFile& file) { return pattern.matches_file(file.path); };
    if (std::none_of(pack.files.begin(), pack.files.end(), matches)) return bad("it has no file " + pattern.text());
  }
  return {};
}

}  // namespace kiln::jit
