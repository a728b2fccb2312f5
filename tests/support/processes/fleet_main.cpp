// SPDX-License-Identifier: Apache-2.0
// A program of a fleet host. It gets some CUDA units like a program that uses kiln, and reports the results in lines of
// `name=value` words, for tests that start hundreds of these processes. Everything else comes from KILN_* variables.
//   fleet_main UNITS KIND [since=NANOSECONDS] [turn=N] [root=FOLDER] [sentinel=FILE] [stay] [idle] [list]
// KIND: small (no header), header (one, from `root`), cub (about 700 of the toolkit), sealed_cub, mixed (small and
// header alternate). since: the monotonic time from which times count; turn: the first unit; stay: waits until its
// standard input ends after all units are ready; idle: opens a session, requests nothing and stays; list: prints a line
// per unit.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <kiln/kiln.hpp>

#include "base/hash.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/toolkit.hpp"

namespace {

struct Arguments {
  unsigned units = 0;
  std::string kind;
  std::int64_t since = 0;
  unsigned turn = 0;
  std::string root;
  std::string sentinel;
  bool stay = false;
  bool idle = false;
  bool list = false;
};

std::int64_t monotonic_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::optional<Arguments> parse(int count, char** texts) {
  if (count < 3) return std::nullopt;
  Arguments arguments;
  arguments.units = static_cast<unsigned>(std::atoi(texts[1]));
  arguments.kind = texts[2];
  arguments.since = monotonic_now();
  for (int i = 3; i < count; ++i) {
    const std::string text = texts[i];
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::string value = equals == std::string::npos ? std::string() : text.substr(equals + 1);
    if (name == "since") {
      arguments.since = std::atoll(value.c_str());
    } else if (name == "turn") {
      arguments.turn = static_cast<unsigned>(std::atoi(value.c_str()));
    } else if (name == "root") {
      arguments.root = value;
    } else if (name == "sentinel") {
      arguments.sentinel = value;
    } else if (name == "stay") {
      arguments.stay = true;
    } else if (name == "idle") {
      arguments.idle = true;
    } else if (name == "list") {
      arguments.list = true;
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

kiln::Unit unit_of(const Arguments& arguments, unsigned number) {
  const std::string n = std::to_string(number);
  const std::string name = arguments.kind + n + ".cu";
  if (arguments.kind == "cub" || arguments.kind == "sealed_cub") {
    const std::string source =
        "#include <cub/block/block_reduce.cuh>\n"
        "#include <cub/block/block_scan.cuh>\n"
        "extern \"C\" __global__ void k(const int* in, int* out) {\n"
        "  using Reduce = cub::BlockReduce<int, 128>;\n"
        "  __shared__ typename Reduce::TempStorage storage;\n"
        "  const int total = Reduce(storage).Sum(in[threadIdx.x] * " +
        n + ");\n  if (threadIdx.x == 0) *out = total;\n}\n";
    kiln::Unit unit = kiln::Unit::cuda(name, source).with_options(kiln::test::cub_options());
    // With sentinels, as in an image that does not change: a hit then checks two files instead of seven hundred.
    const std::vector<std::string> roots = kiln::test::cub_roots();
    const bool sealed = arguments.kind == "sealed_cub";
    unit = unit.with_include_root(roots[0], sealed ? "cub/version.cuh" : "");
    unit = unit.with_include_root(roots[1], sealed ? "cuda.h" : "");
    return unit.with_entry("k");
  }
  const bool header = arguments.kind == "header" || (arguments.kind == "mixed" && number % 2 == 1);
  const std::string begin = header ? "#include <fleet.h>\n" : "";
  kiln::Unit unit = kiln::Unit::cuda(
      name, begin + "extern \"C\" __global__ void k(int* p) { *p = " + n + (header ? " + kFleet" : "") + "; }\n");
  if (header) unit = unit.with_include_root(arguments.root, arguments.sentinel);
  return unit.with_entry("k");
}

// Counts of events by kind, and of hits by origin.
class Counts {
 public:
  void count(const kiln::Event& event) {
    std::string name = to_string(event.kind);
    if (event.kind == kiln::Event::Kind::Hit) name += "_" + event.origin;
    if (event.kind == kiln::Event::Kind::LeaseWaited) name += "_" + event.selected;
    const std::lock_guard lock(mutex_);
    ++counts_[name];
    // Prints events that a healthy fleet does not emit.
    if (event.kind == kiln::Event::Kind::RemoteUnavailable || event.kind == kiln::Event::Kind::RemoteRejected ||
        event.kind == kiln::Event::Kind::UploadDropped || event.kind == kiln::Event::Kind::CacheUnavailable ||
        event.kind == kiln::Event::Kind::ClaimUnavailable || event.kind == kiln::Event::Kind::ConfigWarning) {
      std::printf("event %s %s %s\n", to_string(event.kind), event.selected.c_str(), event.message.c_str());
    }
  }
  std::string words() {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const auto& [name, count] : counts_) text += " " + name + "=" + std::to_string(count);
    return text;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, unsigned> counts_;
};

double cpu_ms(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

// Returns a line of /proc/self/status, for example "VmRSS:" or "Threads:".
std::string status_of(const std::string& name) {
  const std::string status = kiln::test::read_text("/proc/self/status");
  const std::size_t at = status.find("\n" + name);
  return at == std::string::npos ? "0" : std::to_string(std::atoll(status.c_str() + at + 1 + name.size()));
}

std::string state_words() { return " rss_kb=" + status_of("VmRSS:") + " threads=" + status_of("Threads:"); }

void wait_for_end_of_input() {
  char byte = 0;
  while (read(0, &byte, 1) > 0) {
  }
}

// Returns the digest of all artifacts in the order of the units, or nothing if one failed.
std::optional<std::string> warm(kiln::Session& session, const Arguments& arguments) {
  kiln::Units units;
  for (unsigned i = 0; i < arguments.units; ++i) {
    units.push_back(unit_of(arguments, (i + arguments.turn) % arguments.units));
  }
  session.request(units, kiln::Target::sm(90));
  std::vector<std::string> digests(arguments.units);
  for (unsigned i = 0; i < arguments.units; ++i) {
    const std::int64_t start = monotonic_now();
    const auto artifact = session.artifact(units[i], kiln::Target::sm(90));
    if (!artifact) {
      std::printf("error %s\n", artifact.error().message.c_str());
      return std::nullopt;
    }
    if (arguments.list) {
      std::printf("unit %u ms=%.1f\n", i, static_cast<double>(monotonic_now() - start) / 1e6);
    }
    digests[(i + arguments.turn) % arguments.units] = kiln::sha256(artifact->bytes.view()).hex();
  }
  std::string all;
  for (const std::string& digest : digests) all += digest;
  return kiln::sha256(all).hex();
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::optional<Arguments> arguments = parse(argc, argv);
  if (!arguments) return 2;
  const auto ms = [&] { return static_cast<double>(monotonic_now() - arguments->since) / 1e6; };
  std::printf("start ms=%.1f\n", ms());
  Counts counts;
  {
    kiln::SessionOptions options;
    options.on_event = [&](const kiln::Event& event) { counts.count(event); };
    auto session = kiln::Session::open(options);
    if (!session) {
      std::printf("error %s\n", session.error().message.c_str());
      return 1;
    }
    std::string digest = "none";
    if (!arguments->idle) {
      const auto all = warm(*session, *arguments);
      if (!all) return 1;
      digest = *all;
    }
    std::printf("warm ms=%.1f digest=%s%s%s\n", ms(), digest.c_str(), state_words().c_str(), counts.words().c_str());
    if (arguments->stay || arguments->idle) {
      wait_for_end_of_input();
      std::printf("stayed%s\n", state_words().c_str());
    }
  }
  std::printf("end ms=%.1f cpu_ms=%.1f workers_cpu_ms=%.1f%s\n", ms(), cpu_ms(RUSAGE_SELF), cpu_ms(RUSAGE_CHILDREN),
              counts.words().c_str());
  return 0;
}
