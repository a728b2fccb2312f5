// SPDX-License-Identifier: Apache-2.0
// Stores and bundles, called directly: they may throw std::bad_alloc, and must then be unchanged.
#include <sys/stat.h>

#include "base/files/file_digest_cache.hpp"
#include "cache/disk_store.hpp"
#include "cache/local_claims.hpp"
#include "engine/resolver.hpp"
#include "fault/out_of_memory.hpp"
#include "remote/background_queue.hpp"
#include "remote/directory_object_store.hpp"
#include "remote/guarded_store.hpp"
#include "remote/remote_store.hpp"
#include "support/fakes/failing_malloc.hpp"
#include "support/fakes/fake_compiler.hpp"
#include "support/fixtures/bundles.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/remote_fixture.hpp"

namespace kiln::test {
namespace {

constexpr std::size_t kSize = 3'000;
constexpr std::uint64_t kBound = 40'000;

std::unique_ptr<DiskStore> disk(const std::string& directory) {
  return DiskStore::open({directory + "/cache", kBound, false, {}}).value();
}

Outcome right_or_absent(const Result<std::optional<Hit>>& hit, std::uint64_t number) {
  if (!hit) return Outcome::failed(hit.error());
  if (!*hit) return Outcome::failed("absent");
  return Outcome::of(same((*hit)->artifact, artifact_of(key_number(number), kSize)), "wrong bytes");
}

void put_some(DiskStore& store, std::uint64_t count) {
  for (std::uint64_t number = 0; number < count; ++number) {
    store.put(key_number(number), artifact_of(key_number(number), kSize), {}).value();
    store.add_dependency_set(request_number(number), dependency_set_number(number), {}).value();
  }
}

// Checks that all entries are right, that no file is partial or corrupt, and that one collection suffices.
std::string check_disk(const std::string& directory) {
  if (!std::filesystem::exists(directory + "/cache")) return {};
  const auto store = disk(directory);
  for (std::uint64_t number = 0; number < 16; ++number) {
    const auto hit = store->get(key_number(number), {});
    if (!hit) return hit.error().message;
    if (*hit && !same((*hit)->artifact, artifact_of(key_number(number), kSize))) return "wrong bytes";
  }
  const auto verified = store->verify();
  if (!verified || verified->corrupt != 0) return "an entry is corrupt";
  const auto collected = store->gc();
  if (!collected || collected->busy) return "garbage collection fails";
  const auto left = files_below(directory + "/cache/v1/tmp");
  return left.empty() ? "" : "left behind: " + left.front();
}

Operation store_operation(const std::string& name, std::function<Outcome(const std::string&)> run) {
  Operation operation;
  operation.name = name;
  operation.may_throw = true;
  operation.prepare = [](const std::string& directory) { put_some(*disk(directory), 4); };
  operation.run = std::move(run);
  operation.check = check_disk;
  return operation;
}

Outcome put(const std::string& directory) {
  const auto store = disk(directory);
  const Status stored = store->put(key_number(9), artifact_of(key_number(9), kSize), {});
  return stored ? Outcome::right() : Outcome::failed(stored.error());
}

Outcome hints(const std::string& directory) {
  const auto store = disk(directory);
  const Status added = store->add_dependency_set(request_number(1), dependency_set_number(77), {});
  if (!added) return Outcome::failed(added.error());
  const auto dependency_sets = store->dependency_sets(request_number(1), Store::kMaxDependencySets, {});
  if (!dependency_sets) return Outcome::failed(dependency_sets.error());
  return dependency_sets->empty()
             ? Outcome::failed("absent")
             : Outcome::of(dependency_sets->front() == dependency_set_number(77), "another dependency set");
}

Outcome fill(DiskStore& store) {
  for (std::uint64_t number = 4; number < 16; ++number) {
    const Status stored = store.put(key_number(number), artifact_of(key_number(number), kSize), {});
    if (!stored) return Outcome::failed(stored.error());
  }
  const auto collected = store.gc();
  return collected ? Outcome::right() : Outcome::failed(collected.error());
}

// Puts more than fits, so that puts collect. Regardless of the result, the same store must collect once there is
// memory.
Outcome evict(const std::string& directory) {
  const auto store = disk(directory);
  const auto still_collects = [&] {
    (void)Heap::give_back();
    const auto collected = store->gc();
    return collected.has_value() && !collected->busy;
  };
  try {
    Outcome outcome = fill(*store);
    return still_collects() ? outcome : Outcome::wrong("the store no longer collects");
  } catch (const std::bad_alloc&) {
    if (!still_collects()) return Outcome::wrong("the store no longer collects");
    throw;
  }
}

Outcome inspect(const std::string& directory) {
  const auto store = disk(directory);
  const auto listed = store->list_entries();
  if (!listed) return Outcome::failed(listed.error());
  const auto verified = store->verify();
  if (!verified) return Outcome::failed(verified.error());
  return Outcome::of(verified->corrupt == 0, "an intact entry was reported as corrupt");
}

Outcome check_dependency_set(const std::string& directory) {
  const std::string headers = directory + "/include";
  mkdir(headers.c_str(), 0700);
  DependencySet dependency_set;
  for (int i = 0; i < 5; ++i) {
    const std::string name = "a_header_with_a_long_name_" + std::to_string(i) + ".h";
    write_text(headers + "/" + name, name);
    dependency_set.items.push_back({0, DependencySet::State::Read, name, sha256(name), 0});
  }
  FileDigestCache digests(directory + "/digests");
  const auto mismatch = check(dependency_set, PathRoots{directory, {{headers, {}}}}, digests);
  (void)digests.save();
  return mismatch ? Outcome::failed(mismatch->description.c_str()) : Outcome::right();
}

std::vector<BundleMember> members() {
  std::vector<BundleMember> all;
  for (int i = 0; i < 10; ++i) {
    all.push_back(member_of("unit " + std::to_string(i), Target::sm(80), {.size = kSize, .packs = true}));
  }
  return all;
}

Outcome read_bundle(const std::string& directory) {
  auto source = open_bundle_file(directory + "/app.kiln");
  if (!source) return Outcome::failed(source.error());
  const auto bundle = Bundle::open(std::move(*source), nullptr);
  if (!bundle) return Outcome::failed(bundle.error());
  for (int i = 0; i < 3; ++i) {
    const auto found = (*bundle)->find(unit_key_of("unit " + std::to_string(i)), Target::sm(86));
    if (!found) return Outcome::failed(found.error());
    if (!*found) return Outcome::wrong("the bundle does not find an entry that it contains");
    const BundleMember member = member_of("unit " + std::to_string(i), Target::sm(80), {.size = kSize, .packs = true});
    if ((*found)->artifact.bytes != member.artifact.bytes) return Outcome::wrong("wrong bytes");
  }
  return Outcome::right();
}

// A remote store in a directory, guarded as in sessions. The thread of its background queue uploads.
struct Fleet {
  explicit Fleet(const std::string& directory) {
    FleetPolicy numbers;
    numbers.budget = std::chrono::seconds(20);
    background_queue = std::make_shared<BackgroundQueue>(numbers);
    auto object_store = std::make_shared<DirectoryObjectStore>(directory + "/objects");
    RemoteStore::Params remote;
    remote.object_store = object_store;
    remote.policy = std::make_shared<const TrustPolicy>(keys().fixture.policy());
    remote.signer = keys().signer;
    remote.publish_logs = true;
    ServerGuard::Params guard;
    guard.name = "store";
    guard.probe = [object_store](auto limit) { return object_store->probe(limit); };
    guard.background_queue = background_queue;
    guard.policy = numbers;
    GuardedStore::Params guarded;
    guarded.inner = std::make_shared<RemoteStore>(std::move(remote));
    guarded.guard = ServerGuard::make(std::move(guard));
    guarded.background_queue = background_queue;
    guarded.policy = numbers;
    store = std::make_shared<GuardedStore>(std::move(guarded));
  }
  ~Fleet() { background_queue->stop(); }
  // Created with memory, beforehand: they belong to the test.
  struct Keys {
    TrustFixture fixture;
    std::shared_ptr<const Signer> signer = fixture.ci_signer();
  };
  static const Keys& keys() {
    static const Keys made;
    return made;
  }
  std::shared_ptr<BackgroundQueue> background_queue;
  std::shared_ptr<GuardedStore> store;
};

Operation upload() {
  Operation operation;
  operation.name = "upload to a remote store";
  operation.may_throw = true;
  operation.prepare = [](const std::string& directory) {
    mkdir((directory + "/objects").c_str(), 0700);
    (void)Fleet::keys();
  };
  operation.run = [](const std::string& directory) {
    Fleet fleet(directory);
    const Status put = fleet.store->put(key_number(1), artifact_of(key_number(1), kSize), {});
    if (!put) return Outcome::failed(put.error());
    if (!fleet.background_queue->drain(std::chrono::seconds(20))) return Outcome::failed("not drained");
    const auto hit = fleet.store->get(key_number(1), {});
    return right_or_absent(hit, 1);
  };
  return operation;
}

// Resolves a recipe to an artifact without an engine: looks up, claims, compiles, publishes.
Operation resolve() {
  Operation operation;
  operation.name = "resolve a miss";
  operation.may_throw = true;
  operation.run = [](const std::string& directory) {
    FakeCompiler compiler;
    const auto store = disk(directory);
    FileDigestCache digests(directory + "/digests");
    LocalClaims claims = LocalClaims::for_cache(store->root());
    Resolver::Params params;
    params.store = store.get();
    params.claims = &claims;
    params.digests = &digests;
    params.history = &store->history();
    Resolver resolver(params);
    write_text(directory + "/a.h", "content of a header");
    const Unit unit = Unit::of_kind("fake", "unit", "include a.h").with_include_root(directory);
    const Recipe recipe = [&] {
      const Heap::Spared spared;
      return recipe_for(compiler, unit, Target::sm(90));
    }();
    const auto answer = resolver.get(recipe, compiler, {});
    if (!answer) return Outcome::failed(answer.error());
    return Outcome::of(answer->artifact.bytes.view() == "compiled content of a header", "wrong bytes");
  };
  operation.check = check_disk;
  return operation;
}

}  // namespace

void add_stores(std::vector<Operation>& operations) {
  operations.push_back(store_operation("disk: put", put));
  operations.push_back(store_operation("disk: get", [](const std::string& directory) {
    return right_or_absent(disk(directory)->get(key_number(2), {}), 2);
  }));
  operations.push_back(store_operation("disk: dependency sets", hints));
  operations.push_back(store_operation("disk: evict and collect", evict));
  operations.push_back(store_operation("disk: list and verify", inspect));
  operations.push_back(store_operation("check a dependency set", check_dependency_set));
  operations.push_back(resolve());
  Operation reads;
  reads.name = "bundle: open and find";
  reads.may_throw = true;
  reads.prepare = [](const std::string& directory) {
    write_text(directory + "/app.kiln", image_of(members()).to_file());
  };
  reads.run = read_bundle;
  operations.push_back(reads);
  operations.push_back(upload());
}

}  // namespace kiln::test
