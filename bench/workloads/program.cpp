// SPDX-License-Identifier: Apache-2.0
// A program that needs a workload for sm_80, for the benchmarks of workloads.cpp:
//   kiln-bench-workload kiln WORKLOAD WORK_MS                                 with kiln, all requested at once
//   kiln-bench-workload bare WORKLOAD NVRTC LIBRARY HEADERS TOOLKIT NEEDED…   with NVRTC and the CCCL library alone
//   kiln-bench-workload floor ENTRIES [LOOKED_AT]                             only reads and checks these files
// The clock starts when the sources of the units are in memory, as in a program that has them linked in. KILN_*
// variables configure kiln. With WORK_MS the program works that long on the host between its request and its first get.
// Each prints: nanoseconds to the last result, to the first, and the part of them spent in gets; artifacts, bytes,
// compiled, cached, whether this process has NVRTC open, and nanoseconds of CPU time to the last result.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/cccl.hpp>
#include <kiln/session.hpp>

#include "backends/cccl/cccl_library.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/hash.hpp"
#include "bench/support/bare_nvrtc.hpp"
#include "bench/support/child_report.hpp"
#include "bench/support/harness.hpp"
#include "bench/workloads/workload.hpp"

namespace kiln::bench {
namespace {

struct Done {
  std::int64_t last = 0;
  std::int64_t first = 0;
  std::int64_t blocked = 0;
  std::size_t artifacts = 0;
  std::size_t bytes = 0;
  std::size_t compiled = 0;
  std::size_t found = 0;
  std::int64_t processor = 0;

  void add(std::int64_t start, std::size_t size) {
    last = now_ns() - start;
    if (artifacts == 0) first = last;
    ++artifacts;
    bytes += size;
  }
};

std::int64_t processor_ns() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Simulates a program that reads its input: one busy thread.
void work_on_the_host(std::int64_t ns) {
  const std::vector<std::uint8_t> input(std::size_t{1} << 20, 7);
  std::uint64_t seen = 0;
  for (const std::int64_t end = now_ns() + ns; now_ns() < end;) seen += xxh3(input);
  if (seen == 1) std::fprintf(stderr, "unlikely\n");  // keeps the compiler from removing the code above
}

Result<Done> by_kiln(const Units& units, std::int64_t work_ns) {
  const Target target = Target::sm(80);
  Done done;
  const std::int64_t start = now_ns();
  const std::int64_t processor = processor_ns();
  SessionOptions options;
  options.settings = {{"pch.mode", "on"}};
  auto session = Session::open(options);
  if (!session) return std::move(session).error();
  session->request(units, target);
  if (work_ns > 0) work_on_the_host(work_ns);
  const std::int64_t asked = now_ns();
  for (const Unit& unit : units) {
    const auto artifact = session->artifact(unit, target);
    if (!artifact) return artifact.error();
    done.add(start, artifact->bytes.size());
  }
  done.blocked = now_ns() - asked;
  done.processor = processor_ns() - processor;
  const SessionStatus status = final_status(*session);
  done.compiled = status.compiled;
  done.found = status.cached;
  return done;
}

struct Bare {
  std::string nvrtc;
  std::string library;
  std::string headers;
  std::string toolkit;
  std::vector<std::string> needed;
};

// Each library is opened when the first unit needs it.
Result<Done> by_compilers(const Units& units, const Bare& bare) {
  Done done;
  const std::int64_t start = now_ns();
  const std::int64_t processor = processor_ns();
  std::shared_ptr<const NvrtcLibrary> nvrtc;
  std::shared_ptr<const CcclLibrary> library;
  for (const Unit& unit : units) {
    if (unit.kind() == "cuda") {
      if (nvrtc == nullptr) {
        auto opened = NvrtcLibrary::open(bare.nvrtc);
        if (!opened) return std::move(opened).error();
        nvrtc = std::move(*opened);
      }
      const auto cubin = compile_with_bare_nvrtc(*nvrtc, unit);
      if (!cubin) return make_error(cubin.error().code, unit.name() + ": " + cubin.error().message);
      done.add(start, cubin->size());
    } else {
      if (library == nullptr) {
        const auto candidate = choose_cccl(bare.library);
        if (!candidate) return candidate.error();
        auto opened = CcclLibrary::open(*candidate, bare.needed);
        if (!opened) return std::move(opened).error();
        library = std::move(*opened);
      }
      const auto spec = cccl::Spec::parse(unit.source());
      if (!spec) return spec.error();
      const auto build = CcclLibrary::compile(library, *spec, {80, bare.headers, bare.toolkit, {}, {}});
      if (!build) return build.error();
      const auto blob = build->serialize();
      if (!blob) return blob.error();
      done.add(start, blob->size());
    }
    ++done.compiled;
  }
  done.blocked = done.last;
  done.processor = processor_ns() - processor;
  return done;
}

/// Returns the NUL-terminated paths in a file.
std::vector<const char*> listed(const Bytes& list) {
  std::vector<const char*> paths;
  const char* const end = reinterpret_cast<const char*>(list.data()) + list.size();
  for (const char* path = reinterpret_cast<const char*>(list.data()); path < end;
       path += std::string_view(path).size() + 1)
    paths.push_back(path);
  return paths;
}

// Reads into new memory, as a caller that keeps the bytes must, without writing it first.
std::size_t read_and_check(const char* path, std::uint64_t& seen) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) std::exit(1);
  const auto size = static_cast<std::size_t>(status.st_size);
  auto* const data = static_cast<std::uint8_t*>(std::malloc(size + 1));
  if (read(fd, data, size) != status.st_size) std::exit(1);
  close(fd);
  seen += xxh3({data, size});
  return size;
}

Done by_reading(const Bytes& entries, const Bytes& looked_at) {
  const std::vector<const char*> files = listed(entries);
  const std::vector<const char*> headers = listed(looked_at);
  Done done;
  std::uint64_t seen = 0;
  const std::int64_t start = now_ns();
  const std::int64_t processor = processor_ns();
  for (const char* path : headers) {
    struct stat status;
    if (stat(path, &status) == 0) seen += status.st_ino;
  }
  for (const char* path : files) done.add(start, read_and_check(path, seen));
  done.blocked = done.last;
  done.processor = processor_ns() - processor;
  done.found = done.artifacts;
  if (seen == 1) std::fprintf(stderr, "unlikely\n");
  return done;
}

int report(const Result<Done>& done) {
  if (!done) return warn(done.error());
  std::printf("%lld %lld %lld %zu %zu %zu %zu %d %lld\n", static_cast<long long>(done->last),
              static_cast<long long>(done->first), static_cast<long long>(done->blocked), done->artifacts, done->bytes,
              done->compiled, done->found, nvrtc_is_open() ? 1 : 0, static_cast<long long>(done->processor));
  std::fflush(stdout);
  return 0;
}

Result<Bytes> text_of(const char* path) {
  auto text = read_file(path);
  if (!text) return std::move(text).error();
  if (!*text) return make_error(Code::Io, std::string(path) + " does not exist");
  return std::move(**text);
}

int read_files(int argc, char** argv) {
  const auto entries = text_of(argv[2]);
  if (!entries) return report(entries.error());
  const auto looked_at = argc > 3 ? text_of(argv[3]) : Result<Bytes>(Bytes());
  if (!looked_at) return report(looked_at.error());
  return report(by_reading(*entries, *looked_at));
}

int run(int argc, char** argv) {
  if (argc < 3 || setpriority(PRIO_PROCESS, 0, kNiceness) != 0) return 2;
  const std::string_view who = argv[1];
  if (who == "floor") return read_files(argc, argv);
  const auto units = workload_named(argv[2]);
  if (!units) return report(units.error());
  if (who == "kiln" && argc == 4) return report(by_kiln(*units, std::atoll(argv[3]) * 1'000'000));
  if (who == "bare" && argc > 6) {
    return report(by_compilers(*units, {argv[3], argv[4], argv[5], argv[6], {argv + 7, argv + argc}}));
  }
  return 2;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) { return kiln::bench::run(argc, argv); }
