// SPDX-License-Identifier: Apache-2.0
// One process of the soak test: a sequence of sessions, each with a few dozen gets. The expected bytes of a unit follow
// from its number, so every wrong result is detected.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/clock.hpp"
#include "base/hash.hpp"
#include "fault/soak.hpp"
#include "support/fakes/copying_compiler.hpp"
#include "support/fixtures/bundles.hpp"
#include "support/fixtures/files.hpp"
#include "support/processes/processes.hpp"

namespace kiln::test {
namespace {

Unit unit_number(const SoakPlace& place, int number, const std::string& kind = "u") {
  const std::string program = kind == "u" ? place.compiler() : place.root + "/no-such-compiler";
  return CopyingCompiler{program, place.headers()}.unit(kind + std::to_string(number) + ".cu",
                                                        500 + static_cast<std::size_t>(number) * 331);
}

Unit cuda_unit(int number) {
  return Unit::cuda("c" + std::to_string(number) + ".cu",
                    "extern \"C\" __global__ void k(int* p) { *p = " + std::to_string(number) + "; }\n")
      .with_entry("k");
}

void warn(SoakCounts& counts, const std::string& what) {
  if (counts.complained.exchange(true)) return;
  std::snprintf(counts.warning, sizeof counts.warning, "%s", what.c_str());
}

void count_event(SoakCounts& counts, const Event& event) {
  using Kind = Event::Kind;
  switch (event.kind) {
    case Kind::Hit: ++(event.origin == "bundle" ? counts.bundle : counts.disk); break;
    case Kind::Compiled: ++counts.compiled; break;
    case Kind::ClaimWaited: ++counts.waited; break;
    case Kind::EntryDropped: ++counts.dropped; break;
    case Kind::Evicted: ++counts.evicted; break;
    case Kind::CompileFailed:
    case Kind::NotPublished:
    case Kind::CacheUnavailable:
    case Kind::ClaimUnavailable:
    case Kind::WorkerUnavailable:
    case Kind::WorkerLost:
    case Kind::Quarantined:
    case Kind::ConfigWarning:
    case Kind::BundleRejected:
    case Kind::BundleIncompatible:
      ++counts.unexpected;
      warn(counts, std::string(to_string(event.kind)) + " " + event.unit + ": " + event.message);
      break;
    default: break;
  }
}

// Independent of the variables and files of this machine.
SessionOptions options_of(const SoakPlace& place, SoakCounts& counts) {
  SessionOptions options;
  options.settings = {{"cache.dir", place.cache()},
                      {"cache.max_size", std::to_string(kSoakBound)},
                      {"bundles", place.bundle()},
                      {"trust.unsigned", "true"},
                      {"jobs", "2"},
                      {"disable", "false"}};
  for (const auto& [name, value] : options.settings) options.locked.insert(name);
  options.on_event = [&counts](const Event& event) { count_event(counts, event); };
  return options;
}

bool right(const SoakCounts& counts, const Artifact& artifact, const Unit& unit, int number) {
  if (unit.kind() == "command") return artifact.bytes.view() == unit.source();
  return sha256(artifact.bytes.view()) == counts.cuda[number];
}

void get(Session& session, SoakCounts& counts, const Unit& unit, int number) {
  const auto start = system_clock().steady();
  const auto artifact = session.artifact(unit, unit.kind() == "cuda" ? Target::sm(80) : CopyingCompiler::target());
  const auto ms = static_cast<std::uint64_t>(milliseconds_since(system_clock(), start));
  for (std::uint64_t seen = counts.slowest_ms; ms > seen && !counts.slowest_ms.compare_exchange_weak(seen, ms);) {
  }
  ++counts.gets;
  if (!artifact) {
    ++counts.errors;
    warn(counts, "error for " + unit.name() + ": " + artifact.error().message + artifact.error().log);
  } else if (!right(counts, *artifact, unit, number)) {
    ++counts.wrong;
    warn(counts, "WRONG BYTES for " + unit.name());
  }
}

void note_what_is_open(SoakCounts::Slot& slot) {
  const auto count_in = [](const char* directory) {
    std::error_code ignored;
    const auto entries = std::filesystem::directory_iterator(directory, ignored);
    return static_cast<std::uint64_t>(std::distance(begin(entries), end(entries)));
  };
  slot.descriptors = count_in("/proc/self/fd");
  slot.threads = count_in("/proc/self/task");
  const std::string sizes = read_text("/proc/self/statm");
  const std::size_t second = sizes.find(' ');
  slot.resident_kb = std::strtoull(sizes.c_str() + (second == std::string::npos ? 0 : second), nullptr, 10) *
                     static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
  ++slot.sessions;
}

void write_bundle(const SoakPlace& place) {
  std::vector<BundleMember> members;
  for (int number = 0; number < kSoakBundled; ++number) {
    const Unit unit = unit_number(place, number, "b");
    BundleMember member = member_of(unit.name(), CopyingCompiler::target());
    member.kind = unit.kind();
    member.unit = unit.key();
    member.artifact.bytes = Bytes::of(unit.source());
    member.artifact.entries = {{"one", "one"}};
    members.push_back(std::move(member));
  }
  write_text(place.bundle(), image_of(members).to_file());
}

}  // namespace

bool prepare_soak(const SoakPlace& place, SoakCounts& counts, bool cuda) {
  for (const std::string& directory : {place.temporary(), place.runtime()}) {
    if (mkdir(directory.c_str(), 0700) != 0) return false;
  }
  if (!CopyingCompiler{place.compiler(), place.headers()}.install()) return false;
  write_bundle(place);
  SessionOptions options = options_of(place, counts);
  options.settings["disable"] = "true";
  options.on_event = {};
  auto session = Session::open(options);
  for (int number = 0; cuda && number < kSoakCudaUnits; ++number) {
    const auto artifact = session->artifact(cuda_unit(number), Target::sm(80));
    if (!artifact) {
      std::printf("NVRTC does not compile: %s\n", artifact.error().message.c_str());
      return false;
    }
    counts.cuda[number] = sha256(artifact->bytes.view());
  }
  return true;
}

void soak(const SoakPlace& place, SoakCounts& counts, int slot, unsigned seed, bool cuda) {
  std::mt19937 random(seed);
  while (!counts.stop) {
    {
      auto session = Session::open(options_of(place, counts));
      if (!session) {
        ++counts.errors;
        warn(counts, session.error().message);
        return;
      }
      for (int i = 0; i < 40 && !counts.stop; ++i) {
        const auto draw = static_cast<int>(random() % 1'000'000);
        if (cuda && slot % 10 == 0 && draw % 4 == 1) {
          get(*session, counts, cuda_unit(draw % kSoakCudaUnits), draw % kSoakCudaUnits);
        } else if (draw % 10 == 0) {
          get(*session, counts, unit_number(place, draw % kSoakBundled, "b"), 0);
        } else {
          get(*session, counts, unit_number(place, draw % kSoakUnits), 0);
        }
        ++counts.slots[slot].gets;
        usleep(static_cast<useconds_t>(random() % 40'000));  // simulates other work of the program
      }
    }
    ++counts.sessions;
    note_what_is_open(counts.slots[slot]);
  }
}

bool soak_once(const SoakPlace& place, SoakCounts& counts) {
  auto session = Session::open(options_of(place, counts));
  if (!session) return false;
  get(*session, counts, unit_number(place, kSoakUnits), 0);
  return true;
}

}  // namespace kiln::test
