#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <kiln/kiln.hpp>

namespace kiln::test {

constexpr int kSoakProcesses = 16;
constexpr int kSoakSurvivors = 4;   // the first of them are never killed, so that what grows has the whole time to
constexpr int kSoakUnits = 300;     // compiled by a few lines of shell
constexpr int kSoakBundled = 20;    // in the bundle, and nowhere else: their compiler does not exist
constexpr int kSoakCudaUnits = 20;  // compiled by NVRTC
constexpr std::uint64_t kSoakBound = 6'000'000;  // of some 17 MB that all units take
constexpr std::uint64_t kSoakLargestEntry = 120'000;

/// What all processes count together, and the first thing that went wrong, in words.
struct SoakCounts {
  std::atomic<std::uint64_t> gets, bundle, disk, compiled, waited, dropped, evicted, sessions;
  std::atomic<std::uint64_t> wrong, errors, unexpected, slowest_ms;
  std::atomic<bool> stop, complained;
  char complaint[600];
  /// Of what bare NVRTC makes of each CUDA unit.
  Digest cuda[kSoakCudaUnits];
  /// What a process has open while it has no session, and how often it got something: hangs and leaks show here.
  struct Slot {
    std::atomic<std::uint64_t> gets, sessions, descriptors, threads, resident_kb;
  } slots[kSoakProcesses];
};

/// The folders of a soak, all below one.
struct SoakPlace {
  std::string root;
  std::string cache() const { return root + "/cache"; }
  std::string bundle() const { return root + "/app.kiln"; }
  std::string temporary() const { return root + "/tmp"; }
  std::string runtime() const { return root + "/run"; }
  std::string headers() const { return root + "/include"; }
  std::string compiler() const { return root + "/compiler"; }
};

/// Makes the folders, the compiler, the headers and the bundle, and has bare NVRTC say what is right where `cuda`.
bool prepare_soak(const SoakPlace& place, SoakCounts& counts, bool cuda);
/// One process's part, until it is told to stop. Every tenth process asks for CUDA units too.
void soak(const SoakPlace& place, SoakCounts& counts, int slot, unsigned seed, bool cuda);
/// One get, which compiles, as any next program would do it: it sweeps up what killed ones left. False: it failed.
bool soak_once(const SoakPlace& place, SoakCounts& counts);

}  // namespace kiln::test
