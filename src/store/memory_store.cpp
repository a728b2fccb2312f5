#include "store/memory_store.hpp"

#include <algorithm>
#include <numeric>

namespace kiln {
namespace {

// What a value takes, roughly: strings with their heads, and the map's own nodes.
constexpr std::uint64_t kNode = 256;

std::uint64_t weight_of(const Artifact& artifact) {
  std::uint64_t bytes = kNode + artifact.bytes.size() + artifact.about.log.size() + artifact.about.unit.size() +
                        artifact.about.compiler.size() + artifact.target.architecture.size();
  for (const Entry& entry : artifact.entries) bytes += sizeof entry + entry.name.size() + entry.symbol.size();
  return bytes;
}

std::uint64_t weight_of(const Closure& closure) {
  std::uint64_t bytes = kNode + closure.working_directory.size();
  for (const Closure::Item& item : closure.items) bytes += sizeof item + item.name.size();
  for (const std::string& path : closure.root_paths) bytes += sizeof(std::string) + path.size();
  return bytes;
}

}  // namespace

MemoryStore::MemoryStore(std::uint64_t bound) : artifacts_(bound - bound / 8), hints_(bound / 8) {}

Result<std::optional<Hit>> MemoryStore::get(const Key& key) {
  const MutexLock lock(mutex_);
  const Artifact* artifact = artifacts_.find(key);
  if (artifact == nullptr) return std::optional<Hit>();
  return std::optional<Hit>(Hit{*artifact, Origin::Memory});
}

Status MemoryStore::put(const Key& key, const Artifact& artifact) {
  Artifact kept = artifact;
  kept.closure = nullptr;  // the key covers it, and a hit does not tell it
  const std::uint64_t weight = weight_of(kept);
  const MutexLock lock(mutex_);
  artifacts_.put(key, std::move(kept), weight);
  return {};
}

Result<std::vector<Closure>> MemoryStore::closures(const RequestKey& request, std::size_t limit) {
  const MutexLock lock(mutex_);
  const Hints* hints = hints_.find(request);
  if (hints == nullptr) return std::vector<Closure>();
  const auto count = static_cast<std::ptrdiff_t>(std::min(limit, hints->closures.size()));
  return std::vector<Closure>(hints->closures.begin(), hints->closures.begin() + count);
}

Status MemoryStore::add_closure(const RequestKey& request, const Closure& closure) {
  const std::uint64_t weight = weight_of(closure);
  const MutexLock lock(mutex_);
  Hints hints;
  if (Hints* found = hints_.find(request)) hints = std::move(*found);
  const auto same = std::find(hints.closures.begin(), hints.closures.end(), closure);
  if (same != hints.closures.end()) {
    hints.weights.erase(hints.weights.begin() + (same - hints.closures.begin()));
    hints.closures.erase(same);
  }
  hints.closures.insert(hints.closures.begin(), closure);
  hints.weights.insert(hints.weights.begin(), weight);
  if (hints.closures.size() > kMostClosures) {
    hints.closures.resize(kMostClosures);
    hints.weights.resize(kMostClosures);
  }
  const auto total = std::accumulate(hints.weights.begin(), hints.weights.end(), std::uint64_t{0});
  hints_.put(request, std::move(hints), total);
  return {};
}

std::uint64_t MemoryStore::bytes() const {
  const MutexLock lock(mutex_);
  return artifacts_.bytes();
}

}  // namespace kiln
