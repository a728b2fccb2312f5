// SPDX-License-Identifier: Apache-2.0
// The worker's own open, fopen, stat and the like. The dynamic linker searches the program before libc, so that a
// compiler library in this process calls these functions. They see every file access exactly, including failed ones. A
// file that is opened for reading is replaced by a copy whose digest is computed, so that the compiled content is
// known. job_handler.cpp verifies this for each library before its results are trusted.
#include "interpose.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "file_broker.hpp"
#include "snapshot.hpp"

namespace {

// A file that the compiler opened, by its path.
struct OpenedFile {
  kiln::FileStamp stamp{};
  kiln::Snapshot snapshot;  // without a file after the first open
};

// State of a `ScopedFileTracing`.
struct Watch {
  kiln::FileAccessRecorder& recorder;
  const kiln::TextScanner scanner;
  std::mutex mutex;
  // Status of the original files, by the device and inode of their snapshots.
  std::map<std::pair<dev_t, ino_t>, struct stat> originals;
  std::map<std::string, OpenedFile> opened;
};

std::atomic<Watch*> current_watch{nullptr};

// Set while the recorder works: its own file accesses and allocations must not be recorded, and errno must not change.
thread_local bool is_recording = false;

template <class Note>
void record(Note note) {
  Watch* watch = current_watch.load(std::memory_order_acquire);
  if (watch == nullptr || is_recording) return;
  is_recording = true;
  const int error = errno;
  note(*watch);
  errno = error;
  is_recording = false;
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

// Returns true for calls of NVIDIA's driver. If it is loaded next to a compiler, it checks for its devices
// (/dev/nvidiactl, /proc/driver, /sys/bus) at any time. These calls are recognized by the caller's address, not by the
// path, because a source can include a file from there.
bool is_asked_by_driver(std::string_view path, void* caller) {
  if (!path.starts_with("/dev/") && !path.starts_with("/proc/") && !path.starts_with("/sys/")) return false;
  Dl_info library;
  if (dladdr(caller, &library) == 0 || library.dli_fname == nullptr) return false;
  const std::string_view file = library.dli_fname;
  return file.substr(file.rfind('/') + 1).starts_with("libcuda.so");
}

// Takes a copy of a file, or opens the copy of an earlier open of a file whose stamp is the same. A compile of CUB
// opens one header 66 times. Copies are kept from the second open on: most files are opened once, and each copy that is
// kept occupies a descriptor. The copy needs its own file offset, so it is opened again; without /proc a new copy is
// taken.
kiln::Snapshot snapshot_of(Watch& watch, const char* path, int fd, const struct stat& status) {
  const kiln::FileStamp stamp = kiln::FileStamp::of(status);
  const std::lock_guard lock(watch.mutex);
  const auto [place, is_first] = watch.opened.try_emplace(path);
  OpenedFile& known = place->second;
  if (!is_first && known.stamp == stamp && known.snapshot.file) {
    const std::string link = "/proc/self/fd/" + std::to_string(known.snapshot.file.get());
    kiln::Fd again(static_cast<int>(syscall(SYS_openat, AT_FDCWD, link.c_str(), O_RDONLY | O_CLOEXEC)));
    if (again) return {std::move(again), known.snapshot.content};
  }
  kiln::Snapshot snapshot = kiln::take_snapshot(fd, status, path, watch.scanner);
  known = {stamp, {}};
  if (!is_first && snapshot.file) {
    known.snapshot = {kiln::Fd(fcntl(snapshot.file.get(), F_DUPFD_CLOEXEC, 0)), snapshot.content};
  }
  return snapshot;
}

// Replaces a file that was opened for reading by a copy, under the same descriptor. The compiler then reads exactly the
// digested bytes, regardless of the calls that it uses and of later changes to the file.
void replace_by_snapshot(Watch& watch, const char* path, int fd, const struct stat& status, bool is_writable) {
  kiln::Snapshot snapshot;
  if (is_writable) {
    snapshot.content.problem = "was opened for writing";
  } else {
    snapshot = snapshot_of(watch, path, fd, status);
  }
  struct stat own;
  if (snapshot.file && fstat(snapshot.file.get(), &own) == 0) {
    const int flags = fcntl(fd, F_GETFD);
    if (dup3(snapshot.file.get(), fd, (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) == fd) {
      const std::lock_guard lock(watch.mutex);
      watch.originals[{own.st_dev, own.st_ino}] = status;
    } else {
      snapshot.content.problem = "cannot be replaced by a copy";
    }
  }
  watch.recorder.read(path, kiln::FileStamp::of(status), std::move(snapshot.content));
}

void record_open(const char* path, int fd, bool is_writable, void* caller) {
  record([&](Watch& watch) {
    struct stat status;
    if (is_asked_by_driver(path, caller) || !watch.recorder.is_input(path)) return;
    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode))) {
      watch.recorder.missing(path);
    } else {
      replace_by_snapshot(watch, path, fd, status, is_writable);
    }
  });
}

// Records a name relative to a directory of which only the descriptor is known.
void record_unknown(const char* path) {
  record([&](Watch& watch) { watch.recorder.read(path, {}, {{}, {}, "was opened relative to an unknown directory"}); });
}

// `found` is the result of the call itself. The stamp is taken again, which also distinguishes files from directories.
void record_question(const char* path, bool found, void* caller) {
  record([&](Watch& watch) {
    struct stat status;
    if (is_asked_by_driver(path, caller)) return;
    if (!found) {
      watch.recorder.missing(path);
    } else if (stat(path, &status) == 0 && !S_ISDIR(status.st_mode)) {
      watch.recorder.found(path, kiln::FileStamp::of(status));
    }
  });
}

void record_writing(const char* path) {
  record([&](Watch& watch) { watch.recorder.writing(path); });
}

// Returns the status of the original file for a snapshot, because compilers identify files by their inodes.
template <class Status>
int shown(int result, Status* status) {
  static_assert(sizeof(Status) == sizeof(struct stat));
  if (result != 0) return result;
  record([&](Watch& watch) {
    const std::lock_guard lock(watch.mutex);
    const auto found = watch.originals.find({status->st_dev, status->st_ino});
    if (found != watch.originals.end()) std::memcpy(status, &found->second, sizeof *status);
  });
  return result;
}

template <class Status>
int status_at(int folder, const char* path, Status* status, int flags) {
  static_assert(sizeof(Status) == sizeof(struct stat));
  return fstatat(folder, path, reinterpret_cast<struct stat*>(status), flags);
}

// Returns an in-memory file for NVRTC's temporary file; null for any other file. NVRTC backs the memory of precompiled
// headers by a file in the temporary directory that it unlinks at once: edg<number>_<process> by fopen, in newer
// versions edg.XXXXXX by mkstemp. The sandbox allows no such file, and a killed worker would leave it behind. The
// in-memory file is sparse: one page of each 64 KB. NVRTC ignores that there is nothing to unlink.
FILE* open_without_name(const char* path, const char* mode) {
  const std::string_view whole = path;
  const std::size_t slash = whole.rfind('/');
  if (slash == std::string_view::npos || mode[0] != 'w') return nullptr;
  const std::string_view name = whole.substr(slash + 1);
  if (!name.starts_with("edg") || !name.ends_with("_" + std::to_string(getpid()))) return nullptr;
  const int fd = memfd_create("kiln-edg", MFD_CLOEXEC);
  return fd < 0 ? nullptr : fdopen(fd, mode);
}

// NVRTC requires that a precompiled header is a regular file.
template <class Status>
int nameless_status(Status* status) {
  *status = {};
  status->st_mode = S_IFREG | 0600;
  return 0;
}

// A file that is truncated when opened contains only what the compiler writes.
bool reads(int flags) { return (flags & O_ACCMODE) != O_WRONLY && (flags & (O_DIRECTORY | O_TRUNC | O_PATH)) == 0; }
bool is_writable(int flags) { return (flags & O_ACCMODE) == O_RDWR; }

// Requests the file from the host after a failed open.
int request_file(const char* path, bool writes) {
  if (errno != EACCES && !kiln::is_nameless_pch(path)) return -1;
  const bool is_compiling = current_watch.load(std::memory_order_acquire) != nullptr && !is_recording;
  using Purpose = kiln::FileRequest::Purpose;
  return kiln::ask_for_file(path, writes ? Purpose::Write : is_compiling ? Purpose::Input : Purpose::Other);
}

int open_by_host(const char* path, int flags) {
  if ((flags & O_PATH) != 0 || (flags & O_TMPFILE) == O_TMPFILE) return -1;
  const int fd = request_file(path, (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0);
  if (fd >= 0 && (flags & O_CLOEXEC) == 0) (void)fcntl(fd, F_SETFD, 0);
  return fd;
}

FILE* stream_by_host(const char* path, const char* mode) {
  const bool writes = mode[0] != 'r' || std::strchr(mode, '+') != nullptr;
  const int fd = request_file(path, writes);
  if (fd >= 0 && std::strchr(mode, 'e') == nullptr) (void)fcntl(fd, F_SETFD, 0);
  return fd < 0 ? nullptr : fdopen(fd, mode);
}

// Returns the path of a name relative to a directory of which only the descriptor is known.
std::string path_below(int directory, const char* path) {
  if (directory == AT_FDCWD || path[0] == '/') return path;
  char buffer[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(directory);
  const ssize_t size = readlink(link.c_str(), buffer, sizeof buffer);
  return std::string(buffer, size > 0 ? static_cast<std::size_t>(size) : 0) + '/' + path;
}

}  // namespace

namespace kiln {

struct ScopedFileTracing::Impl : Watch {};

ScopedFileTracing::ScopedFileTracing(FileAccessRecorder& recorder, TextScanner scanner)
    : impl_(new Impl{{recorder, std::move(scanner), {}, {}, {}}}) {
  current_watch.store(impl_.get(), std::memory_order_release);
}
ScopedFileTracing::~ScopedFileTracing() { current_watch.store(nullptr, std::memory_order_release); }

}  // namespace kiln

#define KILN_EXPORTED extern "C" __attribute__((visibility("default"), used))

// The names depend on the version of the library (__xstat before glibc 2.33) and on the width of file offsets.
#define KILN_FOPEN(name)                                                                                           \
  KILN_EXPORTED FILE* name(const char* path, const char* mode) {                                                   \
    static auto* real = next<FILE*(const char*, const char*)>(#name);                                              \
    if (mode[0] != 'r') record_writing(path);                                                                      \
    FILE* file = open_without_name(path, mode);                                                                    \
    if (file == nullptr) file = real(path, mode);                                                                  \
    if (file == nullptr) file = stream_by_host(path, mode);                                                        \
    if (mode[0] == 'r') {                                                                                          \
      record_open(path, file ? fileno(file) : -1, std::strchr(mode, '+') != nullptr, __builtin_return_address(0)); \
    }                                                                                                              \
    return file;                                                                                                   \
  }
#define KILN_OPEN(name)                                                                       \
  KILN_EXPORTED int name(const char* path, int flags, ...) {                                  \
    va_list more;                                                                             \
    va_start(more, flags);                                                                    \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;      \
    va_end(more);                                                                             \
    static auto* real = next<int(const char*, int, ...)>(#name);                              \
    if ((flags & O_CREAT) != 0) record_writing(path);                                         \
    int fd = real(path, flags, mode);                                                         \
    if (fd < 0) fd = open_by_host(path, flags);                                               \
    if (reads(flags)) record_open(path, fd, is_writable(flags), __builtin_return_address(0)); \
    if ((flags & O_PATH) != 0) record_question(path, fd >= 0, __builtin_return_address(0));   \
    return fd;                                                                                \
  }
#define KILN_OPENAT(name)                                                                      \
  KILN_EXPORTED int name(int folder, const char* path, int flags, ...) {                       \
    va_list more;                                                                              \
    va_start(more, flags);                                                                     \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;       \
    va_end(more);                                                                              \
    static auto* real = next<int(int, const char*, int, ...)>(#name);                          \
    int fd = real(folder, path, flags, mode);                                                  \
    if (fd < 0 && errno == EACCES) fd = open_by_host(path_below(folder, path).c_str(), flags); \
    if (folder != AT_FDCWD && path[0] != '/') {                                                \
      record_unknown(path);                                                                    \
      return fd;                                                                               \
    }                                                                                          \
    if ((flags & O_CREAT) != 0) record_writing(path);                                          \
    if (reads(flags)) record_open(path, fd, is_writable(flags), __builtin_return_address(0));  \
    if ((flags & O_PATH) != 0) record_question(path, fd >= 0, __builtin_return_address(0));    \
    return fd;                                                                                 \
  }
#define KILN_XSTAT(name, type)                                          \
  KILN_EXPORTED int name(int version, const char* path, type* status) { \
    static auto* real = next<int(int, const char*, type*)>(#name);      \
    if (kiln::is_nameless_pch(path)) return nameless_status(status);    \
    const int result = real(version, path, status);                     \
    record_question(path, result == 0, __builtin_return_address(0));    \
    return result;                                                      \
  }
// By fstatat, because glibc has no function of these names to call before 2.33.
#define KILN_STAT(name, type, flags)                                 \
  KILN_EXPORTED int name(const char* path, type* status) noexcept {  \
    if (kiln::is_nameless_pch(path)) return nameless_status(status); \
    const int result = status_at(AT_FDCWD, path, status, flags);     \
    record_question(path, result == 0, __builtin_return_address(0)); \
    return result;                                                   \
  }

KILN_FOPEN(fopen)
KILN_FOPEN(fopen64)
KILN_OPEN(open)
KILN_OPEN(open64)
KILN_OPENAT(openat)
KILN_OPENAT(openat64)
KILN_XSTAT(__xstat, struct stat)
KILN_XSTAT(__xstat64, struct stat64)
KILN_XSTAT(__lxstat, struct stat)
KILN_XSTAT(__lxstat64, struct stat64)
KILN_STAT(stat, struct stat, 0)
KILN_STAT(stat64, struct stat64, 0)
KILN_STAT(lstat, struct stat, AT_SYMLINK_NOFOLLOW)
KILN_STAT(lstat64, struct stat64, AT_SYMLINK_NOFOLLOW)

KILN_EXPORTED int __fxstat(int version, int fd, struct stat* status) {
  static auto* real = next<int(int, int, struct stat*)>("__fxstat");
  return shown(real(version, fd, status), status);
}
KILN_EXPORTED int __fxstat64(int version, int fd, struct stat64* status) {
  static auto* real = next<int(int, int, struct stat64*)>("__fxstat64");
  return shown(real(version, fd, status), status);
}
KILN_EXPORTED int fstat(int fd, struct stat* status) noexcept {
  return shown(status_at(fd, "", status, AT_EMPTY_PATH), status);
}
KILN_EXPORTED int fstat64(int fd, struct stat64* status) noexcept {
  return shown(status_at(fd, "", status, AT_EMPTY_PATH), status);
}

KILN_EXPORTED int mkstemp(char* pattern) {
  static auto* real = next<int(char*)>("mkstemp");
  const std::string_view whole = pattern;
  const bool is_edg = whole.substr(whole.rfind('/') + 1).starts_with("edg.");
  const int fd = is_edg ? memfd_create("kiln-edg", MFD_CLOEXEC) : -1;
  return fd >= 0 ? fd : real(pattern);
}

KILN_EXPORTED int remove(const char* path) noexcept {  // NVRTC removes an old file before it writes a new one
  static auto* real = next<int(const char*)>("remove");
  return kiln::is_nameless_pch(path) ? 0 : real(path);
}
KILN_EXPORTED int access(const char* path, int mode) noexcept {
  static auto* real = next<int(const char*, int)>("access");
  const int result = real(path, mode);
  record_question(path, result == 0, __builtin_return_address(0));
  return result;
}

// NVRTC 13.3 and later add the working directory to relative names. If getcwd fails, they use the names as they are.
// kiln could not distinguish a name with the directory from an absolute path in a source, and results would be valid in
// this directory only. NVRTC's front end passes a buffer of 256 bytes. Its code generator, which writes the directory
// into debug information, and earlier versions of NVRTC pass larger buffers.
KILN_EXPORTED char* getcwd(char* buffer, std::size_t size) noexcept {
  static auto* real = next<char*(char*, std::size_t)>("getcwd");
  constexpr std::size_t kFrontEnd = 1024;
  const bool is_compiling = current_watch.load(std::memory_order_acquire) != nullptr && !is_recording;
  if (!is_compiling || buffer == nullptr || size > kFrontEnd) return real(buffer, size);
  errno = ENOENT;
  return nullptr;
}
