#include "compile/command_folder.hpp"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/error.hpp"

namespace kiln {
namespace {

constexpr std::string_view kPrefix = "kiln-command-";
// Between the making of a folder and its being locked others must leave it alone.
constexpr time_t kYoung = 60;

int remove_one(const char* path, const struct stat* /*status*/, int /*type*/, struct FTW* /*where*/) {
  (void)remove(path);
  return 0;
}

void remove_tree(const std::string& path) { (void)nftw(path.c_str(), remove_one, 16, FTW_DEPTH | FTW_PHYS); }

bool leads_out(const std::string& name) {
  return name.empty() || name.front() == '/' || name.back() == '/' || name.starts_with("../") ||
         name.find("/../") != std::string::npos || name.find('\0') != std::string::npos;
}

Status write_new(const std::string& path, std::string_view content) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return io_failure("cannot write", path, errno);
  return write_all(file.get(), content, path);
}

}  // namespace

Status check_file_names(const Unit& unit) {
  const std::string source = name_in_folder(unit.name());
  const bool plain = !source.empty() && source.front() != '-' && source.front() != '.' && source.front() != '@' &&
                     source.find('.') != std::string::npos && source.find('\0') == std::string::npos;
  if (!plain) {
    return failure(Code::InvalidArgument, "'" + unit.name() +
                                              "' is no name for a source file: it needs an ending that tells the "
                                              "compiler its language, as in scale.cu");
  }
  for (const Header& header : unit.headers()) {
    if (leads_out(header.name) || header.name == source) {
      return failure(Code::InvalidArgument, "'" + header.name + "' is no name for a header from memory");
    }
  }
  return {};
}

CommandFolder::CommandFolder(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

CommandFolder::~CommandFolder() {
  if (lock_) remove_tree(path_);
}

Result<CommandFolder> CommandFolder::make(const std::string& parent, const Unit& unit, bool by_descriptor) {
  std::string path = join_path(parent, std::string(kPrefix) + "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return io_failure("cannot make a folder in", parent, errno);
  Fd lock(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) return io_failure("cannot open", path, errno);
  CommandFolder folder(std::move(path), std::move(lock));
  (void)flock(folder.lock_.get(), LOCK_EX | LOCK_NB);
  for (const char* name : {"/work", "/out", "/tmp"}) {
    const std::string made = folder.path_ + name;
    if (mkdir(made.c_str(), 0700) != 0) return io_failure("cannot make", made, errno);
  }
  for (const Header& header : unit.headers()) {
    const std::string file = join_path(folder.work(), header.name);
    if (Status made = make_directories(folder_of(file)); !made) return std::move(made).error();
    if (Status written = write_new(file, header.content); !written) return std::move(written).error();
  }
  if (Status written = folder.write_source(unit, by_descriptor); !written) return std::move(written).error();
  return folder;
}

Status CommandFolder::write_source(const Unit& unit, bool by_descriptor) {
  source_ = name_in_folder(unit.name());
  const std::string path = join_path(work(), source_);
  if (!by_descriptor || access("/proc/self/fd", X_OK) != 0) return write_new(path, unit.whole_source());
  const Fd made(memfd_create("kiln-source", MFD_CLOEXEC));
  if (!made) return io_failure("cannot make", "a file in memory", errno);
  if (Status written = write_all(made.get(), unit.whole_source(), path); !written) return written;
  // High, so that no standard descriptor of the program is put in its place before it is copied.
  in_memory_ = Fd(fcntl(made.get(), F_DUPFD_CLOEXEC, 10));
  if (!in_memory_) return io_failure("cannot copy", "a descriptor", errno);
  const std::string target = "/proc/self/fd/" + std::to_string(kSourceDescriptor);
  if (symlink(target.c_str(), path.c_str()) != 0) return io_failure("cannot make", path, errno);
  return {};
}

void CommandFolder::sweep(const std::string& parent) {
  for (const std::string& name : list_directory(AT_FDCWD, parent.c_str())) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string path = join_path(parent, name);
    const Fd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status;
    if (!folder || fstat(folder.get(), &status) != 0 || status.st_uid != geteuid()) continue;
    if (status.st_mtime > time(nullptr) - kYoung || flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    remove_tree(path);
  }
}

}  // namespace kiln
