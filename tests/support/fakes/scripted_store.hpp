// SPDX-License-Identifier: Apache-2.0
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
  using Step = std::function<Status(const RequestContext& context)>;
  Step lookup = [](const RequestContext&) { return Status(); };
  Step write = [](const RequestContext&) { return Status(); };
  bool may_write = true;
  std::atomic<int> lookups{0};
  std::atomic<int> writes{0};

  Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& context) override {
    ++lookups;
    if (Status reported = lookup(context); !reported) return std::move(reported).error();
    return inner_.get(key, context);
  }
  Status put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) override {
    ++writes;
    if (Status reported = write(context); !reported) return reported;
    return inner_.put(key, artifact, context);
  }
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                     const RequestContext& context) override {
    ++lookups;
    if (Status reported = lookup(context); !reported) return std::move(reported).error();
    return inner_.dependency_sets(request, limit, context);
  }
  Status add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                            const RequestContext& context) override {
    ++writes;
    if (Status reported = write(context); !reported) return reported;
    return inner_.add_dependency_set(request, dependency_set, context);
  }
  bool is_writable() override { return may_write; }
  std::string describe() const override { return "a scripted store"; }

 private:
  MemoryStore inner_;
};

}  // namespace kiln::test
