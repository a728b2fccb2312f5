// SPDX-License-Identifier: Apache-2.0
#include "remote/inventory.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/hash.hpp"
#include "cache/hint_format.hpp"
#include "remote/action_result.hpp"
#include "remote/entry_verifier.hpp"
#include "remote/remote_store.hpp"

namespace kiln {
namespace {

using Bucket = ObjectStore::Bucket;
using namespace std::chrono_literals;

// A user waits for these operations; an object store that takes longer has a problem.
constexpr auto kListLimit = 120s;
constexpr auto kBodyLimit = 30s;
// Content that is younger may belong to an upload in progress: the statement is uploaded after the content.
constexpr auto kGrace = 1h;

// The inventory of an object store with additional data for the garbage collection.
struct InventoryData {
  RemoteInventory inventory;
  std::vector<std::vector<Digest>> stated;  // by entry: the content digests that it names, trusted or not
  std::unordered_map<Digest, ObjectStore::ObjectInfo> contents;
};

class InventoryReader {
 public:
  InventoryReader(ObjectStore& object_store, const TrustPolicy& policy, std::chrono::nanoseconds wall, bool contents,
                  const ProgressCallback& advance)
      : object_store_(object_store), policy_(policy), wall_(wall), read_contents_(contents), advance_(advance) {}

  Result<InventoryData> take() {
    // Content first: for an upload during the listing, the inventory then has an entry without content rather than
    // content without an entry.
    auto contents = object_store_.list(Bucket::Cas, kListLimit);
    if (!contents) return std::move(contents).error();
    for (const ObjectStore::ObjectInfo& content : *contents) taken_.contents.emplace(content.name, content);
    auto actions = object_store_.list(Bucket::ActionCache, kListLimit);
    if (!actions) return std::move(actions).error();
    std::size_t done = 0;
    for (const ObjectStore::ObjectInfo& action : *actions) {
      if (Status added = add(action); !added) return std::move(added).error();
      if (advance_) advance_(++done, actions->size());
    }
    count_unused();
    return std::move(taken_);
  }

 private:
  Status add(const ObjectStore::ObjectInfo& action) {
    const std::uint64_t maximum = RemoteStore::kMaxHintBytes + RemoteStore::kMaxActionBytes;
    const auto body = object_store_.read(Bucket::ActionCache, action.name, maximum, kBodyLimit);
    if (!body && body.error().code != Code::Corrupt) return body.error();
    if (body && !*body) return {};  // removed since the listing
    RemoteInventory::Entry entry;
    entry.name = action.name;
    entry.bytes = action.bytes;
    entry.modified = action.modified;
    std::vector<Digest> stated;
    if (body) {
      const auto result = ActionResult::decode({(*body)->data(), (*body)->size()});
      if (const auto owner = result ? hint_request(result->stdout_raw) : std::nullopt) {
        entry.rejection = fault_of_hints(*owner, action.name, **body);
        taken_.inventory.hints += entry.rejection.empty() ? 1 : 0;
        taken_.inventory.hint_bytes += entry.rejection.empty() ? action.bytes : 0;
        if (entry.rejection.empty()) return {};
      } else if (result) {
        if (Status verified = check(*result, **body, entry); !verified) return verified;
      } else {
        entry.rejection = to_string(RejectReason::NotAnActionResult);
      }
      for (std::size_t i = 0; result && i < result->files.size(); ++i) stated.push_back(result->files[i].digest);
    } else {
      entry.rejection = to_string(RejectReason::NotAnActionResult);
    }
    taken_.inventory.entries.push_back(std::move(entry));
    taken_.stated.push_back(std::move(stated));
    return {};
  }

  static std::string fault_of_hints(const RequestKey& owner, const Digest& place, const Bytes& body) {
    if (hints_digest(owner) != place) return to_string(RejectReason::HintMalformed);
    const VerifiedHints hints = verify_hints(owner, body, Store::kMaxDependencySets);
    return hints.rejection ? hints.rejection->code : std::string();
  }

  // Verifies an entry. The action itself names its namespace and key; its object name shows whether they are right.
  Status check(const ActionResult& result, const Bytes& body, RemoteInventory::Entry& entry) {
    const auto path = result.files.empty() ? std::nullopt : EntryPath::parse(result.files.front().path);
    if (path) entry.key = path->key;
    const auto said = SignedStatement::decode(result.stdout_raw, {});
    const std::string name_space = said ? said->statement.name_space : std::string();
    VerifiedAction verified = verify_action(entry.key, name_space, body, policy_, wall_);
    // Without the key, the signature cannot be checked, and no reader gets that far.
    if (!path && verified.rejection && verified.rejection->code == to_string(TrustError::Reason::BadSignature)) {
      verified.rejection = Rejection::of(RejectReason::ContentMismatch, "the action names no entry");
    }
    if (!verified.rejection && action_name(name_space, entry.key) != entry.name) {
      verified.rejection = Rejection::of(RejectReason::WrongNamespace,
                                         "the action is stored under the name of another namespace or key");
    }
    if (body.size() > RemoteStore::kMaxActionBytes) {
      verified.rejection = Rejection::of(RejectReason::NotAnActionResult, "the action is too long");
    }
    if (verified.stated) {
      const Statement& statement = verified.stated->statement;
      entry.content = statement.digest;
      entry.epoch = statement.epoch;
      entry.live = verified.stated->certificate.has_value();
      if (is_name_space(statement.name_space)) entry.name_space = statement.name_space;
    }
    const auto content = taken_.contents.find(entry.content);
    const bool listed = content != taken_.contents.end();
    if (listed) entry.bytes += content->second.bytes;
    // Content that was not listed may have been published since.
    if (!verified.rejection && (read_contents_ || !listed)) {
      if (Status read = check_content_of(entry.key, verified, listed); !read) return read;
    }
    if (verified.rejection) entry.rejection = verified.rejection->code;
    return {};
  }

  Status check_content_of(const ArtifactKey& key, VerifiedAction& verified, bool listed) {
    if (verified.content) {
      verified.rejection = verify_content(key, verified, *verified.content).rejection;
      if (verified.rejection || !listed) return {};
    }
    const auto body = object_store_.read(Bucket::Cas, verified.stated->statement.digest, verified.size, kBodyLimit);
    if (!body && body.error().code != Code::Corrupt) return body.error();
    if (!body) {
      verified.rejection = Rejection::of(RejectReason::ContentMismatch, body.error().message);
    } else if (!*body) {
      verified.rejection = Rejection::of(RejectReason::ContentMissing, "");
    } else {
      verified.rejection = verify_content(key, verified, **body).rejection;
    }
    return {};
  }

  void count_unused() {
    std::set<Digest> used;
    for (const auto& stated : taken_.stated) used.insert(stated.begin(), stated.end());
    for (const auto& [name, content] : taken_.contents) {
      if (used.contains(name)) continue;
      ++taken_.inventory.unused;
      taken_.inventory.unused_bytes += content.bytes;
    }
  }

  ObjectStore& object_store_;
  const TrustPolicy& policy_;
  const std::chrono::nanoseconds wall_;
  const bool read_contents_;
  const ProgressCallback& advance_;
  InventoryData taken_;
};

// Selects the entries to remove: those below the minimum epoch, then the oldest until the remaining ones fit.
std::vector<bool> chosen(const InventoryData& taken, const RemoteGcOptions& cleaning) {
  const auto& entries = taken.inventory.entries;
  std::vector<bool> goes(entries.size());
  std::uint64_t bytes = 0;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool named = cleaning.name_space.empty() || entries[i].name_space == cleaning.name_space;
    goes[i] = cleaning.min_epoch && named && !entries[i].name_space.empty() && entries[i].epoch < *cleaning.min_epoch;
    if (goes[i]) continue;
    bytes += entries[i].bytes;
    order.push_back(i);
  }
  if (cleaning.max_bytes == 0) return goes;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return entries[a].modified < entries[b].modified; });
  for (const std::size_t i : order) {
    if (bytes <= cleaning.max_bytes) break;
    goes[i] = true;
    bytes -= entries[i].bytes;
  }
  return goes;
}

}  // namespace

Result<RemoteInventory> read_inventory(ObjectStore& object_store, const TrustPolicy& policy,
                                       std::chrono::nanoseconds wall, bool contents, const ProgressCallback& advance) {
  auto taken = InventoryReader(object_store, policy, wall, contents, advance).take();
  if (!taken) return std::move(taken).error();
  return std::move(taken->inventory);
}

Result<RemoteGcResult> collect_remote_garbage(ObjectStore& object_store, const TrustPolicy& policy,
                                              std::chrono::nanoseconds wall, const RemoteGcOptions& cleaning,
                                              const ProgressCallback& advance) {
  const auto taken = InventoryReader(object_store, policy, wall, false, advance).take();
  if (!taken) return taken.error();
  const std::vector<bool> goes = chosen(*taken, cleaning);
  RemoteGcResult cleaned;
  std::set<Digest> used;
  for (std::size_t i = 0; i < goes.size(); ++i) {
    const RemoteInventory::Entry& entry = taken->inventory.entries[i];
    if (!goes[i]) {
      used.insert(taken->stated[i].begin(), taken->stated[i].end());
      continue;
    }
    ++cleaned.entries;
    if (cleaning.dry_run) continue;
    if (Status removed = object_store.remove(Bucket::ActionCache, entry.name, kBodyLimit); !removed)
      return removed.error();
  }
  for (const auto& [name, content] : taken->contents) {
    if (used.contains(name) || wall - content.modified < kGrace) continue;
    ++cleaned.contents;
    cleaned.bytes += content.bytes;
    if (cleaning.dry_run) continue;
    if (Status removed = object_store.remove(Bucket::Cas, name, kBodyLimit); !removed) return removed.error();
  }
  if (cleaning.dry_run) return cleaned;
  if (Status tidied = object_store.remove_stale_uploads(kListLimit); !tidied) return tidied.error();
  return cleaned;
}

}  // namespace kiln
