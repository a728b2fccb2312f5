// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_files.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace kiln {
namespace {

std::string real_path(const std::string& path) {
  char* const found = realpath(path.c_str(), nullptr);
  std::string real = found != nullptr ? found : "";
  free(found);
  return real;
}

// Removes `..` textually. Through a link the result can be another directory, so the caller compares both.
std::string without_dots(std::string_view path) {
  std::string plain;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      plain.resize(plain.empty() ? 0 : plain.rfind('/'));
    } else {
      plain.append("/").append(name);
    }
  }
  return plain.empty() ? "/" : plain;
}

bool is_below(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

// Resolves /proc/self/cwd, because a worker's /proc/self differs from that of the host.
std::string in_worker(const std::string& path, const std::string& working_directory) {
  static constexpr std::string_view kOwnDirectory = "/proc/self/cwd";
  const std::string whole = join_path(working_directory, path);
  return is_below(whole, kOwnDirectory) ? working_directory + whole.substr(kOwnDirectory.size()) : whole;
}

FileReply error_answer(int error) { return {error, {}}; }

// Opens a precompiled header. One without a name is opened again, so that each worker has its own position in it.
FileReply open_pch(const PchRequest& pch, int flags) {
  const std::string path = pch.file != nullptr ? "/proc/self/fd/" + std::to_string(pch.file->get()) : pch.path;
  if (pch.file == nullptr) flags |= O_NOFOLLOW;
  Fd file(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  return file ? FileReply{0, std::move(file)} : error_answer(errno);
}

}  // namespace

WorkerFiles::WorkerFiles(const WorkerJob& job) : working_directory_(job.recipe.working_directory), pch_(job.pch) {
  for (const std::string& root : input_places(job.recipe)) {
    const std::string whole = in_worker(root, working_directory_);
    std::string plain = without_dots(whole);
    std::string real = real_path(whole);
    // "/" contains all files, so as a root it would allow everything. /proc/self would be the host's.
    if (real.empty() || real == "/" || is_below(plain, "/proc")) continue;
    roots_.push_back(std::move(plain));
    real_roots_.push_back(std::move(real));
  }
}

FileReply WorkerFiles::open(const FileRequest& request) {
  const bool is_pch = pch_.mode != PchRequest::Mode::None && request.path == pch_.path;
  if (request.purpose == FileRequest::Purpose::Write) {
    if (!is_pch || pch_.mode != PchRequest::Mode::Create) return error_answer(EACCES);
    return open_pch(pch_, O_RDWR | O_CREAT | O_TRUNC);
  }
  if (is_pch) return open_pch(pch_, O_RDONLY | O_NONBLOCK);
  return open_input(in_worker(request.path, working_directory_), request.purpose);
}

FileReply WorkerFiles::open_input(const std::string& path, FileRequest::Purpose purpose) {
  const std::string real = real_path(path);
  if (real.empty()) return error_answer(errno);
  struct stat status;
  if (stat(real.c_str(), &status) != 0) return error_answer(errno);
  // Checked before opening, because opening a device can have side effects.
  const bool is_known_kind = S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
  if (!is_known_kind || !may_read(path, real)) {
    const bool is_readable = faccessat(AT_FDCWD, real.c_str(), R_OK, AT_EACCESS) == 0;
    const bool is_input = purpose == FileRequest::Purpose::Input && !S_ISDIR(status.st_mode);
    if (is_input && is_readable) rejected_.push_back(path);
    return error_answer(EACCES);
  }
  Fd file(::open(real.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  return file ? FileReply{0, std::move(file)} : error_answer(errno);
}

bool WorkerFiles::may_read(const std::string& path, const std::string& real) const {
  const auto holds = [](const std::vector<std::string>& roots, const std::string& name) {
    return std::any_of(roots.begin(), roots.end(), [&](const std::string& root) { return is_below(name, root); });
  };
  if (holds(real_roots_, real)) return true;
  // A link in a root can point anywhere: the user created it, since workers create none.
  const std::string plain = without_dots(path);
  return holds(roots_, plain) && real_path(plain) == real;
}

}  // namespace kiln
