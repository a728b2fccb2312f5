#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/memory_store.hpp"

namespace kiln::test {

/// A store in memory that does first, in each call, what a test wants: fail, wait, count. Set the script before other
/// threads call.
class ScriptedStore final : public Store {
 public:
  /// Called before each lookup and each put; an error is what the call answers.
  std::function<Status()> lookup = [] { return Status(); };
  std::function<Status()> write = [] { return Status(); };
  bool may_write = true;
  std::atomic<int> lookups{0};
  std::atomic<int> writes{0};

  Result<std::optional<Hit>> get(const Key& key) override {
    ++lookups;
    if (Status told = lookup(); !told) return std::move(told).error();
    return inner_.get(key);
  }
  Status put(const Key& key, const Artifact& artifact) override {
    ++writes;
    if (Status told = write(); !told) return told;
    return inner_.put(key, artifact);
  }
  Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit) override {
    ++lookups;
    if (Status told = lookup(); !told) return std::move(told).error();
    return inner_.closures(request, limit);
  }
  Status add_closure(const RequestKey& request, const Closure& closure) override {
    ++writes;
    if (Status told = write(); !told) return told;
    return inner_.add_closure(request, closure);
  }
  bool writable() override { return may_write; }
  std::string describe() const override { return "a scripted store"; }

 private:
  MemoryStore inner_;
};

}  // namespace kiln::test
