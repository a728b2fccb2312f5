// SPDX-License-Identifier: Apache-2.0
// One step of a store, of a shared directory or of claims, in a separate process, for which the kiln program has no
// command. Prints `right`, `wrong`, `absent` or `done`. On an error it prints to standard error and returns 1.
//   fault_steps put|grow|get|remove CACHE       grow puts more than the limit, so that entries are evicted
//   fault_steps share|fetch DIRECTORY KEY       into and out of a DirectoryObjectStore; KEY is the file of a secret key
//   fault_steps claims DIRECTORY                with a second process that claims the same
//   fault_steps claim DIRECTORY
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/process/process.hpp"
#include "cache/disk_store.hpp"
#include "cache/local_claims.hpp"
#include "remote/directory_object_store.hpp"
#include "remote/remote_store.hpp"
#include "support/fixtures/artifacts.hpp"
#include "trust/keys.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSize = 20'000;
constexpr std::uint64_t kBound = 70'000;

int say(const char* word) {
  if (std::puts(word) >= 0 && std::fflush(stdout) == 0) return 0;
  std::perror("cannot print");
  return 1;
}
int say(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}
int say(const Status& status) { return status ? say("done") : say(status.error()); }

int put_in(Store& store, std::uint64_t number) {
  if (Status put = store.put(key_number(number), artifact_of(key_number(number), kSize), {}); !put) return say(put);
  return say(store.add_dependency_set(request_number(number), dependency_set_number(number), {}));
}

int get_from(Store& store) {
  const auto hints = store.dependency_sets(request_number(1), Store::kMaxDependencySets, {});
  if (!hints) return say(hints.error());
  for (const DependencySet& hint : *hints) {
    if (!(hint == dependency_set_number(1))) return say("wrong");
  }
  const auto hit = store.get(key_number(1), {});
  if (!hit) return say(hit.error());
  if (!*hit) return say("absent");
  return say(same((*hit)->artifact, artifact_of(key_number(1), kSize)) ? "right" : "wrong");
}

int in_cache(const std::string& step, const std::string& root) {
  const auto store = DiskStore::open({.root = root, .max_bytes = step == "grow" ? kBound : 0});
  if (!store) return say(store.error());
  if (step == "put") return put_in(**store, 1);
  if (step == "get") return get_from(**store);
  if (step == "remove") return say((*store)->remove(key_number(1)) ? "done" : "absent");
  for (std::uint64_t number = 2; number < 6; ++number) {
    if (Status put = (*store)->put(key_number(number), artifact_of(key_number(number), kSize), {}); !put)
      return say(put);
  }
  return say("done");
}

int in_directory(const std::string& step, const std::string& directory, const std::string& key_file) {
  auto key = SecretKey::read(key_file);
  if (!key) return say(key.error());
  auto policy = std::make_shared<TrustPolicy>();
  policy->add_key(key->public_key(), "acme");
  RemoteStore::Params params{std::make_shared<DirectoryObjectStore>(directory), policy, nullptr, {}};
  params.publish_logs = true;  // the compared artifact has a log
  if (step == "fetch") return get_from(*std::make_unique<RemoteStore>(std::move(params)));
  auto signer = Signer::ci(std::move(*key), "acme", 1);
  if (!signer) return say(signer.error());
  params.signer = std::make_shared<const Signer>(std::move(*signer));
  return put_in(*std::make_unique<RemoteStore>(std::move(params)), 1);
}

// Claims like a resolver: if another process has finished, look up and claim again.
int claim_once(const std::string& directory) {
  LocalClaims claims(directory);
  for (;;) {
    const Claims::AcquireResult answer = claims.acquire({sha256("a request")}, 5s, {});
    if (answer.outcome == Claims::Outcome::ReleasedByOther) continue;
    if (answer.outcome == Claims::Outcome::Acquired) return say("done");
    std::fprintf(stderr, "%s\n", answer.reason.c_str());
    return 1;
  }
}

int claim_twice(const std::string& program, const std::string& directory) {
  LocalClaims claims(directory);
  Claims::AcquireResult first = claims.acquire({sha256("a request")}, 5s, {});
  Process::SpawnOptions how;
  how.arguments = {program, "claim", directory};
  how.environment = current_environment();
  auto second = Process::spawn(how);
  if (!second) return say(second.error());
  usleep(20'000);
  first.claim.reset();
  (void)second->wait(10s);
  return claim_once(directory);
}

int run(int count, char** arguments) {
  const std::string step = count > 2 ? arguments[1] : "";
  if (step == "put" || step == "grow" || step == "get" || step == "remove") return in_cache(step, arguments[2]);
  if ((step == "share" || step == "fetch") && count > 3) return in_directory(step, arguments[2], arguments[3]);
  if (step == "claims") return claim_twice(arguments[0], arguments[2]);
  if (step == "claim") return claim_once(arguments[2]);
  std::fputs("not understood\n", stderr);
  return 2;
}

}  // namespace
}  // namespace kiln::test

int main(int count, char** arguments) { return kiln::test::run(count, arguments); }
