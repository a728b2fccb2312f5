// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/cccl/cccl_compiler.hpp"
#include "backends/cuda/nvrtc_compiler.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"
#include "worker/worker_compiler.hpp"

namespace kiln::test {

/// One instance for all tests of a program, because hashing libnvrtc takes a while.
inline FileDigestCache& shared_digests() {
  static FileDigestCache digests{std::string()};
  return digests;
}

/// The compilers of a process: its own workers, and the cache of precompiled headers that it shares with other
/// processes in the same directory. Artifacts are not cached, so every compile runs.
class PchProcess {
 public:
  struct Options {
    std::string directory;  ///< directory of the PCH cache
    std::string working_directory;
    std::string nvrtc = toolkit_nvrtc();
    std::string cccl = {};    ///< cuda-cccl directory, for a process that compiles algorithms instead of CUDA units
    std::string worker = {};  ///< empty means kiln-worker
    bool headers = true;      ///< whether precompiled headers are used
    std::uint64_t max_bytes = std::uint64_t{8} << 30;
  };
  static constexpr std::uint64_t kWorkerMemory = std::uint64_t{4} << 30;
  explicit PchProcess(Options options)
      : options_(std::move(options)),
        pool_({options_.worker, 1U, kWorkerMemory, std::chrono::seconds(60), std::chrono::seconds(60), own_slots()}),
        headers_([this] { return pch_cache_options(); }, shared_digests(), events.emitter(), kWorkerMemory),
        checks_([this] { return options_.directory + "/checks"; }, events.emitter()) {
    WorkerCompiler::Options workers;
    workers.pool = &pool_;
    workers.headers = &headers_;
    workers.checks = &checks_;
    compiler_ = std::make_unique<WorkerCompiler>(plain_compiler(), shared_digests(), workers, events.emitter());
  }

  Recipe recipe(const Unit& unit, const Target& target = Target::sm(80)) {
    Recipe recipe = recipe_for(*compiler_, unit, effective_target(unit, target));
    recipe.working_directory = options_.working_directory;
    return recipe;
  }
  Result<CompileResult> compile(const Unit& unit, const Target& target = Target::sm(80)) {
    return compiler_->compile(recipe(unit, target), {});
  }
  /// Returns the cache key of a unit's headers, or nothing if it has none to share.
  std::optional<Digest> key_of(const Unit& unit, const Target& target = Target::sm(80)) {
    return headers_.headers_of(recipe(unit, target));
  }
  /// Simulates an earlier request of another process: the next compile creates the headers.
  void expect_queued_similar(const Unit& unit, const Target& target = Target::sm(80)) {
    if (const auto key = key_of(unit, target)) (void)pch_cache().requested_before(*key);
  }
  PchManager& headers() { return headers_; }
  WorkerPool& pool() { return pool_; }
  PchCache pch_cache() const { return PchCache(*pch_cache_options()); }
  std::string pch_cache_directory() const { return options_.directory + "/pch"; }
  std::string file_of(const Digest& key, const char* suffix = ".pch") const {
    return pch_cache_directory() + "/" + key.hex() + suffix;
  }

  std::size_t kept() const { return events.count(Event::Kind::PchCreated); }
  std::size_t used() const { return events.count(Event::Kind::PchUsed); }
  std::size_t dropped() const { return events.count(Event::Kind::PchDropped); }
  /// Returns the reason why the last one was dropped.
  std::string dropped_reason() const {
    const auto all = events.of(Event::Kind::PchDropped);
    return all.empty() ? std::string() : all.back().message;
  }

  EventLog events;

 private:
  std::unique_ptr<Compiler> plain_compiler() const {
    if (options_.cccl.empty()) return std::make_unique<NvrtcCompiler>(options_.nvrtc, shared_digests());
    return std::make_unique<CcclCompiler>(options_.cccl, options_.nvrtc, shared_digests());
  }
  std::optional<PchCache::Options> pch_cache_options() const {
    if (!options_.headers) return std::nullopt;
    return PchCache::Options{options_.directory + "/pch", options_.max_bytes, {}};
  }

  // Separate slots, so that no process waits for another's workers.
  std::string own_slots() const {
    static int made = 0;
    std::string path = options_.directory + "/slots-" + std::to_string(++made);
    std::filesystem::create_directories(path);
    return path;
  }

  const Options options_;
  WorkerPool pool_;
  PchManager headers_;
  LibraryCheck checks_;
  std::unique_ptr<WorkerCompiler> compiler_;
};

/// Everything that a user sees of a compile except for its time, as text.
struct Seen {
  bool ok = false;
  std::string bytes;
  std::string entries;
  std::string dependency_set;
  std::string log;
  std::string not_cacheable;

  explicit Seen(const Result<CompileResult>& compiled) : ok(compiled.has_value()) {
    if (!ok) {
      log = compiled.error().message + "\n" + compiled.error().log;
      return;
    }
    bytes = compiled->artifact.bytes.view();
    for (const EntryPoint& entry : compiled->artifact.entries) entries += entry.name + "=" + entry.symbol + "\n";
    dependency_set = compiled->artifact.dependency_set->encode();
    log = compiled->artifact.metadata.log;
    not_cacheable = compiled->uncacheable_reason;
  }
};

/// Returns how two encoded dependency sets differ: the items that only one of them has, or that the order differs.
inline std::string difference_of(const std::string& one, const std::string& other) {
  const auto items_of = [](const std::string& encoded) {
    const auto decoded = DependencySet::decode(encoded);
    return decoded ? decoded->items : std::vector<DependencySet::Dependency>();
  };
  std::string text;
  const auto add_missing = [&](const auto& items, const auto& others, const char* sign) {
    for (const DependencySet::Dependency& item : items) {
      if (std::find(others.begin(), others.end(), item) != others.end()) continue;
      text += std::string(sign) + " root " + std::to_string(item.root) + ", state " +
              std::to_string(static_cast<int>(item.state)) + ": " + item.name + "\n";
    }
  };
  add_missing(items_of(one), items_of(other), "only first:");
  add_missing(items_of(other), items_of(one), "only second:");
  return text.empty() ? "the same items in another order, or other relations\n" : text;
}

/// Expects that two compiles gave the same result. A process that does not observe reads has no dependency set to
/// compare.
enum class DependencySets { Compared, NotSeen };
inline void expect_same(const Seen& one, const Seen& other, const std::string& what,
                        DependencySets dependency_sets = DependencySets::Compared) {
  EXPECT_EQ(one.ok, other.ok) << what << "\n" << one.log << "\n" << other.log;
  EXPECT_TRUE(one.bytes == other.bytes) << what << ": other bytes";
  EXPECT_EQ(one.entries, other.entries) << what;
  EXPECT_EQ(one.log, other.log) << what;
  if (dependency_sets == DependencySets::NotSeen) return;
  EXPECT_TRUE(one.dependency_set == other.dependency_set) << what << ": other dependency sets\n"
                                                          << difference_of(one.dependency_set, other.dependency_set);
  EXPECT_EQ(one.not_cacheable, other.not_cacheable) << what;
}

/// Returns the result of NVRTC for a recipe in this process, without precompiled headers. Changes to the recipe's
/// working directory during the compile.
inline Seen compile_here(const Recipe& recipe, const std::string& nvrtc = toolkit_nvrtc()) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(recipe.working_directory);
  NvrtcCompiler compiler(nvrtc, shared_digests());
  const Seen seen(compiler.compile(recipe, {}));
  std::filesystem::current_path(before);
  return seen;
}

}  // namespace kiln::test
