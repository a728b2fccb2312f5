#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <kiln/unit.hpp>

#include "base/mutex.hpp"
#include "bundle/bundle.hpp"
#include "core/recipe.hpp"
#include "observe/observer.hpp"
#include "store/store.hpp"
#include "trust/policy.hpp"

namespace kiln {

/// The bundles of a process as one store: those that the configuration names, then those that are linked into the
/// program and its libraries. Each is opened at the first need; one that cannot be used is an event, once, and left
/// out. Any thread.
class Bundles final : public Store {
 public:
  Bundles(std::vector<std::string> paths, TrustPolicy policy, Observer observer);

  /// Whether there is any now. Opens those that are linked in, and no file.
  bool any();

  Result<std::optional<Hit>> get(const Key& key) override;
  Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit = kMostClosures) override;
  Status put(const Key& key, const Artifact& artifact) override;
  Status add_closure(const RequestKey& request, const Closure& closure) override;
  bool writable() override { return false; }
  std::string describe() const override;

  struct Found {
    Bundle::Pinned pinned;
    std::string bundle;  ///< for people
  };
  /// What the first bundle has that has something for the target. Where those that know the unit have nothing for it,
  /// an event says what they have.
  std::optional<Found> find(const Unit& unit, const Target& target, std::uint64_t flow, const Bytes* refused = nullptr);
  /// Where a bundle has what the recipe is for, by another compiler: an event that names both.
  void tell_of_other_compilers(const Recipe& recipe);

 private:
  using List = std::vector<std::shared_ptr<Bundle>>;
  /// Those that are open: all that there are, looked for again when a library was loaded.
  std::shared_ptr<const List> all();
  void open_files(List& list) KILN_REQUIRES(mutex_);
  void open_embedded(List& list) KILN_REQUIRES(mutex_);
  bool is_news(const std::string& what);
  void tell_of_damage(const Bundle& bundle, const Error& error);

  const std::vector<std::string> paths_;
  const TrustPolicy policy_;
  const Observer observer_;
  mutable Mutex mutex_;
  std::shared_ptr<const List> list_ KILN_GUARDED_BY(mutex_);      // null: not yet looked for
  std::uint64_t objects_ KILN_GUARDED_BY(mutex_) = 0;             // that were loaded then
  std::vector<const void*> embedded_ KILN_GUARDED_BY(mutex_);     // where those of them lie that are linked in
  std::unordered_set<std::string> told_ KILN_GUARDED_BY(mutex_);  // each thing once
};

}  // namespace kiln
