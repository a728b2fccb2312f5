#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kiln/result.hpp>

#include "base/file_digests.hpp"
#include "bundle/profile.hpp"
#include "claim/local_claims.hpp"
#include "compile/compiler.hpp"
#include "compile/precompiled_headers.hpp"
#include "compile/worker_pool.hpp"
#include "observe/observer.hpp"
#include "session/bundles.hpp"
#include "session/config.hpp"
#include "session/fleet.hpp"
#include "store/disk_store.hpp"
#include "store/history.hpp"
#include "store/tiered_store.hpp"
#include "warm/resolver.hpp"

namespace kiln {

/// Where the precompiled headers of this host are kept for a cache; nothing where there are to be none, and `why_not`
/// then says why.
std::optional<PchShelf::Options> pch_shelf_of(const Config& config, const std::string& cache_root,
                                              std::string* why_not = nullptr);

/// How a configuration has a cache folder opened.
DiskStore::Options disk_options_of(const Config& config, std::string root, bool read_only);

/// The parts of kiln, put together as a configuration says: what sessions and the command line work with. Any thread.
/// A part that cannot be had is left out and an event says why; nothing is opened or made before it is asked for.
class Toolbox {
 public:
  Toolbox(Config config, Observer observer, const Trust& trust = {});
  ~Toolbox();
  Toolbox(const Toolbox&) = delete;
  Toolbox& operator=(const Toolbox&) = delete;

  const Config& config() const { return config_; }
  /// The disk stores of the cache path, the writable one first; empty where caching is off or none can be used.
  const std::vector<std::shared_ptr<DiskStore>>& disks() const { return disks_; }
  /// Where what came from the remote store is kept; null where there is none.
  DiskStore* fetched() const { return fetched_.get(); }
  const Resolver::Parts& parts() const { return parts_; }
  Resolver& resolver() { return *resolver_; }

  /// What the bundles have for a unit and a target, by whichever compiler: nothing under `bundle.match = exact`, which
  /// asks for the key, as of any store. It needs no compiler on this machine. Of `refused` they are taken not to have
  /// it.
  std::optional<Answer> serve(const Unit& unit, const Target& target, std::uint64_t flow = 0,
                              const Bytes* refused = nullptr);
  /// Null where nothing is to be recorded.
  ProfileRecorder* recorder() { return recorder_.get(); }

  /// The compiler of a unit for a target. It belongs to the toolbox.
  Result<Compiler*> compiler(const Unit& unit, const Target& target);
  /// The recipe of a unit in this process, as of now: which compiler, which environment, which working directory.
  Result<Recipe> recipe(const Unit& unit, const Target& target);
  /// The artifact of a unit: what the tiers have, or what its compiler makes of it.
  /// `company` is how many of its kind the caller is going to ask for besides, for the same target.
  Result<Answer> get(const Unit& unit, const Target& target, std::size_t company = 0);
  /// Under `bundle.match = exact`: an event for each bundle that has a recipe's unit by another compiler.
  void tell_of_bundles(const Recipe& recipe);
  /// Ends the compiles that run in processes of their own: the program is ending.
  void interrupt();
  /// Waits until other hosts were sent all that was compiled up to now, at most this long; false: something is left.
  bool drain(std::chrono::nanoseconds limit);
  /// Sends other hosts what still waits to be sent, within its limit: nothing is compiled any more.
  void finish();

 private:
  void open_stores(const TrustPolicy& policy);
  std::shared_ptr<DiskStore> open_disk(const std::string& root, bool read_only);
  std::unique_ptr<Compiler> in_workers(std::unique_ptr<Compiler> inner, bool everything);
  std::unique_ptr<Compiler> make_linker() KILN_REQUIRES(mutex_);
  /// Null for a kind that nobody compiles. `which` tells compilers of one kind apart.
  Compiler* compiler_of(const std::string& kind, const std::string& which) KILN_REQUIRES(mutex_);

  Config config_;
  Observer observer_;
  std::unique_ptr<FileDigests> digests_;
  std::shared_ptr<Bundles> bundles_;  // null where caching is off
  std::unique_ptr<ProfileRecorder> recorder_;
  std::unique_ptr<Fleet> fleet_;  // null where no remote store is configured
  std::vector<std::shared_ptr<DiskStore>> disks_;
  std::shared_ptr<DiskStore> fetched_;
  std::unique_ptr<TieredStore> store_;
  std::unique_ptr<Claims> claims_;
  Resolver::Parts parts_;
  std::unique_ptr<Resolver> resolver_;
  std::unique_ptr<PrecompiledHeaders> headers_;
  std::unique_ptr<WorkerPool> workers_;  // null: everything is compiled in this process
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Compiler>> compilers_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
