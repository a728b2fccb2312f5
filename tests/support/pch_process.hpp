#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "compile/cccl_compiler.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "compile/worker_compiler.hpp"
#include "support/event_log.hpp"
#include "support/files.hpp"
#include "support/recipes.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {

/// One for all tests of a program: digesting libnvrtc takes a while.
inline FileDigests& shared_digests() {
  static FileDigests digests{std::string()};
  return digests;
}

/// What a process compiles with: workers of its own, and the shelf of precompiled headers that it shares with others on
/// the same folder. Nothing is cached, so every compile is one.
class PchProcess {
 public:
  struct Options {
    std::string folder;  ///< the shelf is in it
    std::string working_directory;
    std::string nvrtc = toolkit_nvrtc();
    std::string cccl = {};    ///< where cuda-cccl is, of a process that compiles algorithms instead of CUDA units
    std::string worker = {};  ///< empty: kiln-worker
    bool headers = true;      ///< whether there are precompiled ones at all
    std::uint64_t size_bound = std::uint64_t{8} << 30;
  };
  explicit PchProcess(Options options)
      : options_(std::move(options)), pool_({options_.worker, 1U, std::uint64_t{4} << 30, std::chrono::seconds(60),
                                             std::chrono::seconds(60), own_slots()}),
        headers_([this] { return shelf_options(); }, shared_digests(), events.observer()) {
    WorkerCompiler::Options workers;
    workers.pool = &pool_;
    workers.headers = &headers_;
    workers.everything = true;
    compiler_ = std::make_unique<WorkerCompiler>(plain_compiler(), shared_digests(), workers, events.observer());
  }

  Recipe recipe(const Unit& unit, const Target& target = Target::sm(80)) {
    Recipe recipe = recipe_for(*compiler_, unit, fitted(unit, target));
    recipe.working_directory = options_.working_directory;
    return recipe;
  }
  Result<Compiled> compile(const Unit& unit, const Target& target = Target::sm(80)) {
    return compiler_->compile(recipe(unit, target));
  }
  /// The key under which the headers of a unit are on the shelf; nothing where it has none to share.
  std::optional<Digest> key_of(const Unit& unit, const Target& target = Target::sm(80)) {
    return headers_.headers_of(recipe(unit, target));
  }
  /// As if some other process had asked before: the next compile makes them.
  void expect_company(const Unit& unit, const Target& target = Target::sm(80)) {
    if (const auto key = key_of(unit, target)) (void)shelf().asked_before(*key);
  }
  PrecompiledHeaders& headers() { return headers_; }
  WorkerPool& pool() { return pool_; }
  PchShelf shelf() const { return PchShelf(*shelf_options()); }
  std::string shelf_folder() const { return options_.folder + "/pch"; }
  std::string file_of(const Digest& key, const char* suffix = ".pch") const {
    return shelf_folder() + "/" + key.hex() + suffix;
  }

  std::size_t kept() const { return events.count(Event::Kind::HeadersKept); }
  std::size_t used() const { return events.count(Event::Kind::HeadersUsed); }
  std::size_t dropped() const { return events.count(Event::Kind::HeadersDropped); }
  /// What the last one was dropped for.
  std::string why_dropped() const {
    const auto all = events.of(Event::Kind::HeadersDropped);
    return all.empty() ? std::string() : all.back().message;
  }

  EventLog events;

 private:
  std::unique_ptr<Compiler> plain_compiler() const {
    if (options_.cccl.empty()) return std::make_unique<NvrtcCompiler>(options_.nvrtc, shared_digests());
    return std::make_unique<CcclCompiler>(options_.cccl, options_.nvrtc, shared_digests());
  }
  std::optional<PchShelf::Options> shelf_options() const {
    if (!options_.headers) return std::nullopt;
    return PchShelf::Options{options_.folder + "/pch", options_.size_bound, {}};
  }

  // So that none waits for another's workers.
  std::string own_slots() const {
    static int made = 0;
    std::string path = options_.folder + "/slots-" + std::to_string(++made);
    std::filesystem::create_directories(path);
    return path;
  }

  const Options options_;
  WorkerPool pool_;
  PrecompiledHeaders headers_;
  std::unique_ptr<WorkerCompiler> compiler_;
};

/// All that a user sees of a compile but how long it took; equal ones are equal as texts.
struct Seen {
  bool ok = false;
  std::string bytes;
  std::string entries;
  std::string closure;
  std::string log;
  std::string not_cacheable;

  explicit Seen(const Result<Compiled>& compiled) : ok(compiled.ok()) {
    if (!ok) {
      log = compiled.error().message + "\n" + compiled.error().log;
      return;
    }
    bytes = compiled->artifact.bytes.view();
    for (const Entry& entry : compiled->artifact.entries) entries += entry.name + "=" + entry.symbol + "\n";
    closure = compiled->artifact.closure->encode();
    log = compiled->artifact.about.log;
    not_cacheable = compiled->not_cacheable;
  }
};

/// That two compiles gave the same. In a process where nobody sees what is read there is no closure to compare.
enum class Closures { Compared, NotSeen };
inline void expect_same(const Seen& one, const Seen& other, const std::string& what,
                        Closures closures = Closures::Compared) {
  EXPECT_EQ(one.ok, other.ok) << what << "\n" << one.log << "\n" << other.log;
  EXPECT_TRUE(one.bytes == other.bytes) << what << ": other bytes";
  EXPECT_EQ(one.entries, other.entries) << what;
  EXPECT_EQ(one.log, other.log) << what;
  if (closures == Closures::NotSeen) return;
  EXPECT_TRUE(one.closure == other.closure) << what << ": other closures";
  EXPECT_EQ(one.not_cacheable, other.not_cacheable) << what;
}

/// What NVRTC makes of a recipe in this process, with no precompiled header anywhere. It goes to the recipe's working
/// directory for as long as it takes.
inline Seen compile_here(const Recipe& recipe, const std::string& nvrtc = toolkit_nvrtc()) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(recipe.working_directory);
  NvrtcCompiler compiler(nvrtc, shared_digests());
  const Seen seen(compiler.compile(recipe));
  std::filesystem::current_path(before);
  return seen;
}

}  // namespace kiln::test
