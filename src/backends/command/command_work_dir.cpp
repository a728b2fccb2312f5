// SPDX-License-Identifier: Apache-2.0
#include "backends/command/command_work_dir.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"

namespace kiln {
namespace {

constexpr std::string_view kPrefix = "kiln-command-";

bool leads_out(const std::string& name) {
  return name.empty() || name.front() == '/' || name.back() == '/' || name.starts_with("../") ||
         name.find("/../") != std::string::npos || name.find('\0') != std::string::npos;
}

Status write_new(const std::string& path, std::string_view content) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return io_error("cannot write", path, errno);
  return write_all(file.get(), content, path);
}

}  // namespace

Status check_file_names(const Unit& unit) {
  const std::string source = file_name(unit.name());
  const bool plain = !source.empty() && source.front() != '-' && source.front() != '.' && source.front() != '@' &&
                     source.find('.') != std::string::npos && source.find('\0') == std::string::npos;
  if (!plain) {
    return make_error(Code::InvalidArgument,
                      "'" + unit.name() +
                          "' is not a valid source file name: it needs an extension that tells the "
                          "compiler its language, as in scale.cu");
  }
  for (const Header& header : unit.headers()) {
    if (leads_out(header.name) || header.name == source) {
      return make_error(Code::InvalidArgument, "'" + header.name + "' is not a valid name for an in-memory header");
    }
  }
  return {};
}

Result<CommandWorkDir> CommandWorkDir::make(const std::string& parent, const Unit& unit, bool by_descriptor) {
  Result<TemporaryDirectory> temporary = TemporaryDirectory::make(join_path(parent, kPrefix));
  if (!temporary) return temporary.error();
  CommandWorkDir directory(*std::move(temporary));
  for (const char* name : {"/work", "/out", "/tmp"}) {
    const std::string made = directory.directory_.path() + name;
    if (mkdir(made.c_str(), 0700) != 0) return io_error("cannot create", made, errno);
  }
  for (const Header& header : unit.headers()) {
    const std::string file = join_path(directory.working_directory(), header.name);
    if (Status made = make_directories(parent_path(file)); !made) return std::move(made).error();
    if (Status written = write_new(file, header.content); !written) return std::move(written).error();
  }
  if (Status written = directory.write_source(unit, by_descriptor); !written) return std::move(written).error();
  return directory;
}

Status CommandWorkDir::write_source(const Unit& unit, bool by_descriptor) {
  source_ = file_name(unit.name());
  const std::string path = join_path(working_directory(), source_);
  if (!by_descriptor || access("/proc/self/fd", X_OK) != 0) return write_new(path, unit.full_source());
  const Fd made(memfd_create("kiln-source", MFD_CLOEXEC));
  if (!made) return io_error("cannot create", "an in-memory file", errno);
  if (Status written = write_all(made.get(), unit.full_source(), path); !written) return written;
  // A high number, so that no standard descriptor of the program replaces it before it is copied.
  in_memory_ = Fd(fcntl(made.get(), F_DUPFD_CLOEXEC, 10));
  if (!in_memory_) return io_error("cannot duplicate", "a descriptor", errno);
  const std::string target = "/proc/self/fd/" + std::to_string(kSourceDescriptor);
  if (symlink(target.c_str(), path.c_str()) != 0) return io_error("cannot create", path, errno);
  return {};
}

void CommandWorkDir::remove_stale(const std::string& parent) {
  TemporaryDirectory::remove_stale(join_path(parent, kPrefix));
}

}  // namespace kiln
