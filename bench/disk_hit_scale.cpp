// SPDX-License-Identifier: Apache-2.0
// Whether a hit becomes slower as the store fills.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/scratch.hpp"
#include "cache/cache_directory.hpp"
#include "cache/disk_store.hpp"
#include "cache/entry_format.hpp"

namespace kiln::bench {
namespace {

constexpr std::size_t kFew = 100;
constexpr std::size_t kMany = 100'000;
constexpr std::size_t kPayload = 2048;  // fits into one file system block with its header

ArtifactKey key_of_number(std::size_t number) { return ArtifactKey{sha256(std::to_string(number))}; }

// A store that is filled by writing files: a put also accounts, renames and may collect garbage, which is not measured.
class Filled {
 public:
  Filled(std::string root, std::size_t count) : root_(std::move(root)), count_(count) {}

  Status fill() {
    auto store = DiskStore::open({.root = root_, .max_bytes = 0});
    if (!store) return std::move(store).error();
    store_ = std::move(*store);
    Artifact artifact;
    artifact.bytes = Bytes::of(std::string(kPayload, 'k'));
    artifact.target = Target::sm(80);
    artifact.entries = {{"kernel", "kernel"}};
    if (Status put = store_->put(key_of_number(0), artifact, {}); !put) return put;
    const Fd directory(open((root_ + "/v1").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (mkdirat(directory.get(), "entries", 0755) != 0 && errno != EEXIST)
      return io_error("cannot create", root_, errno);
    for (std::size_t i = 1; i < count_; ++i) {
      const ArtifactKey key = key_of_number(i);
      const std::string name = ShardedName("entries", key.digest).str();
      (void)mkdirat(directory.get(), name.substr(0, name.rfind('/')).c_str(), 0755);
      const Fd file(openat(directory.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
      if (!file) return io_error("cannot create", name, errno);
      const std::string content = encode_entry_header(key, artifact) + std::string(artifact.bytes.view());
      if (Status written = write_all(file.get(), content, name); !written) return written;
    }
    return {};
  }

  /// Measures hits of kFew entries that are spread over the store. Both stores use the same number: reading all hundred
  /// thousand entries would measure the memory caches of the machine.
  Result<double> hits() {
    bool good = true;
    std::size_t number = 0;
    const double time = microseconds_each(kFew, [&] {
      const auto hit = store_->get(keys_[number], {});
      good = good && hit && *hit && (*hit)->artifact.bytes.size() == kPayload;
      number = (number + 37) % kFew;
    });
    if (!good) return make_error(Code::Internal, "an entry of " + root_ + " was not served");
    return time;
  }

  void choose() {
    for (std::size_t i = 0; i < kFew; ++i) keys_.push_back(key_of_number(i * (count_ / kFew)));
  }

 private:
  const std::string root_;
  const std::size_t count_;
  std::unique_ptr<DiskStore> store_;
  std::vector<ArtifactKey> keys_;
};

}  // namespace

Result<Outcomes> disk_hit_scale() {
  const Scratch scratch;
  Filled few(scratch / "few", kFew);
  Filled many(scratch / "many", kMany);
  for (Filled* store : {&few, &many}) {
    if (Status filled = store->fill(); !filled) return std::move(filled).error();
    store->choose();
  }
  Plan plan;
  plan.name = "disk_hit_scale";
  plan.limit = 1.3;
  plan.min_rounds = 200;
  plan.max_rounds = 5000;
  plan.ours = [&] { return many.hits(); };
  plan.theirs = [&] { return few.hits(); };
  auto outcome = compare(plan);
  if (!outcome) return std::move(outcome).error();
  return Outcomes{std::move(*outcome)};
}

}  // namespace kiln::bench
