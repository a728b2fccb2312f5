// One step of a store, of a folder that hosts share or of claims, in a process of its own: what the kiln program has no
// command for. Prints `right`, `wrong`, `absent` or `done`; an error goes to standard error, and it returns 1.
//   fault_steps put|grow|get|remove CACHE       grow puts more than a bound allows, so that something is evicted
//   fault_steps share|fetch FOLDER KEY          into and out of a DirectoryDepot; KEY is a secret key's file
//   fault_steps claims FOLDER                   with a second process that wants the same
//   fault_steps claim FOLDER
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/process.hpp"
#include "claim/local_claims.hpp"
#include "remote/directory_depot.hpp"
#include "remote/remote_store.hpp"
#include "store/disk_store.hpp"
#include "support/artifacts.hpp"
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
  if (Status put = store.put(key_number(number), artifact_of(key_number(number), kSize)); !put) return say(put);
  return say(store.add_closure(request_number(number), closure_number(number)));
}

int get_from(Store& store) {
  const auto hints = store.closures(request_number(1));
  if (!hints) return say(hints.error());
  for (const Closure& hint : *hints) {
    if (!(hint == closure_number(1))) return say("wrong");
  }
  const auto hit = store.get(key_number(1));
  if (!hit) return say(hit.error());
  if (!*hit) return say("absent");
  return say(same((*hit)->artifact, artifact_of(key_number(1), kSize)) ? "right" : "wrong");
}

int in_cache(const std::string& step, const std::string& root) {
  const auto store = DiskStore::open({.root = root, .size_bound = step == "grow" ? kBound : 0});
  if (!store) return say(store.error());
  if (step == "put") return put_in(**store, 1);
  if (step == "get") return get_from(**store);
  if (step == "remove") return say((*store)->remove(key_number(1)) ? "done" : "absent");
  for (std::uint64_t number = 2; number < 6; ++number) {
    if (Status put = (*store)->put(key_number(number), artifact_of(key_number(number), kSize)); !put) return say(put);
  }
  return say("done");
}

int in_folder(const std::string& step, const std::string& folder, const std::string& key_file) {
  auto key = SecretKey::read(key_file);
  if (!key) return say(key.error());
  auto policy = std::make_shared<TrustPolicy>();
  policy->trust(key->public_key(), "acme");
  RemoteStore::Parts parts{std::make_shared<DirectoryDepot>(folder), policy, nullptr, {}};
  if (step == "fetch") return get_from(*std::make_unique<RemoteStore>(std::move(parts)));
  auto signer = Signer::ci(std::move(*key), "acme", 1);
  if (!signer) return say(signer.error());
  parts.signer = std::make_shared<const Signer>(std::move(*signer));
  return put_in(*std::make_unique<RemoteStore>(std::move(parts)), 1);
}

// As a resolver does: whoever is told that another has finished looks, and asks again.
int claim_once(const std::string& folder) {
  LocalClaims claims(folder);
  for (;;) {
    const Claims::Answer answer = claims.acquire({sha256("a request")}, 5s);
    if (answer.outcome == Claims::Outcome::Finished) continue;
    if (answer.outcome == Claims::Outcome::Mine) return say("done");
    std::fprintf(stderr, "%s\n", answer.reason.c_str());
    return 1;
  }
}

int claim_twice(const std::string& program, const std::string& folder) {
  LocalClaims claims(folder);
  Claims::Answer first = claims.acquire({sha256("a request")}, 5s);
  Process::Start how;
  how.arguments = {program, "claim", folder};
  how.environment = current_environment();
  auto second = Process::spawn(how);
  if (!second) return say(second.error());
  usleep(20'000);
  first.claim.reset();
  (void)second->wait(10s);
  return claim_once(folder);
}

int run(int count, char** arguments) {
  const std::string step = count > 2 ? arguments[1] : "";
  if (step == "put" || step == "grow" || step == "get" || step == "remove") return in_cache(step, arguments[2]);
  if ((step == "share" || step == "fetch") && count > 3) return in_folder(step, arguments[2], arguments[3]);
  if (step == "claims") return claim_twice(arguments[0], arguments[2]);
  if (step == "claim") return claim_once(arguments[2]);
  std::fputs("not understood\n", stderr);
  return 2;
}

}  // namespace
}  // namespace kiln::test

int main(int count, char** arguments) { return kiln::test::run(count, arguments); }
