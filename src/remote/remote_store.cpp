// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_store.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "cache/entry_format.hpp"
#include "cache/hint_format.hpp"
#include "remote/action_result.hpp"
#include "remote/packed_entry.hpp"

namespace kiln {
namespace {

using Bucket = ObjectStore::Bucket;

// Maximum size of the ActionResult and the hint file around the dependency sets.
constexpr std::uint64_t kAroundHints = 512;

Status read_only() { return make_error(Code::Denied, "this host has no signing key; set remote.signing_key"); }

// Encodes as many of the newest dependency sets as fit.
std::string encode_newest(const RequestKey& request, std::vector<std::string> encoded) {
  encoded.resize(std::min(encoded.size(), Store::kMaxDependencySets));
  while (true) {
    const std::vector<std::string_view> views(encoded.begin(), encoded.end());
    std::string file = encode_hints(request, views);
    if (file.size() <= RemoteStore::kMaxHintBytes || encoded.empty()) return file;
    encoded.pop_back();
  }
}

std::vector<std::string> namespaces_of(const RemoteStore::Params& params) {
  std::vector<std::string> more = params.namespaces;
  if (params.signer != nullptr) more.push_back(params.signer->name_space());
  return remote_namespaces(*params.policy, more, params.scope);
}

}  // namespace

std::vector<std::string> remote_namespaces(const TrustPolicy& policy, const std::vector<std::string>& more,
                                           const NamespaceScope& scope, std::vector<std::string>* left_out) {
  std::vector<std::string> names;
  for (const std::vector<std::string>& list : {scope.named(), more, policy.named()}) {
    for (const std::string& each : list) {
      const bool is_new = std::find(names.begin(), names.end(), each) == names.end();
      if (is_new && policy.may_trust(each) && scope.admits(each)) names.push_back(each);
    }
  }
  std::stable_partition(names.begin(), names.end(), [&](const std::string& each) { return !policy.is_live(each); });
  if (names.size() <= kMaxRemoteNamespaces) return names;
  const auto first_left_out = names.begin() + kMaxRemoteNamespaces;
  if (left_out != nullptr) left_out->assign(first_left_out, names.end());
  names.erase(first_left_out, names.end());
  return names;
}

RemoteStore::RemoteStore(Params params) : params_(std::move(params)), namespaces_(namespaces_of(params_)) {}

// The result of a lookup: a miss, a verified artifact, or a rejection.
struct RemoteStore::VerifiedEntry {
  std::optional<Artifact> artifact;
  std::optional<Rejection> rejection;
};

Error RemoteStore::reject(const std::string& key, const Rejection& rejection) const {
  Error error = make_error(Code::Corrupt, params_.object_store->describe() + ": " + rejection.message);
  if (params_.emitter) {
    Event event;
    event.kind = Event::Kind::RemoteRejected;
    event.origin = "remote";
    event.key = key;
    event.selected = rejection.code;
    event.message = error.message;
    params_.emitter.emit(event);
  }
  return error;
}

Result<RemoteStore::VerifiedEntry> RemoteStore::find(const ArtifactKey& key, bool live_too, const Deadline& deadline) {
  std::optional<Rejection> rejection;  // the first
  bool is_corrupt = false;
  for (const std::string& name_space : namespaces_) {
    // A host with write access to the object store must not be able to replace a release entry with its own by
    // corrupting the former. An entry that the server has evicted is a miss.
    if (params_.policy->is_live(name_space) && (!live_too || is_corrupt)) break;
    auto found = find_in(name_space, key, deadline);
    if (!found || found->artifact) return found;
    if (!found->rejection) continue;
    is_corrupt = is_corrupt || found->rejection->fault != RejectReason::ContentMissing;
    if (!rejection) rejection = std::move(found->rejection);
  }
  return VerifiedEntry{std::nullopt, std::move(rejection)};
}

Result<RemoteStore::VerifiedEntry> RemoteStore::find_in(const std::string& name_space, const ArtifactKey& key,
                                                        const Deadline& deadline) {
  // An object that is truncated or too long is rejected.
  const auto rejected = [](RejectReason fault, const Error& error) -> Result<VerifiedEntry> {
    if (error.code != Code::Corrupt) return error;
    return VerifiedEntry{std::nullopt, Rejection::of(fault, error.message)};
  };
  const Digest name = action_name(name_space, key);
  const auto body = params_.object_store->read(Bucket::ActionCache, name, kMaxActionBytes, deadline);
  if (!body) return rejected(RejectReason::NotAnActionResult, body.error());
  if (!*body) return VerifiedEntry{};
  VerifiedAction action = verify_action(key, name_space, **body, *params_.policy, params_.clock->wall());
  if (action.rejection) return VerifiedEntry{std::nullopt, std::move(action.rejection)};

  const Digest& digest = action.stated->statement.digest;
  Result<std::optional<Bytes>> content = action.content
                                             ? std::move(action.content)
                                             : params_.object_store->read(Bucket::Cas, digest, action.size, deadline);
  if (!content) return rejected(RejectReason::ContentMismatch, content.error());
  if (!*content) {
    return VerifiedEntry{std::nullopt, Rejection::of(RejectReason::ContentMissing, "the signed content is missing")};
  }
  VerifiedContent verified = verify_content(key, action, **content);
  return VerifiedEntry{std::move(verified.artifact), std::move(verified.rejection)};
}

Result<std::optional<Hit>> RemoteStore::get(const ArtifactKey& key, const RequestContext& context) {
  auto found = find(key, true, context.server_deadline(*params_.clock, params_.read_limit));
  if (!found) return std::move(found).error();
  if (found->rejection) {
    Error error = reject(key.hex(), *found->rejection);
    if (!found->rejection->is_server_fault) return std::optional<Hit>();
    return error;
  }
  if (!found->artifact) return std::optional<Hit>();
  return std::optional<Hit>(Hit{std::move(*found->artifact), Origin::Remote});
}

Status RemoteStore::put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) {
  if (params_.signer == nullptr) return read_only();
  const Deadline deadline = context.server_deadline(*params_.clock, params_.write_limit);
  if (params_.signer->is_live()) {
    const auto released = find(key, false, deadline);
    if (!released) return released.error();
    if (released->artifact) return {};
  }
  Artifact published = artifact;  // shares the bytes
  if (!params_.publish_logs) published.metadata.log.clear();
  std::string entry = encode_entry_header(key, published);
  if (entry.size() + artifact.bytes.size() > kMaxEntryBytes) {
    return make_error(Code::InvalidArgument, "an artifact of " + std::to_string(artifact.bytes.size()) +
                                                 " bytes exceeds the maximum entry size");
  }
  entry += artifact.bytes.view();
  const auto content = pack_entry(std::move(entry));
  if (!content) return content.error();
  const Digest digest = sha256(*content);
  if (Status sent = params_.object_store->write(Bucket::Cas, digest, {*content}, deadline); !sent) return sent;
  const EntryPath path{key, artifact.target.form == Form::External};
  const SignedStatement stated = params_.signer->sign(entry_subject(key, path.external), digest, params_.clock->wall());
  ActionResult action{{{path.text(), digest, content->size()}}, stated.encode()};
  // Readers then need one request. Older ones ignore it.
  if (content->size() <= kMaxInlinedBytes) action.files.front().contents = *content;
  const Digest name = action_name(params_.signer->name_space(), key);
  return params_.object_store->write(Bucket::ActionCache, name, {action.encode()}, deadline);
}

Result<std::vector<DependencySet>> RemoteStore::dependency_sets(const RequestKey& request, std::size_t limit,
                                                                const RequestContext& context) {
  if (limit == 0) return std::vector<DependencySet>();
  const Deadline deadline = context.server_deadline(*params_.clock, params_.read_limit);
  const auto body =
      params_.object_store->read(Bucket::ActionCache, hints_digest(request), kMaxHintBytes + kAroundHints, deadline);
  if (!body && body.error().code == Code::Corrupt) {
    return reject(request.hex(), Rejection::of(RejectReason::HintMalformed, body.error().message));
  }
  if (!body) return body.error();
  if (!*body) return std::vector<DependencySet>();
  VerifiedHints verified = verify_hints(request, **body, limit);
  if (verified.rejection) return reject(request.hex(), *verified.rejection);
  return std::move(verified.dependency_sets);
}

Status RemoteStore::add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                                       const RequestContext& context) {
  if (params_.signer == nullptr) return read_only();
  const std::string encoded = dependency_set.encode();
  if (!is_portable(dependency_set) || encoded.size() > kMaxHintBytes - kAroundHints) return {};
  const Deadline deadline = context.server_deadline(*params_.clock, params_.write_limit);
  const Digest name = hints_digest(request);
  const auto body = params_.object_store->read(Bucket::ActionCache, name, kMaxHintBytes + kAroundHints, deadline);
  // An object that is not readable as dependency sets is overwritten.
  if (!body && body.error().code != Code::Corrupt) return body.error();
  std::vector<std::string> all;
  if (body && *body) {
    for (const DependencySet& known : verify_hints(request, **body, kMaxDependencySets).dependency_sets)
      all.push_back(known.encode());
  }
  if (!all.empty() && all.front() == encoded) return {};
  std::erase(all, encoded);
  all.insert(all.begin(), encoded);
  const ActionResult action{{}, encode_newest(request, std::move(all))};
  // If two hosts write at once, one dependency set is lost, which costs a compile later.
  return params_.object_store->write(Bucket::ActionCache, name, {action.encode()}, deadline);
}

Status RemoteStore::remove(const ArtifactKey& key) {
  const Deadline deadline(*params_.clock, params_.write_limit);
  for (const std::string& name_space : namespaces_) {
    Status removed = params_.object_store->remove(Bucket::ActionCache, action_name(name_space, key), deadline);
    if (!removed) return removed;
  }
  return {};
}

std::string RemoteStore::describe() const {
  const bool is_unused = namespaces_.empty() && params_.signer == nullptr;
  const char* const unread = is_unused ? " (not read: no namespace is trusted, see 'kiln trust add')" : "";
  return "remote " + params_.object_store->describe() + unread;
}

}  // namespace kiln
