// Stores and bundles, by themselves: std::bad_alloc may leave them, and must leave them as they were.
#include <sys/stat.h>

#include "base/file_digests.hpp"
#include "claim/local_claims.hpp"
#include "fault/out_of_memory.hpp"
#include "remote/courier.hpp"
#include "remote/directory_depot.hpp"
#include "remote/guarded_store.hpp"
#include "remote/remote_store.hpp"
#include "store/disk_store.hpp"
#include "support/bundles.hpp"
#include "support/failing_malloc.hpp"
#include "support/fake_compiler.hpp"
#include "support/files.hpp"
#include "support/recipes.hpp"
#include "support/remote_rig.hpp"
#include "warm/resolver.hpp"

namespace kiln::test {
namespace {

constexpr std::size_t kSize = 3'000;
constexpr std::uint64_t kBound = 40'000;

std::unique_ptr<DiskStore> disk(const std::string& folder) {
  return DiskStore::open({folder + "/cache", kBound, false, {}}).value();
}

Outcome right_or_absent(const Result<std::optional<Hit>>& hit, std::uint64_t number) {
  if (!hit) return Outcome::failed(hit.error());
  if (!*hit) return Outcome::failed("absent");
  return Outcome::of(same((*hit)->artifact, artifact_of(key_number(number), kSize)), "wrong bytes");
}

void put_some(DiskStore& store, std::uint64_t count) {
  for (std::uint64_t number = 0; number < count; ++number) {
    store.put(key_number(number), artifact_of(key_number(number), kSize)).value();
    store.add_closure(request_number(number), closure_number(number)).value();
  }
}

// Whatever is there is right, nothing is half-written or damaged, and one collection is enough.
std::string check_disk(const std::string& folder) {
  if (!std::filesystem::exists(folder + "/cache")) return {};
  const auto store = disk(folder);
  for (std::uint64_t number = 0; number < 16; ++number) {
    const auto hit = store->get(key_number(number));
    if (!hit) return hit.error().message;
    if (*hit && !same((*hit)->artifact, artifact_of(key_number(number), kSize))) return "wrong bytes";
  }
  const auto verified = store->verify();
  if (!verified || verified->damaged != 0) return "an entry is damaged";
  const auto collected = store->gc();
  if (!collected || collected->elsewhere) return "it cannot be collected";
  const auto left = files_below(folder + "/cache/v1/tmp");
  return left.empty() ? "" : "left behind: " + left.front();
}

Operation store_operation(const std::string& name, std::function<Outcome(const std::string&)> run) {
  Operation operation;
  operation.name = name;
  operation.may_throw = true;
  operation.prepare = [](const std::string& folder) { put_some(*disk(folder), 4); };
  operation.run = std::move(run);
  operation.check = check_disk;
  return operation;
}

Outcome put(const std::string& folder) {
  const auto store = disk(folder);
  const Status stored = store->put(key_number(9), artifact_of(key_number(9), kSize));
  return stored ? Outcome::right() : Outcome::failed(stored.error());
}

Outcome hints(const std::string& folder) {
  const auto store = disk(folder);
  const Status added = store->add_closure(request_number(1), closure_number(77));
  if (!added) return Outcome::failed(added.error());
  const auto closures = store->closures(request_number(1));
  if (!closures) return Outcome::failed(closures.error());
  return closures->empty() ? Outcome::failed("absent")
                           : Outcome::of(closures->front() == closure_number(77), "another closure");
}

Outcome fill(DiskStore& store) {
  for (std::uint64_t number = 4; number < 16; ++number) {
    const Status stored = store.put(key_number(number), artifact_of(key_number(number), kSize));
    if (!stored) return Outcome::failed(stored.error());
  }
  const auto collected = store.gc();
  return collected ? Outcome::right() : Outcome::failed(collected.error());
}

// More than fits, so that puts collect. Whatever became of that, the same store must collect once there is memory.
Outcome evict(const std::string& folder) {
  const auto store = disk(folder);
  const auto still_collects = [&] {
    (void)Heap::give_back();
    const auto collected = store->gc();
    return collected.ok() && !collected->elsewhere;
  };
  try {
    Outcome outcome = fill(*store);
    return still_collects() ? outcome : Outcome::wrong("nobody collects any more");
  } catch (const std::bad_alloc&) {
    if (!still_collects()) return Outcome::wrong("nobody collects any more");
    throw;
  }
}

Outcome inspect(const std::string& folder) {
  const auto store = disk(folder);
  const auto listed = store->list();
  if (!listed) return Outcome::failed(listed.error());
  const auto verified = store->verify();
  if (!verified) return Outcome::failed(verified.error());
  return Outcome::of(verified->damaged == 0, "an entry that is sound was taken for damaged");
}

Outcome check_closure(const std::string& folder) {
  const std::string headers = folder + "/include";
  mkdir(headers.c_str(), 0700);
  Closure closure;
  for (int i = 0; i < 5; ++i) {
    const std::string name = "a_header_with_a_long_name_" + std::to_string(i) + ".h";
    spit(headers + "/" + name, name);
    closure.items.push_back({0, Closure::State::Read, name, sha256(name), 0});
  }
  FileDigests digests(folder + "/digests");
  const auto mismatch = check(closure, Places{folder, {{headers, {}}}}, digests);
  (void)digests.save();
  return mismatch ? Outcome::failed(mismatch->text.c_str()) : Outcome::right();
}

std::vector<BundleMember> members() {
  std::vector<BundleMember> all;
  for (int i = 0; i < 10; ++i) {
    all.push_back(member_of("unit " + std::to_string(i), Target::sm(80), {.size = kSize, .packs = true}));
  }
  return all;
}

Outcome read_bundle(const std::string& folder) {
  auto source = open_bundle_file(folder + "/app.kiln");
  if (!source) return Outcome::failed(source.error());
  const auto bundle = Bundle::open(std::move(*source), nullptr);
  if (!bundle) return Outcome::failed(bundle.error());
  for (int i = 0; i < 3; ++i) {
    const auto found = (*bundle)->find(unit_key_of("unit " + std::to_string(i)), Target::sm(86));
    if (!found) return Outcome::failed(found.error());
    if (!*found) return Outcome::wrong("a bundle that has it says that it has not");
    const BundleMember member = member_of("unit " + std::to_string(i), Target::sm(80), {.size = kSize, .packs = true});
    if ((*found)->artifact.bytes != member.artifact.bytes) return Outcome::wrong("wrong bytes");
  }
  return Outcome::right();
}

// A remote store in a folder, guarded as sessions have it: its courier's thread carries the upload.
struct Fleet {
  explicit Fleet(const std::string& folder) {
    FleetPolicy numbers;
    numbers.budget = std::chrono::seconds(20);
    courier = std::make_shared<Courier>(numbers);
    auto depot = std::make_shared<DirectoryDepot>(folder + "/depot");
    RemoteStore::Parts remote;
    remote.depot = depot;
    remote.policy = std::make_shared<const TrustPolicy>(keys().rig.policy());
    remote.signer = keys().signer;
    ServerGuard::Parts guard;
    guard.name = "store";
    guard.probe = [depot](auto limit) { return depot->probe(limit); };
    guard.courier = courier;
    guard.policy = numbers;
    GuardedStore::Parts guarded;
    guarded.inner = std::make_shared<RemoteStore>(std::move(remote));
    guarded.guard = ServerGuard::make(std::move(guard));
    guarded.courier = courier;
    guarded.policy = numbers;
    store = std::make_shared<GuardedStore>(std::move(guarded));
  }
  ~Fleet() { courier->stop(); }
  // Made with memory, before: they are the test's own.
  struct Keys {
    TrustRig rig;
    std::shared_ptr<const Signer> signer = rig.ci_signer();
  };
  static const Keys& keys() {
    static const Keys made;
    return made;
  }
  std::shared_ptr<Courier> courier;
  std::shared_ptr<GuardedStore> store;
};

Operation upload() {
  Operation operation;
  operation.name = "upload to a remote store";
  operation.may_throw = true;
  operation.prepare = [](const std::string& folder) {
    mkdir((folder + "/depot").c_str(), 0700);
    (void)Fleet::keys();
  };
  operation.run = [](const std::string& folder) {
    Fleet fleet(folder);
    const Status put = fleet.store->put(key_number(1), artifact_of(key_number(1), kSize));
    if (!put) return Outcome::failed(put.error());
    if (!fleet.courier->drain(std::chrono::seconds(20))) return Outcome::failed("not drained");
    const auto hit = fleet.store->get(key_number(1));
    return right_or_absent(hit, 1);
  };
  return operation;
}

// The road from a recipe to an artifact, with nothing around it: looks, claims, compiles, publishes.
Operation resolve() {
  Operation operation;
  operation.name = "resolve a miss";
  operation.may_throw = true;
  operation.run = [](const std::string& folder) {
    FakeCompiler compiler;
    const auto store = disk(folder);
    FileDigests digests(folder + "/digests");
    LocalClaims claims = LocalClaims::for_cache(store->root());
    Resolver::Parts parts;
    parts.store = store.get();
    parts.claims = &claims;
    parts.digests = &digests;
    parts.history = &store->history();
    Resolver resolver(parts);
    spit(folder + "/a.h", "content of a header");
    const Unit unit = Unit::of_kind("fake", "unit", "include a.h").include_root(folder);
    const Recipe recipe = [&] {
      const Heap::Spared spared;
      return recipe_for(compiler, unit, Target::sm(90));
    }();
    const auto answer = resolver.get(recipe, compiler);
    if (!answer) return Outcome::failed(answer.error());
    return Outcome::of(answer->artifact.bytes.view() == "compiled content of a header", "wrong bytes");
  };
  operation.check = check_disk;
  return operation;
}

}  // namespace

void add_stores(std::vector<Operation>& operations) {
  operations.push_back(store_operation("disk: put", put));
  operations.push_back(store_operation(
      "disk: get", [](const std::string& folder) { return right_or_absent(disk(folder)->get(key_number(2)), 2); }));
  operations.push_back(store_operation("disk: closures", hints));
  operations.push_back(store_operation("disk: evict and collect", evict));
  operations.push_back(store_operation("disk: list and verify", inspect));
  operations.push_back(store_operation("check a closure", check_closure));
  operations.push_back(resolve());
  Operation reads;
  reads.name = "bundle: open and find";
  reads.may_throw = true;
  reads.prepare = [](const std::string& folder) { spit(folder + "/app.kiln", image_of(members()).whole()); };
  reads.run = read_bundle;
  operations.push_back(reads);
  operations.push_back(upload());
}

}  // namespace kiln::test
