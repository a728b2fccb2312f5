// SPDX-License-Identifier: Apache-2.0
// Compiles the eight units of cub_units.hpp in a new process, for workers_cold8, worker_overhead and
// bench/pch_versions:
//   kiln-bench-eight HOW START serial LIBNVRTC INCLUDE_ROOT…     with bare NVRTC, one after the other
//   kiln-bench-eight HOW START threads LIBNVRTC INCLUDE_ROOT…    with bare NVRTC, each on its own thread
//   kiln-bench-eight HOW START kiln CACHE PCH INCLUDE_ROOT…      with kiln, in parallel; PCH is its setting `pch.mode`,
//   or `default`
//   kiln-bench-eight HOW START repeat LIBNVRTC INCLUDE_ROOT…     the first with bare NVRTC, as often as requested
//   (worker_overhead)
// HOW is `plain`, `no-personality` (the system call is denied, here and in child processes) or `no-aslr` (address space
// randomization is off, here and in child processes). Prints the nanoseconds since START, a digest of all cubins and
// their bytes, the number of precompiled headers that were stored, how many of them or of the workers failed, and a
// digest of all logs.
#include <sys/personality.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <kiln/session.hpp>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/visible_text.hpp"
#include "bench/support/bare_nvrtc.hpp"
#include "bench/support/child_report.hpp"
#include "bench/support/cub_units.hpp"
#include "bench/support/deny_personality.hpp"
#include "bench/support/harness.hpp"
#include "bench/support/kernels.hpp"

namespace kiln::bench {
namespace {

// The setting takes effect at exec, so this process executes itself again.
bool leave_randomisation(char** argv) {
  const int now = personality(0xffffffff);
  if (now != -1 && (now & ADDR_NO_RANDOMIZE) != 0) return true;
  if (now == -1 || personality(static_cast<unsigned>(now) | ADDR_NO_RANDOMIZE) == -1) return false;
  execv("/proc/self/exe", argv);
  return false;
}

bool arrange(std::string_view how, char** argv) {
  if (setpriority(PRIO_PROCESS, 0, kNiceness) != 0) return false;
  if (how == "no-personality") return deny_personality();
  if (how == "no-aslr") return leave_randomisation(argv);
  return how == "plain";
}

struct Done {
  Status status;
  std::vector<std::string> cubins;
  std::map<std::string, std::string> logs;  // by the unit's name
  int kept = 0;
  int wanting = 0;
};

template <class Compile>
Done on_threads(const std::vector<Unit>& units, const Compile& compile) {
  std::vector<Result<std::string>> results(units.size(), std::string());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < units.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = compile(units[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  Done done;
  for (Result<std::string>& result : results) {
    if (!result) return {std::move(result).error(), {}};
    done.cubins.push_back(std::move(*result));
  }
  return done;
}

Done by_kiln(const std::vector<Unit>& units, const char* cache, const char* pch) {
  std::atomic<int> kept = 0;
  std::atomic<int> wanting = 0;
  SessionOptions options;
  options.settings = {{"cache.dir", cache}};
  if (std::string_view(pch) != "default") options.settings["pch.mode"] = pch;
  for (const auto& [name, value] : options.settings) options.locked.insert(name);
  options.on_event = [&](const Event& event) {
    using enum Event::Kind;
    if (event.kind == ConfigWarning) print_warning(event.message);
    kept += event.kind == PchCreated;
    if (event.kind != PchDropped && event.kind != PchUnavailable && event.kind != WorkerUnavailable &&
        event.kind != WorkerLost) {
      return;
    }
    ++wanting;
    std::fprintf(stderr, "%s: %s: %s\n", to_string(event.kind), event.unit.c_str(), event.message.c_str());
  };
  auto session = Session::open(options);
  if (!session) return {std::move(session).error(), {}};
  std::mutex mutex;
  std::map<std::string, std::string> logs;
  Done done = on_threads(units, [&](const Unit& unit) -> Result<std::string> {
    auto artifact = session->artifact(unit, Target{kArchitecture, Form::Cubin});
    if (!artifact) return std::move(artifact).error();
    const std::scoped_lock lock(mutex);
    logs[unit.name()] = artifact->metadata.log;
    return std::string(artifact->bytes.view());
  });
  done.logs = std::move(logs);
  done.kept = kept;
  done.wanting = wanting;
  return done;
}

Done in_turn(const std::vector<Unit>& units, const NvrtcLibrary& nvrtc) {
  Done done;
  for (const Unit& unit : units) {
    auto cubin = compile_with_bare_nvrtc(nvrtc, unit);
    if (!cubin) return {std::move(cubin).error(), {}};
    done.cubins.push_back(std::move(*cubin));
  }
  return done;
}

int report(const Done& done, std::int64_t start) {
  const std::int64_t end = now_ns();
  if (!done.status) return warn(done.status.error());
  Sha256 hash;
  std::size_t bytes = 0;
  for (const std::string& cubin : done.cubins) {
    hash.add(as_bytes(cubin));
    bytes += cubin.size();
  }
  Sha256 logs;
  for (const auto& [name, log] : done.logs) logs.add(as_bytes(name + ": " + log));
  std::printf("%lld %.16s %zu %d %d %.16s\n", static_cast<long long>(end - start), hash.finish().hex().c_str(), bytes,
              done.kept, done.wanting, logs.finish().hex().c_str());
  std::fflush(stdout);
  return 0;
}

int run(int argc, char** argv) {
  if (argc < 6 || !arrange(argv[1], argv)) return 2;
  const std::int64_t start = std::strtoll(argv[2], nullptr, 10);
  const std::string_view who = argv[3];
  if (who == "kiln") return report(by_kiln(cub_units({argv + 6, argv + argc}), argv[4], argv[5]), start);
  const auto nvrtc = NvrtcLibrary::open(argv[4]);
  if (!nvrtc) return report({nvrtc.error(), {}}, start);
  const auto bare = [&](const Unit& unit) { return compile_with_bare_nvrtc(**nvrtc, unit); };
  std::vector<Unit> units = cub_units({argv + 5, argv + argc});
  if (who == "serial") return report(in_turn(units, **nvrtc), start);
  if (who == "threads") return report(on_threads(units, bare), start);
  if (who != "repeat") return 2;
  units.resize(1, units.front());
  while (std::getchar() != EOF) {
    if (const int failed = report(in_turn(units, **nvrtc), now_ns()); failed != 0) return failed;
  }
  return 0;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) { return kiln::bench::run(argc, argv); }
