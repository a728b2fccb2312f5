#pragma once

#include <cstdint>
#include <memory>

#include "base/mutex.hpp"
#include "store/lru_map.hpp"
#include "store/store.hpp"

namespace kiln {

/// Keeps artifacts in this process, at most `bound` bytes of them; what was used longest ago goes first. Closures have
/// an eighth of the bound to themselves, so that neither can push the other out. Any thread.
class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::uint64_t bound);

  Result<std::optional<Hit>> get(const Key& key) override;
  Status put(const Key& key, const Artifact& artifact) override;
  Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit = kMostClosures) override;
  Status add_closure(const RequestKey& request, const Closure& closure) override;
  std::string describe() const override { return "memory"; }

  /// What the artifacts take, for statistics.
  std::uint64_t bytes() const;

 private:
  struct Hints {
    std::vector<Closure> closures;  // newest first
    std::vector<std::uint64_t> weights;
  };

  mutable Mutex mutex_;
  LruMap<Key, Artifact> artifacts_ KILN_GUARDED_BY(mutex_);
  LruMap<RequestKey, Hints> hints_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
