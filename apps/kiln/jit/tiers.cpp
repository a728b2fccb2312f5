// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/tiers.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "apps/kiln/jit/list_claim.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "remote/entry_verifier.hpp"
#include "remote/object_store.hpp"
#include "remote/remote_store.hpp"
#include "session/access.hpp"
#include "session/config/trust_policy_file.hpp"
#include "session/remote_factory.hpp"

namespace kiln::jit {
namespace {

// Time for one request to a server, as a multiple of `remote.budget`: an entry is larger than an artifact.
constexpr int kBudgets = 10;
constexpr int kListAttempts = 5;
constexpr std::chrono::milliseconds kListPause(50);

Artifact artifact_of(const std::string& system, std::string bytes, const std::string& name) {
  Artifact artifact;
  artifact.bytes = Bytes::of(std::move(bytes));
  artifact.target = Target::external(cache_name(system));
  artifact.metadata.unit = name;
  artifact.metadata.compiler = cache_name(system);
  return artifact;
}

Error no_cache() { return make_error(Code::Unavailable, "there is no writable cache; set cache.dir (KILN_CACHE_DIR)"); }

}  // namespace

JitTiers::JitTiers(Session& session, std::string profile)
    : profile_(std::move(profile)), components_(detail::SessionAccess::components(session)) {
  const Config& config = components_.config();
  if (config.disable || config.remote_url.empty()) return;
  auto policy = configured_policy(config);
  auto object_store = open_object_store(config);
  auto signer = make_signer(config);
  // The session has reported what is wrong with them.
  if (!policy || !object_store || *object_store == nullptr) return;
  policy_ = std::make_shared<const TrustPolicy>(std::move(*policy));
  object_store_ = *object_store;
  if (signer) signer_ = *signer;
}

JitTiers::~JitTiers() = default;

std::chrono::nanoseconds JitTiers::server_time(const Deadline& deadline) const {
  const std::chrono::nanoseconds budget = components_.config().remote_budget;
  return std::min<std::chrono::nanoseconds>(deadline.remaining(), budget * kBudgets);
}

// A store of one namespace without the session's guard and store of fetched entries: the latter keeps an entry for its
// key, and a list changes.
std::unique_ptr<RemoteStore> JitTiers::remote_of(const std::string& name_space) const {
  RemoteStore::Params params;
  params.object_store = object_store_;
  params.policy = policy_;
  params.signer = signer_;
  params.namespaces = {name_space};
  params.scope = NamespaceScope().narrowed({name_space});
  return std::make_unique<RemoteStore>(std::move(params));
}

std::optional<EntryList> JitTiers::decoded(const DetectedSystem& system, const Bytes& bytes, std::string_view publisher,
                                           std::vector<std::string>& problems) const {
  auto list = EntryList::decode(bytes.view());
  if (!list) {
    problems.push_back(list.error().message);
    return std::nullopt;
  }
  if (list->profile == profile_ && list->environment == system.environment && list->publisher == publisher)
    return std::move(*list);
  problems.push_back("the list of entries of " + system.system +
                     " is for another profile, environment or publisher than its key");
  return std::nullopt;
}

ArtifactKey JitTiers::key_of(const DetectedSystem& system, std::string_view publisher) const {
  return ArtifactKey::external(cache_name(system.system), list_key(profile_, system.environment, publisher));
}

std::vector<FoundList> JitTiers::lists(const DetectedSystem& system, const Deadline& deadline,
                                       std::vector<std::string>& problems) const {
  std::vector<FoundList> found;
  const auto add = [&](const Bytes& bytes, std::string_view publisher, const std::string& source) {
    if (auto list = decoded(system, bytes, publisher, problems)) found.push_back({std::move(*list), source});
  };
  const ArtifactKey local = key_of(system, kLocalPublisher);
  if (BundleSet* const bundles = components_.params().bundles) {
    for (const Hit& hit : bundles->get_all(local)) add(hit.artifact.bytes, kLocalPublisher, "bundle");
  }
  for (const auto& disk : components_.disks()) {
    const auto hit = disk->get(local, {});
    const std::string source(disk == components_.disks().front() ? kOwnSource : disk->describe());
    if (hit && *hit) add((*hit)->artifact.bytes, kLocalPublisher, source);
  }
  if (object_store_ == nullptr || server_failed_) return found;
  const Config& config = components_.config();
  for (const std::string& name :
       remote_namespaces(*policy_, remote_namespaces_of(config), NamespaceScope().narrowed(config.trust_namespaces))) {
    if (system.rule->host_code && policy_->is_live(name)) continue;
    ServerTimeBudget budget(server_time(deadline));
    const auto hit = remote_of(name)->get(key_of(system, name), RequestContext().with_budget(budget));
    if (!hit) {
      problems.push_back("the list of " + system.system + " in namespace " + name +
                         " cannot be read: " + hit.error().message);
      server_failed_ = hit.error().code != Code::Corrupt;
      if (server_failed_) break;
    } else if (*hit) {
      add((*hit)->artifact.bytes, name, "remote " + name);
    }
  }
  return found;
}

std::optional<Bytes> JitTiers::entry(const std::string& system, const Digest& digest, const Deadline& deadline) const {
  Store* const store = components_.params().store;
  if (store == nullptr) return std::nullopt;
  ServerTimeBudget budget(server_failed_ ? std::chrono::nanoseconds(0) : server_time(deadline));
  auto hit =
      store->get(ArtifactKey::external(cache_name(system), entry_key(digest)), RequestContext().with_budget(budget));
  if (!hit || !*hit) return std::nullopt;
  Bytes bytes = std::move((*hit)->artifact.bytes);
  if (sha256({bytes.data(), bytes.size()}) != digest) return std::nullopt;
  return bytes;
}

Status JitTiers::put_entry(const std::string& system, const Digest& digest, std::string bytes,
                           const std::string& name) const {
  if (components_.disks().empty()) return no_cache();
  const ArtifactKey key = ArtifactKey::external(cache_name(system), entry_key(digest));
  return components_.disks().front()->put(key, artifact_of(system, std::move(bytes), name), {});
}

bool JitTiers::has_own_entry(const std::string& system, const Digest& digest) const {
  if (components_.disks().empty()) return false;
  const auto hit = components_.disks().front()->get(ArtifactKey::external(cache_name(system), entry_key(digest)), {});
  return hit && *hit;
}

Result<EntryList> JitTiers::put_own_list(const DetectedSystem& system, const std::vector<EntryList::Line>& lines,
                                         const Deadline& deadline) const {
  if (components_.disks().empty()) return no_cache();
  const auto claim =
      claim_list(components_.params().claims, list_key(profile_, system.environment, kLocalPublisher), deadline);
  DiskStore& disk = *components_.disks().front();
  EntryList list{profile_, system.environment, std::string(kLocalPublisher), {}};
  std::vector<std::string> problems;
  const auto known = disk.get(key_of(system, kLocalPublisher), {});
  if (known && *known) {
    if (auto old = decoded(system, (*known)->artifact.bytes, kLocalPublisher, problems)) list = std::move(*old);
  }
  if (list.add(lines, true)) {
    if (Status checked = check_size(list); !checked) return checked.error();
    const Artifact artifact = artifact_of(system.system, list.encode(), list_name(system));
    if (Status put = disk.put(key_of(system, kLocalPublisher), artifact, {}); !put) return put.error();
  }
  return list;
}

Status JitTiers::put_lines(const DetectedSystem& system, const std::vector<EntryList::Line>& lines,
                           const Deadline& deadline) const {
  const auto own = put_own_list(system, lines, deadline);
  if (!own) return own.error();
  if (signer_ == nullptr) return {};
  const Status sent = send(system, *own, deadline);
  if (sent) return sent;
  return make_error(sent.error().code, "not all entries are in the remote store, only in this user's cache: " +
                                           sent.error().message + "; the next publication sends the others");
}

std::string JitTiers::list_name(const DetectedSystem& system) const {
  return "list " + profile_ + " " + system.system + " " + system.version;
}

std::vector<std::string> JitTiers::other_lists(const DetectedSystem& system) const {
  std::vector<std::string> names;
  if (components_.disks().empty()) return names;
  const auto entries = components_.disks().front()->list_entries();
  if (!entries) return names;
  for (const DiskStore::EntryInfo& entry : *entries) {
    const bool is_list = entry.target == Target::external(cache_name(system.system)) && entry.unit.starts_with("list ");
    if (is_list && entry.key != key_of(system, kLocalPublisher)) names.push_back(entry.unit);
  }
  return names;
}

Status JitTiers::check_size(const EntryList& list) const {
  if (list.lines.size() <= kMaxListLines && list.encode().size() <= kMaxListBytes) return {};
  return make_error(Code::Denied, "the list of profile '" + profile_ +
                                      "' would be larger than 4 MiB or 100000 lines; use another profile (--profile)");
}

Status JitTiers::send_entry(const std::string& system, const EntryList::Line& line, RemoteStore& remote,
                            const Deadline& deadline) const {
  if (deadline.remaining().count() == 0) return make_error(Code::TimedOut, "time limit reached");
  const ArtifactKey key = ArtifactKey::external(cache_name(system), entry_key(line.digest));
  const auto hit = components_.disks().front()->get(key, {});
  if (!hit || !*hit) return make_error(Code::InvalidArgument, "the cache does not have the entry any more");
  ServerTimeBudget budget(deadline.remaining());
  return remote.put(key, (*hit)->artifact, RequestContext().with_budget(budget));
}

Result<EntryList> JitTiers::remote_list(const DetectedSystem& system, RemoteStore& remote,
                                        const Deadline& deadline) const {
  const std::string& name_space = signer_->name_space();
  EntryList list{profile_, system.environment, name_space, {}};
  ServerTimeBudget budget(server_time(deadline));
  const auto known = remote.get(key_of(system, name_space), RequestContext().with_budget(budget));
  if (!known && known.error().code != Code::Corrupt) {
    server_failed_ = true;
    return known.error();
  }
  std::vector<std::string> problems;
  if (known && *known) {
    if (auto old = decoded(system, (*known)->artifact.bytes, name_space, problems)) list = std::move(*old);
  }
  return list;
}

// Reads the small statement of the entry, not its content. A server that does not respond counts as one that has it.
bool JitTiers::has_remote_entry(const std::string& system, const Digest& digest, const Deadline& deadline) const {
  const ArtifactKey key = ArtifactKey::external(cache_name(system), entry_key(digest));
  const auto action = object_store_->read(ObjectStore::Bucket::ActionCache, action_name(signer_->name_space(), key),
                                          RemoteStore::kMaxActionBytes, Deadline(server_time(deadline)));
  return !action || *action;
}

// Another host can have replaced the list between the read and the write. The list is therefore read again, after the
// time that such a host would need.
Status JitTiers::put_remote_list(const DetectedSystem& system, const std::vector<EntryList::Line>& lines,
                                 RemoteStore& remote, const Deadline& deadline) const {
  for (int attempt = 0; attempt < kListAttempts; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    auto list = remote_list(system, remote, deadline);
    if (!list) return list.error();
    // A line of another host for the same path stays: the entries are equivalent.
    if (!list->add(lines, attempt == 0)) return {};
    if (Status checked = check_size(*list); !checked) return checked;
    // What was sent is listed even if the time limit is reached.
    ServerTimeBudget writing(
        std::max<std::chrono::nanoseconds>(deadline.remaining(), components_.config().remote_budget * kBudgets));
    const Status listed =
        remote.put(key_of(system, signer_->name_space()), artifact_of(system.system, list->encode(), list_name(system)),
                   RequestContext().with_budget(writing));
    if (!listed) return listed;
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(2 * took + kListPause, deadline.remaining()));
    if (deadline.remaining().count() == 0) return {};
  }
  return make_error(Code::Unavailable, "other hosts replace the list at the same time");
}

// An entry before the line that names it: a line without its entry would be missing on every host.
Status JitTiers::send(const DetectedSystem& system, const EntryList& own, const Deadline& deadline) const {
  if (server_failed_) return make_error(Code::Unavailable, "the server does not respond");
  const auto remote = remote_of(signer_->name_space());
  const auto list = remote_list(system, *remote, deadline);
  if (!list) return list.error();
  std::vector<EntryList::Line> sent;
  Status result;
  for (const EntryList::Line& line : own.lines) {
    const EntryList::Line* const listed = list->find(line.path);
    if (listed != nullptr && has_remote_entry(system.system, listed->digest, deadline)) continue;
    const Status put = send_entry(system.system, line, *remote, deadline);
    if (put) sent.push_back(line);
    if (put || put.error().code == Code::InvalidArgument) continue;  // evicted or too large for the store
    result = put;
    break;
  }
  if (sent.empty()) return result;
  const Status listed = put_remote_list(system, sent, *remote, deadline);
  return listed ? result : listed;
}

}  // namespace kiln::jit
