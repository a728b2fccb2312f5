#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/fakes/memory_store.hpp"

namespace kiln::test {

/// A store in memory that first runs a function of the test in each call: to fail, wait or count. Set the functions
/// before other threads call.
class ScriptedStore final : public Store {
 public:
  /// Called before each lookup and each put. An error becomes the result of the call.
  std::function<Status()> lookup = [] { return Status(); };
  std::function<Status()> write = [] { return Status(); };
  bool may_write = true;
  std::atomic<int> lookups{0};
  std::atomic<int> writes{0};

  Result<std::optional<Hit>> get(const ArtifactKey& key) override {
    ++lookups;
    if (Status reported = lookup(); !reported) return std::move(reported).error();
    return inner_.get(key);
  }
  Status put(const ArtifactKey& key, const Artifact& artifact) override {
    ++writes;
    if (Status reported = write(); !reported) return reported;
    return inner_.put(key, artifact);
  }
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit) override {
    ++lookups;
    if (Status reported = lookup(); !reported) return std::move(reported).error();
    return inner_.dependency_sets(request, limit);
  }
  Status add_dependency_set(const RequestKey& request, const DependencySet& dependency_set) override {
    ++writes;
    if (Status reported = write(); !reported) return reported;
    return inner_.add_dependency_set(request, dependency_set);
  }
  bool is_writable() override { return may_write; }
  std::string describe() const override { return "a scripted store"; }

 private:
  MemoryStore inner_;
};

}  // namespace kiln::test
