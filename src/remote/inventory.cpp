#include "remote/inventory.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/hash.hpp"
#include "remote/action_result.hpp"
#include "remote/judgement.hpp"
#include "remote/remote_store.hpp"
#include "store/hint_format.hpp"

namespace kiln {
namespace {

using Shelf = Depot::Shelf;
using namespace std::chrono_literals;

// People wait for this; a depot that takes longer is in trouble.
constexpr auto kListLimit = 120s;
constexpr auto kBodyLimit = 30s;
// A content that is younger may be just being published: its statement comes after it.
constexpr auto kGrace = 1h;

// What is in a depot, with what the cleaning needs to know besides.
struct Taken {
  RemoteInventory inventory;
  std::vector<std::vector<Digest>> stated;  // by entry: the contents that it names, believed or not
  std::unordered_map<Digest, Depot::Listed> contents;
};

class Taking {
 public:
  Taking(Depot& depot, const TrustPolicy& policy, std::chrono::nanoseconds wall, bool contents, const Advance& advance)
      : depot_(depot), policy_(policy), wall_(wall), read_contents_(contents), advance_(advance) {}

  Result<Taken> take() {
    // Contents first: what is published meanwhile then has an entry too many, and no content too many.
    auto contents = depot_.list(Shelf::Content, kListLimit);
    if (!contents) return std::move(contents).error();
    for (const Depot::Listed& content : *contents) taken_.contents.emplace(content.name, content);
    auto actions = depot_.list(Shelf::Action, kListLimit);
    if (!actions) return std::move(actions).error();
    std::size_t done = 0;
    for (const Depot::Listed& action : *actions) {
      if (Status added = add(action); !added) return std::move(added).error();
      if (advance_) advance_(++done, actions->size());
    }
    count_unused();
    return std::move(taken_);
  }

 private:
  Status add(const Depot::Listed& action) {
    const std::uint64_t most = RemoteStore::kMostHintBytes + RemoteStore::kMostActionBytes;
    const auto body = depot_.read(Shelf::Action, action.name, most, kBodyLimit);
    if (!body && body.error().code != Code::Corrupt) return body.error();
    if (body && !*body) return {};  // gone since
    RemoteInventory::Entry entry;
    entry.key = {action.name};
    entry.bytes = action.bytes;
    entry.modified = action.modified;
    std::vector<Digest> stated;
    if (body) {
      const auto result = ActionResult::decode({(*body)->data(), (*body)->size()});
      if (const auto owner = result ? hint_owner(result->said) : std::nullopt) {
        entry.fault = fault_of_hints(*owner, action.name, **body);
        taken_.inventory.hints += entry.fault.empty() ? 1 : 0;
        taken_.inventory.hint_bytes += entry.fault.empty() ? action.bytes : 0;
        if (entry.fault.empty()) return {};
      } else if (Status judged = judge(**body, entry); !judged) {
        return judged;
      }
      for (std::size_t i = 0; result && i < result->files.size(); ++i) stated.push_back(result->files[i].digest);
    } else {
      entry.fault = to_string(RemoteFault::NotAnActionResult);
    }
    taken_.inventory.entries.push_back(std::move(entry));
    taken_.stated.push_back(std::move(stated));
    return {};
  }

  static std::string fault_of_hints(const RequestKey& owner, const Digest& place, const Bytes& body) {
    if (closures_place(owner) != place) return to_string(RemoteFault::HintMalformed);
    const JudgedHints hints = judge_hints(owner, body, Store::kMostClosures);
    return hints.rejection ? hints.rejection->word : std::string();
  }

  Status judge(const Bytes& body, RemoteInventory::Entry& entry) {
    JudgedAction judged = judge_action(entry.key, body, policy_, wall_);
    if (body.size() > RemoteStore::kMostActionBytes) {
      judged.rejection = Rejection::of(RemoteFault::NotAnActionResult, "longer than a reader reads");
    }
    if (judged.stated) {
      const Statement& statement = judged.stated->statement;
      entry.content = statement.digest;
      entry.epoch = statement.epoch;
      entry.live = judged.stated->certificate.has_value();
      if (is_name_space(statement.name_space)) entry.name_space = statement.name_space;
    }
    const auto content = taken_.contents.find(entry.content);
    const bool listed = content != taken_.contents.end();
    if (listed) entry.bytes += content->second.bytes;
    // One that was not listed may have been published since.
    if (!judged.rejection && (read_contents_ || !listed)) {
      if (Status read = judge_content_of(entry.key, judged); !read) return read;
    }
    if (judged.rejection) entry.fault = judged.rejection->word;
    return {};
  }

  Status judge_content_of(const Key& key, JudgedAction& judged) {
    const auto body = depot_.read(Shelf::Content, judged.stated->statement.digest, judged.size, kBodyLimit);
    if (!body && body.error().code != Code::Corrupt) return body.error();
    if (!body) {
      judged.rejection = Rejection::of(RemoteFault::ContentDiffers, body.error().message);
    } else if (!*body) {
      judged.rejection = Rejection::of(RemoteFault::ContentMissing, "");
    } else {
      judged.rejection = judge_content(key, judged, **body).rejection;
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

  Depot& depot_;
  const TrustPolicy& policy_;
  const std::chrono::nanoseconds wall_;
  const bool read_contents_;
  const Advance& advance_;
  Taken taken_;
};

// Which entries go: those before the epoch, then the oldest until the contents of the others fit.
std::vector<bool> chosen(const Taken& taken, const RemoteCleaning& cleaning) {
  const auto& entries = taken.inventory.entries;
  std::vector<bool> goes(entries.size());
  std::uint64_t bytes = 0;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool named = cleaning.name_space.empty() || entries[i].name_space == cleaning.name_space;
    goes[i] =
        cleaning.least_epoch && named && !entries[i].name_space.empty() && entries[i].epoch < *cleaning.least_epoch;
    if (goes[i]) continue;
    bytes += entries[i].bytes;
    order.push_back(i);
  }
  if (cleaning.most_bytes == 0) return goes;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return entries[a].modified < entries[b].modified; });
  for (const std::size_t i : order) {
    if (bytes <= cleaning.most_bytes) break;
    goes[i] = true;
    bytes -= entries[i].bytes;
  }
  return goes;
}

}  // namespace

Result<RemoteInventory> take_inventory(Depot& depot, const TrustPolicy& policy, std::chrono::nanoseconds wall,
                                       bool contents, const Advance& advance) {
  auto taken = Taking(depot, policy, wall, contents, advance).take();
  if (!taken) return std::move(taken).error();
  return std::move(taken->inventory);
}

Result<RemoteCleaned> clean(Depot& depot, const TrustPolicy& policy, std::chrono::nanoseconds wall,
                            const RemoteCleaning& cleaning, const Advance& advance) {
  const auto taken = Taking(depot, policy, wall, false, advance).take();
  if (!taken) return taken.error();
  const std::vector<bool> goes = chosen(*taken, cleaning);
  RemoteCleaned cleaned;
  std::set<Digest> used;
  for (std::size_t i = 0; i < goes.size(); ++i) {
    const RemoteInventory::Entry& entry = taken->inventory.entries[i];
    if (!goes[i]) {
      used.insert(taken->stated[i].begin(), taken->stated[i].end());
      continue;
    }
    ++cleaned.entries;
    if (cleaning.dry_run) continue;
    if (Status removed = depot.remove(Shelf::Action, entry.key.digest, kBodyLimit); !removed) return removed.error();
  }
  for (const auto& [name, content] : taken->contents) {
    if (used.contains(name) || wall - content.modified < kGrace) continue;
    ++cleaned.contents;
    cleaned.bytes += content.bytes;
    if (cleaning.dry_run) continue;
    if (Status removed = depot.remove(Shelf::Content, name, kBodyLimit); !removed) return removed.error();
  }
  if (cleaning.dry_run) return cleaned;
  if (Status tidied = depot.tidy(kListLimit); !tidied) return tidied.error();
  return cleaned;
}

}  // namespace kiln
