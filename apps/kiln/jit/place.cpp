// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/place.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/files/beneath.hpp"
#include "base/files/owned_file.hpp"

namespace kiln::jit {
namespace {

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

/// The directory of a path below an open directory: that one itself for a name alone. `fd` is -1 on failure.
struct ParentDirectory {
  ParentDirectory(int directory, const std::string& path, bool create) : fd(directory) {
    const std::string parent = parent_path(path);
    if (parent == ".") return;
    opened = create ? make_directory_beneath(directory, parent.c_str(), 0700)
                    : open_directory_beneath(directory, parent.c_str());
    fd = opened.get();
  }
  Fd opened;
  int fd;
};

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

Status EntryPlacer::make_temporary() {
  if (temporary_) return {};
  const std::string prefix = join_path(root_path_, kTemporaryPrefix);
  TemporaryDirectory::remove_stale(prefix);
  auto made = TemporaryDirectory::make(prefix);
  if (!made) return made.error();
  unpacked_ = open_beneath(root_.get(), file_name(made->path()).c_str(), O_RDONLY | O_DIRECTORY);
  if (!unpacked_) return io_error("cannot open", made->path(), errno);
  temporary_.emplace(std::move(*made));
  return {};
}

bool EntryPlacer::is_present(const std::string& path) const {
  const ParentDirectory parent(root_.get(), path, false);
  struct stat status;
  return parent.fd >= 0 && fstatat(parent.fd, file_name(path).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Status EntryPlacer::write_file(int directory, const PackedFile& file, const std::string& name) const {
  const Fd out(openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                      file.executable ? 0755 : 0644));
  if (!out) return io_error("cannot create", name, errno);
  if (!file.rewritten) return write_all(out.get(), file.bytes, name);
  return write_all(out.get(), replace_all(file.bytes, kRootPlaceholder, root_path_), name);
}

// What it leaves in the temporary directory is removed with that.
Result<bool> EntryPlacer::place_folder(int parent, const std::string& entry_name, const EntryPack& pack,
                                       const Deadline& deadline) {
  const std::string name = std::to_string(count_++);
  if (mkdirat(unpacked_.get(), name.c_str(), 0700) != 0) return io_error("cannot create", name, errno);
  const Fd folder = open_directory_beneath(unpacked_.get(), name.c_str());
  if (!folder) return io_error("cannot open", name, errno);
  for (const PackedFile& file : pack.files) {
    if (deadline.remaining().count() == 0) return make_error(Code::TimedOut, "time limit reached");
    const std::string file_path(file.path);
    const ParentDirectory directory(folder.get(), file_path, true);
    if (directory.fd < 0) return io_error("cannot create", file_path, errno);
    if (Status written = write_file(directory.fd, file, file_name(file_path)); !written) return written.error();
  }
  return rename_new(unpacked_.get(), name, parent, entry_name, false);
}

Result<bool> EntryPlacer::place_file(int parent, const std::string& name, const PackedFile& file) {
  const std::string temporary = std::to_string(count_++);
  if (Status written = write_file(unpacked_.get(), file, temporary); !written) return written.error();
  return rename_new(unpacked_.get(), temporary, parent, name, true);
}

Result<bool> EntryPlacer::place(const std::string& path, const EntryPack& pack, const Deadline& deadline) {
  const bool rewrites =
      std::any_of(pack.files.begin(), pack.files.end(), [](const PackedFile& f) { return f.rewritten; });
  if (rewrites && !is_plain_root(root_path_)) {
    return make_error(Code::Unsupported, "the path of the cache directory cannot be written into files: '" +
                                             root_path_ + "'; use a path of letters, digits and -_.+@=,:~");
  }
  if (Status made = make_temporary(); !made) return made.error();
  const ParentDirectory parent(root_.get(), path, true);
  if (parent.fd < 0) return io_error("cannot create", join_path(root_path_, parent_path(path)), errno);
  if (pack.kind == Rule::Kind::File) return place_file(parent.fd, file_name(path), pack.files.front());
  return place_folder(parent.fd, file_name(path), pack, deadline);
}

Status check_pack(const Rule& rule, const std::string& path, const EntryPack& pack) {
  const auto bad = [&](const std::string& reason) {
    return make_error(Code::Denied,
                      "the entry '" + path + "' does not match the rule of " + rule.system + ": " + reason);
  };
  if (!is_safe_path(path) || !rule.is_entry(path)) return bad("its path matches no pattern");
  if (pack.kind != rule.kind) return bad("it is of another kind");
  if (rule.kind == Rule::Kind::File && pack.files.front().path != file_name(path)) return bad("it has another name");
  std::size_t rewritten = 0;
  for (const PackedFile& file : pack.files) {
    if (file.rewritten) rewritten += file.bytes.size();
    if (any_matches(rule.never, file.path)) return bad("it contains the file '" + std::string(file.path) + "'");
    if (file.rewritten && !any_matches(rule.rewrite, file.path))
      return bad("the rule does not rewrite '" + std::string(file.path) + "'");
    if (!file.rewritten && rule.must_contain_root(file.path))
      return bad("'" + std::string(file.path) + "' contains the path of another cache directory");
  }
  if (rewritten > kMaxRewrittenBytes) return bad("its rewritten files have more than 1 MiB");
  for (const PathPattern& pattern : rule.whole) {
    const auto matches = [&](const PackedFile& file) { return pattern.matches_file(file.path); };
    if (std::none_of(pack.files.begin(), pack.files.end(), matches)) return bad("it has no file " + pattern.text());
  }
  return {};
}

}  // namespace kiln::jit
