// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/bundled_headers.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "backends/cuda/nvrtc_library.hpp"
#include "base/catch_to_error.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/files/lock_file.hpp"
#include "base/hash.hpp"
#include "base/process/process.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

constexpr CudaVersion kFirstVersion{13, 3};
constexpr const char* kLock = "lock";
constexpr const char* kMarker = ".kiln-complete";
constexpr const char* kTemporary = ".tmp-";  // followed by a process id
constexpr auto kMaxInstallTime = 120s;
constexpr auto kPoll = 20ms;
constexpr auto kMinTouchAge = 24h;
constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxReason = 2000;
constexpr int kReasonDescriptor = 3;  // kWorkerChannel

std::chrono::nanoseconds age_of(const struct stat& status) {
  return system_clock().wall() - std::chrono::nanoseconds(FileStamp::of(status).modified_ns);
}

// The files below a directory.
struct Tree {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  /// Returns the content of the marker of a complete installation of these files.
  std::string marker() const {
    return "kiln headers 1\nfiles " + std::to_string(files) + "\nbytes " + std::to_string(bytes) + "\n";
  }
};

// Adds the files below a directory, except the marker. Makes them read-only if `locks`. Fails if anything there is
// neither a file nor a directory.
Status scan(int parent, const std::string& name, bool locks, int depth, Tree& tree) {
  const Fd directory(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return io_error("cannot open", name, errno);
  auto names = read_directory(directory.get(), ".");
  if (!names) return std::move(names).error();
  for (const std::string& each : *names) {
    struct stat status;
    if (fstatat(directory.get(), each.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return io_error("cannot stat", each, errno);
    if (each == kMarker && depth == 0) continue;
    if (S_ISDIR(status.st_mode) && depth < kMaxDepth) {
      if (Status below = scan(directory.get(), each, locks, depth + 1, tree); !below) return below;
    } else if (S_ISREG(status.st_mode)) {
      if (locks && fchmodat(directory.get(), each.c_str(), 0444, 0) != 0)
        return io_error("cannot change the mode of", each, errno);
      ++tree.files;
      tree.bytes += static_cast<std::uint64_t>(status.st_size);
    } else {
      return make_error(Code::Corrupt, "'" + each + "' is not a regular file");
    }
  }
  return {};
}

void remove_tree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

Error not_installed(const std::string& nvrtc, const std::string& reason, Code code = Code::Unavailable) {
  return make_error(code == Code::Cancelled ? code : Code::Unavailable,
                    "the headers that " + nvrtc + " bundles were not installed: " + reason);
}

// Locks an installation and what is left of it among the threads and processes of this host.
LockFile::ScopedLock try_lock_place(LockFile& locks, const std::string& name) {
  return locks.try_lock_scoped(sha256(name.substr(0, name.find(kTemporary))));
}

// Returns true if all files of an installation are there: a crash of the machine can leave empty files, and a program
// that cleans up /tmp can remove some.
bool is_complete(int directory) {
  Tree tree;
  const Fd marker(openat(directory, kMarker, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!marker || !scan(directory, ".", false, 0, tree)) return false;
  const auto text = read_all(marker.get(), kMaxReason, kMarker);
  return text && text->view() == tree.marker();
}

// Has kiln-worker install the headers into an existing directory.
Status run_installer(const std::string& directory, const std::string& nvrtc, const HeaderInstaller& installer,
                     const RequestContext& context) {
  const Fd reason(static_cast<int>(memfd_create("kiln-install-headers", MFD_CLOEXEC)));
  const Fd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!reason || !nothing) return io_error("cannot create", "a memory file", errno);
  Process::SpawnOptions how;
  how.arguments = {installer.worker,
                   kInstallHeaders,
                   std::to_string(getpid()),
                   std::to_string(installer.memory_limit),
                   nvrtc,
                   directory,
                   installer.sandboxed ? "sandboxed" : "plain"};
  how.arguments.insert(how.arguments.end(), installer.readable.begin(), installer.readable.end());
  how.environment = installer.environment;
  how.descriptors = {{nothing.get(), 0}, {nothing.get(), 1}, {reason.get(), kReasonDescriptor}};
  how.block_terminal_signals = true;
  auto process = Process::spawn(how);
  if (!process) return std::move(process).error();
  const Deadline deadline(system_clock(), kMaxInstallTime);
  std::optional<Process::Exit> exit;
  while (!exit && deadline.remaining().count() > 0 && !context.stop.stop_requested()) exit = process->wait(kPoll);
  if (context.stop.stop_requested()) return make_error(Code::Cancelled, "it was canceled");
  if (!exit) return make_error(Code::TimedOut, "kiln-worker did not finish in time; try again");
  if (exit->succeeded()) return {};
  std::string text;
  if (lseek(reason.get(), 0, SEEK_SET) == 0) {
    if (const auto read = read_all(reason.get(), kMaxReason, "the reason")) text = read->view();
  }
  if (text.empty() && exit->signal != 0) text = "kiln-worker was ended by signal " + std::to_string(exit->signal);
  if (text.empty()) text = "kiln-worker failed with exit code " + std::to_string(exit->code);
  return make_error(Code::Unavailable, std::move(text));
}

}  // namespace

bool has_bundled_headers(const CompilerIdentity& nvrtc) {
  CudaVersion version;
  return nvrtc.name == "nvrtc" && std::sscanf(nvrtc.version.c_str(), "%d.%d", &version.major, &version.minor) == 2 &&
         version >= kFirstVersion;
}

// "could not open source file" without include directories, "cannot open source file" with some.
bool is_missing_header(const Error& error) {
  return error.code == Code::CompileFailed && error.log.find("open source file \"") != std::string::npos;
}

std::vector<std::string> installed_headers(const std::string& directory) {
  std::vector<std::string> found;
  const auto opened = open_trusted_directory(directory);
  if (!opened) return found;
  for (const std::string& name : list_directory(opened->get(), ".")) {
    if (name != kLock && name.find(kTemporary) == std::string::npos) found.push_back(join_path(directory, name));
  }
  return found;
}

void remove_bundled_headers(const std::string& directory, std::chrono::hours unused) {
  const auto opened = open_trusted_directory(directory);
  if (!opened) return;
  const auto locks = LockFile::open(join_path(directory, kLock));
  if (!locks) return;
  for (const std::string& name : list_directory(opened->get(), ".")) {
    if (name == kLock) continue;
    const LockFile::ScopedLock lock = try_lock_place(**locks, name);
    struct stat status;
    // If it is locked, it is being installed or removed.
    if (!lock || fstatat(opened->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    // A directory can be newer than the clock, and 0 means all.
    if (unused.count() != 0 && age_of(status) < unused) continue;
    // Renamed first: a compile finds all of the headers or none.
    const std::string removed =
        name.find(kTemporary) != std::string::npos ? name : name + kTemporary + std::to_string(getpid()) + "-removed";
    if (removed == name || renameat(opened->get(), name.c_str(), opened->get(), removed.c_str()) == 0)
      remove_tree(join_path(directory, removed));
  }
}

const std::string& BundledHeaders::directory() {
  // An exception must not leave call_once: see base/once.hpp.
  std::call_once(found_, [this] { ignore_failures([this] { directory_ = find_directory_(); }); });
  return directory_;
}

std::vector<IncludeRoot> BundledHeaders::roots(const CompilerIdentity& nvrtc) {
  if (!has_bundled_headers(nvrtc) || directory().empty()) return {};
  const std::string place = directory() + "/" + nvrtc.version + "-" + nvrtc.digest.hex().substr(0, 32);
  return {{place + "/cccl", {}}, {place, {}}};
}

bool BundledHeaders::contains(const std::string& place) {
  return !directory().empty() && parent_path(place) == directory();
}

Result<bool> BundledHeaders::is_installed(const std::string& place, bool checks_again) {
  const auto opened = open_trusted_directory(place);
  if (!opened && opened.error().code == Code::Unavailable) return false;
  if (!opened) return opened.error();
  struct stat status;
  if (fstat(opened->get(), &status) != 0) return io_error("cannot stat", place, errno);
  const MutexLock lock(mutex_);
  const std::pair id(status.st_dev, status.st_ino);
  // Checked once per process unless a header is missing: it takes 5 ms.
  if (checks_again) complete_.erase(id);
  if (!complete_.contains(id) && !is_complete(opened->get())) return false;
  complete_.insert(id);
  // Records the use.
  if (age_of(status) > kMinTouchAge) (void)futimens(opened->get(), nullptr);
  return true;
}

Status BundledHeaders::install(const std::string& place, const std::string& nvrtc, const HeaderInstaller& installer,
                               const RequestContext& context) {
  const auto wrap = [&](const Error& error) { return not_installed(nvrtc, error.message, error.code); };
  auto installed = is_installed(place);
  if (!installed) return wrap(installed.error());
  if (*installed) return {};
  if (installer.worker.empty()) {
    return not_installed(nvrtc,
                         "kiln-worker, which installs them, was not found or is not used; set KILN_WORKER to its "
                         "path and jobs to 1 or more");
  }
  if (Status made = make_directories(directory()); !made) return wrap(made.error());
  if (const auto trusted = open_trusted_directory(directory()); !trusted) return wrap(trusted.error());
  const auto locks = LockFile::open(join_path(directory(), kLock));
  if (!locks) return wrap(locks.error());
  const Deadline deadline(system_clock(), kMaxInstallTime);
  for (;;) {
    const LockFile::ScopedLock lock = try_lock_place(**locks, file_name(place));
    // Another process may have installed them until now.
    installed = is_installed(place);
    if (!installed) return wrap(installed.error());
    if (*installed) return {};
    if (lock) {
      Status done = install_now(place, nvrtc, installer, context);
      return done ? Status() : Status(wrap(done.error()));
    }
    if (context.stop.stop_requested()) return not_installed(nvrtc, "it was canceled", Code::Cancelled);
    if (deadline.remaining().count() <= 0) return not_installed(nvrtc, "another process did not finish it; try again");
    std::this_thread::sleep_for(kPoll);
  }
}

// Called with the lock of `place`.
Status BundledHeaders::install_now(const std::string& place, const std::string& nvrtc, const HeaderInstaller& installer,
                                   const RequestContext& context) const {
  const auto start = system_clock().steady();
  remove_bundled_headers(directory_, kUnusedHeadersAge);
  const std::string prefix = file_name(place) + kTemporary;
  const auto opened = open_trusted_directory(directory_);
  if (!opened) return opened.error();
  // What is at the place is incomplete, and the others were left by processes that died: this one has the lock.
  for (const std::string& name : list_directory(opened->get(), ".")) {
    if (name.starts_with(prefix)) remove_tree(join_path(directory_, name));
  }
  const std::string incomplete = prefix + "incomplete";
  if (renameat(opened->get(), file_name(place).c_str(), opened->get(), incomplete.c_str()) == 0) {
    remove_tree(join_path(directory_, incomplete));
  } else if (errno != ENOENT) {
    return io_error("cannot rename", place, errno);
  }
  const std::string temporary = prefix + std::to_string(getpid());
  const std::string path = join_path(directory_, temporary);
  if (mkdirat(opened->get(), temporary.c_str(), 0700) != 0) return io_error("cannot create", path, errno);
  const auto fail = [&](Error error) {
    remove_tree(path);
    return error;
  };
  if (Status ran = run_installer(path, nvrtc, installer, context); !ran) return fail(std::move(ran).error());
  Tree tree;
  if (Status scanned = scan(opened->get(), temporary, true, 0, tree); !scanned) return fail(std::move(scanned).error());
  const Fd made(openat(opened->get(), temporary.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made) return fail(io_error("cannot open", path, errno));
  for (const char* name : {"cuda_fp16.h", "cccl"}) {
    if (faccessat(made.get(), name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
      return fail(make_error(Code::Unavailable, "kiln-worker did not write " + std::string(name)));
  }
  if (Status marked = create_file(made.get(), kMarker, {tree.marker()}, Durability::Unsynced, 0444); !marked)
    return fail(std::move(marked).error());
  if (renameat(opened->get(), temporary.c_str(), opened->get(), file_name(place).c_str()) != 0)
    return fail(io_error("cannot create", place, errno));
  if (emitter_) {
    Event event;
    event.kind = Event::Kind::HeadersInstalled;
    event.ms = milliseconds_since(system_clock(), start);
    event.message = std::to_string(tree.files) + " files that " + nvrtc + " bundles were installed in " + place;
    emitter_.emit(event);
  }
  return {};
}

}  // namespace kiln
