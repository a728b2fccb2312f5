#include "remote/remote_store.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "remote/action_result.hpp"
#include "store/allowance.hpp"
#include "store/entry_format.hpp"
#include "store/hint_format.hpp"

namespace kiln {
namespace {

using Shelf = Depot::Shelf;

// What there is around closures at most, of the ActionResult and of the hint file.
constexpr std::uint64_t kAroundHints = 512;

Status read_only() { return failure(Code::Refused, "this host has no key to publish with; name one with remote.sign"); }

// As many of the newest as fit.
std::string encode_newest(const RequestKey& request, std::vector<std::string> encoded) {
  encoded.resize(std::min(encoded.size(), Store::kMostClosures));
  while (true) {
    const std::vector<std::string_view> views(encoded.begin(), encoded.end());
    std::string file = encode_hints(request, views);
    if (file.size() <= RemoteStore::kMostHintBytes || encoded.empty()) return file;
    encoded.pop_back();
  }
}

}  // namespace

// What is under a key: nothing, an artifact, or what had to be rejected.
struct RemoteStore::Found {
  std::optional<Artifact> artifact;
  bool live = false;
  std::optional<Rejection> rejection;
};

Error RemoteStore::reject(const std::string& key, const Rejection& rejection) const {
  Error error = failure(Code::Corrupt, parts_.depot->describe() + ": " + rejection.message);
  if (parts_.observer) {
    Event event;
    event.kind = Event::Kind::RemoteRefused;
    event.origin = "remote";
    event.key = key;
    event.selected = rejection.word;
    event.message = error.message;
    parts_.observer.tell(event);
  }
  return error;
}

Result<RemoteStore::Found> RemoteStore::find(const Key& key, const Deadline& deadline) {
  // What a depot cut off, or would not end, is no body.
  const auto rejected = [](RemoteFault fault, const Error& error) -> Result<Found> {
    if (error.code != Code::Corrupt) return error;
    return Found{std::nullopt, false, Rejection::of(fault, error.message)};
  };
  const auto body = parts_.depot->read(Shelf::Action, key.digest, kMostActionBytes, deadline.left());
  if (!body) return rejected(RemoteFault::NotAnActionResult, body.error());
  if (!*body) return Found{};
  JudgedAction action = judge_action(key, **body, *parts_.policy, parts_.clock->wall());
  const bool live = action.stated && action.stated->certificate.has_value();
  if (action.rejection) return Found{std::nullopt, live, std::move(action.rejection)};

  const Digest& digest = action.stated->statement.digest;
  const auto content = parts_.depot->read(Shelf::Content, digest, action.size, deadline.left());
  if (!content) return rejected(RemoteFault::ContentDiffers, content.error());
  if (!*content) {
    Rejection gone = Rejection::of(RemoteFault::ContentMissing, "the content that was signed is gone");
    gone.against_server = false;
    return Found{std::nullopt, live, std::move(gone)};
  }
  JudgedContent judged = judge_content(key, action, **content);
  return Found{std::move(judged.artifact), live, std::move(judged.rejection)};
}

Result<std::optional<Hit>> RemoteStore::get(const Key& key) {
  auto found = find(key, Deadline(*parts_.clock, Allowance::at_most(parts_.read_limit)));
  if (!found) return std::move(found).error();
  if (found->rejection) {
    Error error = reject(key.hex(), *found->rejection);
    if (!found->rejection->against_server) return std::optional<Hit>();
    return error;
  }
  if (!found->artifact) return std::optional<Hit>();
  return std::optional<Hit>(Hit{std::move(*found->artifact), Origin::Remote});
}

Status RemoteStore::put(const Key& key, const Artifact& artifact) {
  if (parts_.signer == nullptr) return read_only();
  const Deadline deadline(*parts_.clock, Allowance::at_most(parts_.write_limit));
  if (parts_.signer->is_live()) {
    const auto there = find(key, deadline);
    if (!there) return there.error();
    if (there->artifact && !there->live) return {};
  }
  const std::string head = encode_entry_head(key, artifact);
  const std::uint64_t size = head.size() + artifact.bytes.size();
  if (size > kLargestEntry) {
    return failure(Code::InvalidArgument,
                   "an artifact of " + std::to_string(artifact.bytes.size()) + " bytes is larger than an entry may be");
  }
  const std::string_view payload = artifact.bytes.view();
  const Digest digest = Sha256().add(as_bytes(head)).add(as_bytes(payload)).finish();
  if (Status sent = parts_.depot->write(Shelf::Content, digest, {head, payload}, deadline.left()); !sent) return sent;
  const SignedStatement stated = parts_.signer->sign(entry_subject(key), digest, parts_.clock->wall());
  const ActionResult action{{{kEntryFile, digest, size}}, stated.encode()};
  return parts_.depot->write(Shelf::Action, key.digest, {action.encode()}, deadline.left());
}

Result<std::vector<Closure>> RemoteStore::closures(const RequestKey& request, std::size_t limit) {
  if (limit == 0) return std::vector<Closure>();
  const Deadline deadline(*parts_.clock, Allowance::at_most(parts_.read_limit));
  const auto body =
      parts_.depot->read(Shelf::Action, closures_place(request), kMostHintBytes + kAroundHints, deadline.left());
  if (!body && body.error().code == Code::Corrupt) {
    return reject(request.hex(), Rejection::of(RemoteFault::HintMalformed, body.error().message));
  }
  if (!body) return body.error();
  if (!*body) return std::vector<Closure>();
  JudgedHints judged = judge_hints(request, **body, limit);
  if (judged.rejection) return reject(request.hex(), *judged.rejection);
  return std::move(judged.closures);
}

Status RemoteStore::add_closure(const RequestKey& request, const Closure& closure) {
  if (parts_.signer == nullptr) return read_only();
  const std::string encoded = closure.encode();
  if (!may_travel(closure) || encoded.size() > kMostHintBytes - kAroundHints) return {};
  const Deadline deadline(*parts_.clock, Allowance::at_most(parts_.write_limit));
  const Digest place = closures_place(request);
  const auto body = parts_.depot->read(Shelf::Action, place, kMostHintBytes + kAroundHints, deadline.left());
  // What cannot be read as closures is written over.
  if (!body && body.error().code != Code::Corrupt) return body.error();
  std::vector<std::string> all;
  if (body && *body) {
    for (const Closure& known : judge_hints(request, **body, kMostClosures).closures) all.push_back(known.encode());
  }
  if (!all.empty() && all.front() == encoded) return {};
  std::erase(all, encoded);
  all.insert(all.begin(), encoded);
  const ActionResult action{{}, encode_newest(request, std::move(all))};
  // Two writers at once: one closure is lost and costs a compile some day.
  return parts_.depot->write(Shelf::Action, place, {action.encode()}, deadline.left());
}

Status RemoteStore::remove(const Key& key) {
  const Deadline deadline(*parts_.clock, Allowance::at_most(parts_.write_limit));
  return parts_.depot->remove(Shelf::Action, key.digest, deadline.left());
}

std::string RemoteStore::describe() const { return "remote " + parts_.depot->describe(); }

}  // namespace kiln
