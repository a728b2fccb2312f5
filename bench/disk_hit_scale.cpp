// Whether a hit becomes dearer as the store fills.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "bench/benchmarks.hpp"
#include "bench/scratch.hpp"
#include "store/cache_directory.hpp"
#include "store/disk_store.hpp"
#include "store/entry_format.hpp"

namespace kiln::bench {
namespace {

constexpr std::size_t kFew = 100;
constexpr std::size_t kMany = 100'000;
constexpr std::size_t kPayload = 2048;  // with its head within one block of the file system

Key key_of_number(std::size_t number) { return Key{sha256(std::to_string(number))}; }

// One store, filled by writing the files: a put accounts, renames and may collect, which is not measured here.
class Filled {
 public:
  Filled(std::string root, std::size_t count) : root_(std::move(root)), count_(count) {}

  Status fill() {
    auto store = DiskStore::open({.root = root_, .size_bound = 0});
    if (!store) return std::move(store).error();
    store_ = std::move(*store);
    Artifact artifact;
    artifact.bytes = Bytes::of(std::string(kPayload, 'k'));
    artifact.target = Target::sm(80);
    artifact.entries = {{"kernel", "kernel"}};
    if (Status put = store_->put(key_of_number(0), artifact); !put) return put;
    const Fd folder(open((root_ + "/v1").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (mkdirat(folder.get(), "entries", 0755) != 0 && errno != EEXIST) return io_failure("cannot make", root_, errno);
    for (std::size_t i = 1; i < count_; ++i) {
      const Key key = key_of_number(i);
      const std::string name = ShardedName("entries", key.digest).str();
      (void)mkdirat(folder.get(), name.substr(0, name.rfind('/')).c_str(), 0755);
      const Fd file(openat(folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
      if (!file) return io_failure("cannot make", name, errno);
      const std::string content = encode_entry_head(key, artifact) + std::string(artifact.bytes.view());
      if (Status written = write_all(file.get(), content, name); !written) return written;
    }
    return {};
  }

  /// A hit of each of kFew entries that are spread over the store. As many in both stores: going through all hundred
  /// thousand would measure how much of them the machine's memory caches hold.
  Result<double> hits() {
    bool good = true;
    std::size_t number = 0;
    const double time = microseconds_each(kFew, [&] {
      const auto hit = store_->get(keys_[number]);
      good = good && hit && *hit && (*hit)->artifact.bytes.size() == kPayload;
      number = (number + 37) % kFew;
    });
    if (!good) return failure(Code::Internal, "an entry of " + root_ + " was not served");
    return time;
  }

  void choose() {
    for (std::size_t i = 0; i < kFew; ++i) keys_.push_back(key_of_number(i * (count_ / kFew)));
  }

 private:
  const std::string root_;
  const std::size_t count_;
  std::unique_ptr<DiskStore> store_;
  std::vector<Key> keys_;
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
  plan.least_rounds = 200;
  plan.most_rounds = 5000;
  plan.ours = [&] { return many.hits(); };
  plan.theirs = [&] { return few.hits(); };
  auto outcome = compare(plan);
  if (!outcome) return std::move(outcome).error();
  return Outcomes{std::move(*outcome)};
}

}  // namespace kiln::bench
