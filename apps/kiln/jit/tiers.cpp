// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/tiers.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "remote/remote_store.hpp"
#include "session/access.hpp"
#include "session/config/trust_policy_file.hpp"
#include "session/remote_factory.hpp"

namespace kiln::jit {
namespace {

using namespace std::chrono_literals;

// Time for one request to a server, as a multiple of `remote.budget`: an entry is larger than an artifact.
constexpr int kBudgets = 10;
// Time to wait for another process that updates the same list.
constexpr auto kListWait = 5s;

Artifact artifact_of(const std::string& system, std::string bytes, const std::string& name) {
  Artifact artifact;
  artifact.bytes = Bytes::of(std::move(bytes));
  artifact.target = Target::external(cache_name(system));
  artifact.metadata.unit = name;
  artifact.metadata.compiler = cache_name(system);
  return artifact;
}

}  // namespace

JitTiers::JitTiers(Session& session, std::string profile)
    : session_(session), profile_(std::move(profile)), components_(detail::SessionAccess::components(session)) {
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
  if (object_store_ == nullptr) return found;
  const Config& config = components_.config();
  for (const std::string& name :
       remote_namespaces(*policy_, remote_namespaces_of(config), NamespaceScope().narrowed(config.trust_namespaces))) {
    if (system.rule->host_code && policy_->is_live(name)) continue;
    ServerTimeBudget budget(server_time(deadline));
    const auto hit = remote_of(name)->get(key_of(system, name), RequestContext().with_budget(budget));
    if (!hit) {
      problems.push_back("the list of " + system.system + " in namespace " + name +
                         " cannot be read: " + hit.error().message);
      if (hit.error().code != Code::Corrupt) break;  // the server does not respond
    } else if (*hit) {
      add((*hit)->artifact.bytes, name, "remote " + name);
    }
  }
  return found;
}

std::optional<Bytes> JitTiers::entry(const std::string& system, const Digest& digest, const Deadline& deadline) const {
  Store* const store = components_.params().store;
  if (store == nullptr) return std::nullopt;
  ServerTimeBudget budget(server_time(deadline));
  auto hit =
      store->get(ArtifactKey::external(cache_name(system), entry_key(digest)), RequestContext().with_budget(budget));
  if (!hit || !*hit) return std::nullopt;
  Bytes bytes = std::move((*hit)->artifact.bytes);
  if (sha256({bytes.data(), bytes.size()}) != digest) return std::nullopt;
  return bytes;
}

Status JitTiers::put_entry(const std::string& system, const Digest& digest, std::string bytes, const std::string& name,
                           const Deadline& deadline) const {
  Status stored = session_.external_cache(cache_name(system)).put(entry_key(digest), Bytes::of(std::move(bytes)), name);
  // The queue of uploads is bounded and drops what exceeds it.
  if (!session_.wait_for_uploads(deadline.remaining()) && stored)
    return make_error(Code::TimedOut, "the upload of '" + name + "' took too long; give more time with --time");
  return stored;
}

bool JitTiers::has_own_entry(const std::string& system, const Digest& digest) const {
  if (components_.disks().empty()) return false;
  const auto hit = components_.disks().front()->get(ArtifactKey::external(cache_name(system), entry_key(digest)), {});
  return hit && *hit;
}

Status JitTiers::put_lines(const DetectedSystem& system, const std::vector<EntryList::Line>& lines,
                           const Deadline& deadline) const {
  if (components_.disks().empty())
    return make_error(Code::Unavailable, "there is no writable cache; set cache.dir (KILN_CACHE_DIR)");
  const std::string key = list_key(profile_, system.environment, kLocalPublisher);
  // Holds the claim while the list is read and replaced. Without it a line of another process could be lost, which its
  // next publication repairs.
  const auto turn = session_.external_cache(cache_name(system.system)).get_or_claim("update\n" + key, kListWait);
  DiskStore& disk = *components_.disks().front();
  EntryList list{profile_, system.environment, std::string(kLocalPublisher), {}};
  std::vector<std::string> problems;
  const auto known = disk.get(key_of(system, kLocalPublisher), {});
  if (known && *known) {
    if (auto old = decoded(system, (*known)->artifact.bytes, kLocalPublisher, problems)) list = std::move(*old);
  }
  if (list.add(lines, true)) {
    if (Status checked = check_size(list); !checked) return checked;
    const Artifact artifact = artifact_of(system.system, list.encode(), list_name(system));
    if (Status put = disk.put(key_of(system, kLocalPublisher), artifact, {}); !put) return put;
  }
  return signer_ != nullptr ? put_remote_list(system, list, deadline) : Status();
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

Status JitTiers::put_remote_list(const DetectedSystem& system, const EntryList& local, const Deadline& deadline) const {
  const std::string& name_space = signer_->name_space();
  const auto remote = remote_of(name_space);
  ServerTimeBudget budget(deadline.remaining());
  const RequestContext context = RequestContext().with_budget(budget);
  EntryList list{profile_, system.environment, name_space, {}};
  std::vector<std::string> problems;
  const auto known = remote->get(key_of(system, name_space), context);
  if (!known && known.error().code != Code::Corrupt) return known.error();
  if (known && *known) {
    if (auto old = decoded(system, (*known)->artifact.bytes, name_space, problems)) list = std::move(*old);
  }
  // Lines of other hosts stay: their entries are equivalent.
  if (!list.add(local.lines, false)) return {};
  if (Status checked = check_size(list); !checked) return checked;
  return remote->put(key_of(system, name_space), artifact_of(system.system, list.encode(), list_name(system)), context);
}

}  // namespace kiln::jit
