// SPDX-License-Identifier: Apache-2.0
// Gets the units that a kiln.toml lists, like a program that uses kiln, and prints the results, one line each:
//   workload KILN_TOML sm_80,sm_90    the artifacts of all units for these targets: bytes, and no driver
//   workload KILN_TOML load           every kernel of every unit, loaded on the device of this machine
// Everything else comes from KILN_* variables. It starts no compile that they do not allow.
#include <cstdio>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include <kiln/kiln.hpp>

#include "base/hash.hpp"
#include "session/config/manifest.hpp"

namespace {

struct Counts {
  int artifacts = 0;
  int kernels = 0;
  int errors = 0;
};

void say(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void emit(const kiln::Event& event) {
  say("event " + std::string(to_string(event.kind)) + " " + event.unit + " " + event.target + " [" + event.origin +
      "] " + event.message);
}

bool is_mapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(library) != std::string::npos) return true;
  }
  return false;
}

void get_artifacts(kiln::Session& session, const std::vector<kiln::Unit>& units,
                   const std::vector<kiln::Target>& targets, Counts& counts) {
  for (const kiln::Target& target : targets) {
    for (const kiln::Unit& unit : units) {
      const auto artifact = session.artifact(unit, target);
      const std::string what = unit.name() + " " + target.name();
      if (!artifact) {
        ++counts.errors;
        say("error " + what + " " + artifact.error().message);
        continue;
      }
      ++counts.artifacts;
      for (const kiln::EntryPoint& entry : artifact->entries) counts.kernels += entry.symbol.empty() ? 0 : 1;
      say("artifact " + what + " " + kiln::sha256(artifact->bytes.view()).hex() + " for " + artifact->target.name());
    }
  }
}

void load_kernels(kiln::Session& session, const std::vector<kiln::Unit>& units, Counts& counts) {
  if (const kiln::Status current = session.make_current(kiln::Backend::Cuda); !current) {
    say("error " + current.error().message);
    ++counts.errors;
    return;
  }
  for (const kiln::Unit& unit : units) {
    for (const std::string& entry : unit.entries()) {
      const auto kernel = session.get(unit, entry);
      if (!kernel) say("error " + unit.name() + " " + entry + " " + kernel.error().message);
      ++(kernel ? counts.kernels : counts.errors);
    }
    ++counts.artifacts;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto manifest = kiln::read_manifest(argv[1]);
  if (!manifest) {
    say("error " + manifest.error().message);
    return 2;
  }
  std::vector<kiln::Unit> units;
  for (const auto& member : manifest->members) units.push_back(kiln::read_unit(member.source).value());
  kiln::SessionOptions options;
  options.on_event = emit;
  auto session = kiln::Session::open(options);
  if (!session) return 3;
  Counts counts;
  if (const std::string what = argv[2]; what == "load") {
    load_kernels(*session, units, counts);
  } else {
    std::vector<kiln::Target> targets;
    std::istringstream names(what);
    for (std::string name; std::getline(names, name, ',');) targets.push_back(kiln::Target::parse(name).value());
    get_artifacts(*session, units, targets, counts);
  }
  say("done units " + std::to_string(units.size()) + " artifacts " + std::to_string(counts.artifacts) + " kernels " +
      std::to_string(counts.kernels) + " errors " + std::to_string(counts.errors) + " libnvrtc " +
      (is_mapped("libnvrtc") ? "opened" : "not-opened"));
  return counts.errors == 0 ? 0 : 1;
}
