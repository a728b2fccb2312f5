// The worker's own open, fopen, stat and the like. The dynamic linker looks into the program before it looks into libc,
// so a compiler library that this process opens calls these: what it asks the file system is seen exactly, including
// what it did not find, at the cost of a lookup in a table. workshop.cpp proves for each library that it really is
// so before an answer is believed.
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
#include <string>
#include <string_view>

namespace {

std::atomic<kiln::FileRecorder*> current_recorder{nullptr};

// The recorder's own work (allocating, reading the clock) must not be taken down, nor errno changed.
thread_local bool is_recording = false;

template <class Note>
void record(Note note) {
  kiln::FileRecorder* recorder = current_recorder.load(std::memory_order_acquire);
  if (recorder == nullptr || is_recording) return;
  is_recording = true;
  const int error = errno;
  note(*recorder);
  errno = error;
  is_recording = false;
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

void record_open(const char* path, int fd) {
  record([&](kiln::FileRecorder& recorder) {
    struct stat status;
    if (fd < 0) {
      recorder.missing(path);
    } else if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
      recorder.missing(path);
    } else {
      // What is not a regular file gets a stamp that no later look confirms: the compile is not kept.
      recorder.read(path, S_ISREG(status.st_mode) ? kiln::FileStamp::of(status) : kiln::FileStamp{});
    }
  });
}

// `found` is what the call itself said; the stamp is taken anew, which also tells files from folders.
void record_question(const char* path, bool found) {
  record([&](kiln::FileRecorder& recorder) {
    if (!found) {
      recorder.missing(path);
    } else if (const auto stamp = kiln::stamp_of(path)) {
      recorder.found(path, *stamp);
    }
  });
}

void record_writing(const char* path) {
  record([&](kiln::FileRecorder& recorder) { recorder.writing(path); });
}

// Far from where the kernel, the sanitizers and the loader put things, with or without randomisation.
constexpr std::uintptr_t kPchHeap = 0x2000'0000'0000;
std::atomic<std::size_t> pch_heap_size{0};
std::atomic<bool> pch_heap_placed{false};

// Whether all of the heap is the one mapping that it began as.
bool pch_heap_whole = false;

bool is_in_pch_heap(const void* address, std::size_t size) {
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t whole = pch_heap_size.load(std::memory_order_relaxed);
  return pch_heap_placed && start >= kPchHeap && size <= whole && start - kPchHeap <= whole - size;
}

bool copy_from(int fd, off_t offset, void* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = pread(fd, static_cast<char*>(to) + done, size - done, offset + static_cast<off_t>(done));
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

// NVRTC maps a precompiled header over its heap in pieces of 64 KB, three thousand of them for CUB, and after each
// program it maps empty memory over everything. Every page of every piece is then a fault again, which is a tenth of
// what compiles with precompiled headers take (docs/decisions/0008-the-heap-is-kept.md). So the heap stays the one
// mapping that it was, and a piece is copied into it: to its owner, who maps privately, that is the same. Memory that
// is to be emptied is left as it is, because nobody has any of it before a piece was put there.
bool keep_pch_heap_whole(void* wish, std::size_t size, int flags, int fd, off_t offset) {
  if ((flags & MAP_FIXED) == 0 || (flags & MAP_PRIVATE) == 0 || !pch_heap_whole || !is_in_pch_heap(wish, size)) {
    return false;
  }
  if (fd >= 0) return copy_from(fd, offset, wish, size);
  return size == pch_heap_size.load(std::memory_order_relaxed);
}

void* map_memory(void* wish, std::size_t size, int protection, int flags, int fd, off_t offset) {
  const auto map = [&](void* address, int how) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is what a system call gives
    return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, how, fd, offset));
  };
  if (wish == nullptr && fd < 0 && size != 0 && size == pch_heap_size.load(std::memory_order_relaxed)) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that nothing lies at yet
    void* const placed = map(reinterpret_cast<void*>(kPchHeap), flags | MAP_FIXED_NOREPLACE);
    if (placed != MAP_FAILED) {
      (void)madvise(placed, size, MADV_HUGEPAGE);
      pch_heap_placed = true;
      pch_heap_whole = true;
      return placed;
    }
  }
  if (keep_pch_heap_whole(wish, size, flags, fd, offset)) return wish;
  if ((flags & MAP_FIXED) != 0 && is_in_pch_heap(wish, size)) pch_heap_whole = false;
  return map(wish, flags);
}

// NVRTC backs the memory of precompiled headers by a file in the temporary folder, edg<number>_<process>, which it
// makes and unlinks at once. A worker that is killed in between leaves it for good (1 of 200 did), so here it has no
// name from the start; that there is nothing to unlink then does not trouble NVRTC. Null where it is another file, or
// where the file system has no files without names.
FILE* open_without_name(const char* path, const char* mode) {
  const std::string_view whole = path;
  const std::size_t slash = whole.rfind('/');
  if (slash == std::string_view::npos || mode[0] != 'w') return nullptr;
  const std::string_view name = whole.substr(slash + 1);
  if (!name.starts_with("edg") || !name.ends_with("_" + std::to_string(getpid()))) return nullptr;
  const std::string folder(whole.substr(0, slash + 1));
  const long fd = syscall(SYS_openat, AT_FDCWD, folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  return fdopen(static_cast<int>(fd), mode);
}

// A file that is emptied as it is opened has nothing to read but what the compiler itself writes.
bool reads(int flags) { return (flags & O_ACCMODE) != O_WRONLY && (flags & (O_DIRECTORY | O_TRUNC)) == 0; }

}  // namespace

namespace kiln {

FileWatch::FileWatch(FileRecorder& recorder) { current_recorder.store(&recorder, std::memory_order_release); }
FileWatch::~FileWatch() { current_recorder.store(nullptr, std::memory_order_release); }

void place_pch_heap(std::size_t size) { pch_heap_size = size; }
bool is_pch_heap_placed() { return pch_heap_placed; }

}  // namespace kiln

#define KILN_EXPORTED extern "C" __attribute__((visibility("default"), used))

// The names differ by age of the library (__xstat before glibc 2.33) and by file-offset width.
#define KILN_FOPEN(name)                                                                \
  KILN_EXPORTED FILE* name(const char* path, const char* mode) {                        \
    static auto* real = next<FILE*(const char*, const char*)>(#name);                   \
    if (std::strchr(mode, 'w') != nullptr) record_writing(path);                        \
    FILE* file = open_without_name(path, mode);                                         \
    if (file == nullptr) file = real(path, mode);                                       \
    if (std::strchr(mode, 'r') != nullptr) record_open(path, file ? fileno(file) : -1); \
    return file;                                                                        \
  }
#define KILN_OPEN(name)                                                                  \
  KILN_EXPORTED int name(const char* path, int flags, ...) {                             \
    va_list more;                                                                        \
    va_start(more, flags);                                                               \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                                        \
    static auto* real = next<int(const char*, int, ...)>(#name);                         \
    if ((flags & O_CREAT) != 0) record_writing(path);                                    \
    const int fd = real(path, flags, mode);                                              \
    if (reads(flags)) record_open(path, fd);                                             \
    return fd;                                                                           \
  }
#define KILN_OPENAT(name)                                                                \
  KILN_EXPORTED int name(int folder, const char* path, int flags, ...) {                 \
    va_list more;                                                                        \
    va_start(more, flags);                                                               \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                                        \
    static auto* real = next<int(int, const char*, int, ...)>(#name);                    \
    const int fd = real(folder, path, flags, mode);                                      \
    if (reads(flags) && (folder == AT_FDCWD || path[0] == '/')) record_open(path, fd);   \
    return fd;                                                                           \
  }
#define KILN_XSTAT(name, type)                                          \
  KILN_EXPORTED int name(int version, const char* path, type* status) { \
    static auto* real = next<int(int, const char*, type*)>(#name);      \
    const int result = real(version, path, status);                     \
    record_question(path, result == 0);                                 \
    return result;                                                      \
  }
#define KILN_STAT(name, type)                                       \
  KILN_EXPORTED int name(const char* path, type* status) noexcept { \
    static auto* real = next<int(const char*, type*)>(#name);       \
    const int result = real(path, status);                          \
    record_question(path, result == 0);                             \
    return result;                                                  \
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
KILN_STAT(stat, struct stat)
KILN_STAT(stat64, struct stat64)
KILN_STAT(lstat, struct stat)
KILN_STAT(lstat64, struct stat64)

KILN_EXPORTED int access(const char* path, int mode) noexcept {
  static auto* real = next<int(const char*, int)>("access");
  const int result = real(path, mode);
  record_question(path, result == 0);
  return result;
}

KILN_EXPORTED void* mmap(void* wish, std::size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  return map_memory(wish, size, protection, flags, fd, offset);
}
KILN_EXPORTED void* mmap64(void* wish, std::size_t size, int protection, int flags, int fd, off64_t offset) noexcept {
  return map_memory(wish, size, protection, flags, fd, offset);
}
