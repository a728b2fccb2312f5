// SPDX-License-Identifier: Apache-2.0
#include "remote/entry_verifier.hpp"

#include <algorithm>
#include <utility>

#include "base/hash.hpp"
#include "cache/entry_format.hpp"
#include "cache/hint_format.hpp"
#include "remote/action_result.hpp"
#include "remote/packed_entry.hpp"

namespace kiln {
namespace {

constexpr std::string_view kEntryDirectory = "entry/";
constexpr std::string_view kExternalDirectory = "foreign/";

// Returns whether a name is a relative path without empty, "." or ".." components. The name of an absent file may be a
// directory; "./" is then the root itself.
bool is_safe_relative_path(std::string_view name, bool may_be_directory) {
  if (may_be_directory && name == "./") return true;
  if (may_be_directory && name.ends_with('/')) name.remove_suffix(1);
  if (name.empty() || name.find('\0') != std::string_view::npos) return false;
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

}  // namespace

const char* to_string(RejectReason fault) {
  switch (fault) {
    case RejectReason::NotAnActionResult: return "not_an_action_result";
    case RejectReason::NoStatement: return "no_statement";
    case RejectReason::StatementMalformed: return "statement_malformed";
    case RejectReason::Untrusted: return "untrusted";
    case RejectReason::ContentMissing: return "content_missing";
    case RejectReason::ContentMismatch: return "content_mismatch";
    case RejectReason::EntryMalformed: return "entry_malformed";
    case RejectReason::NewerVersion: return "newer_version";
    case RejectReason::WrongNamespace: return "wrong_namespace";
    case RejectReason::TooLarge: return "too_large";
    case RejectReason::HintMalformed: return "hint_malformed";
    case RejectReason::HintUnsafePath: return "hint_unsafe_path";
  }
  return "untrusted";
}

std::string entry_subject(const ArtifactKey& key, bool external) {
  return (external ? std::string(kExternalSubject) + "entry 1 " : "kiln entry 1 ") + key.hex();
}

Digest action_name(const std::string& name_space, const ArtifactKey& key) {
  return sha256("kiln action 2 " + name_space + " " + key.hex());
}

std::string EntryPath::text() const { return std::string(external ? kExternalDirectory : kEntryDirectory) + key.hex(); }

std::optional<EntryPath> EntryPath::parse(std::string_view text) {
  const bool external = text.starts_with(kExternalDirectory);
  if (!external && !text.starts_with(kEntryDirectory)) return std::nullopt;
  text.remove_prefix((external ? kExternalDirectory : kEntryDirectory).size());
  const auto digest = Digest::from_hex(std::string(text));
  if (!digest) return std::nullopt;
  return EntryPath{{*digest}, external};
}

Digest hints_digest(const RequestKey& request) { return sha256("kiln closures 1 " + request.hex()); }

bool is_portable(const DependencySet& dependency_set) {
  return !dependency_set.is_host_specific() &&
         std::all_of(dependency_set.items.begin(), dependency_set.items.end(),
                     [](const DependencySet::Dependency& item) {
                       return is_safe_relative_path(item.name, item.state == DependencySet::State::Absent);
                     });
}

VerifiedAction verify_action(const ArtifactKey& key, const std::string& name_space, const Bytes& body,
                             const TrustPolicy& policy, std::chrono::nanoseconds wall) {
  VerifiedAction verified;
  const auto reject = [&verified](RejectReason fault, std::string message) {
    verified.rejection = Rejection::of(fault, std::move(message));
    return verified;
  };
  auto result = ActionResult::decode(as_bytes(body.view()));
  if (!result) return reject(RejectReason::NotAnActionResult, result.error().message);
  if (result->stdout_raw.empty()) return reject(RejectReason::NoStatement, "the action has no kiln statement");
  // If the path is invalid or has another key, the statement is verified before the path is rejected.
  const auto path = result->files.empty() ? std::nullopt : EntryPath::parse(result->files.front().path);
  auto stated = SignedStatement::decode(result->stdout_raw, entry_subject(key, path && path->external));
  if (!stated) return reject(RejectReason::StatementMalformed, stated.error().message);
  verified.stated = std::move(*stated);
  if (auto error = policy.verify(*verified.stated, wall)) {
    const bool forged = error->reason == TrustError::Reason::Unsigned ||
                        error->reason == TrustError::Reason::InvalidNamespace ||
                        error->reason == TrustError::Reason::BadSignature;
    verified.rejection = {RejectReason::Untrusted, to_string(error->reason), std::move(error->message), forged};
    return verified;
  }
  if (verified.stated->statement.name_space != name_space) {
    return reject(RejectReason::WrongNamespace, "a statement for namespace '" + verified.stated->statement.name_space +
                                                    "' under a name of namespace '" + name_space + "'");
  }
  if (result->files.size() != 1 || !path || path->key != key ||
      result->files.front().digest != verified.stated->statement.digest) {
    return reject(RejectReason::ContentMismatch, "the action names content other than the signed content");
  }
  // The size is not signed. It only determines how much to request.
  verified.size = result->files.front().size;
  if (verified.size > kMaxEntryBytes) {
    return reject(RejectReason::TooLarge,
                  "content size of " + std::to_string(verified.size) + " bytes exceeds the maximum entry size");
  }
  if (verified.size < kPackedHeaderBytes) {
    return reject(RejectReason::ContentMismatch,
                  "content size of " + std::to_string(verified.size) + " bytes is too small for an entry");
  }
  std::string& contents = result->files.front().contents;
  if (!contents.empty()) verified.content = Bytes::of(std::move(contents));
  return verified;
}

VerifiedContent verify_content(const ArtifactKey& key, const VerifiedAction& action, const Bytes& body) {
  const auto reject = [](RejectReason fault, std::string message) {
    return VerifiedContent{std::nullopt, Rejection::of(fault, std::move(message))};
  };
  if (body.size() != action.size || sha256(as_bytes(body.view())) != action.stated->statement.digest)
    return reject(RejectReason::ContentMismatch, "the content does not match the signed digest");
  const auto entry = unpack_entry(body);
  if (!entry) {
    const bool is_newer = entry.error().code == Code::Unsupported;
    return reject(is_newer ? RejectReason::NewerVersion : RejectReason::EntryMalformed,
                  "signed content cannot be used by this version: " + entry.error().message);
  }
  auto artifact = decode_entry(key, *entry);
  if (!artifact) {
    const bool is_newer = is_newer_entry(as_bytes(entry->view()));
    return reject(is_newer ? RejectReason::NewerVersion : RejectReason::EntryMalformed,
                  "signed content cannot be used by this version: " + artifact.error().message);
  }
  const bool external = action.stated->statement.subject == entry_subject(key, true);
  if ((artifact->target.form == Form::External) != external) {
    return reject(RejectReason::EntryMalformed,
                  external ? "the statement declares external code, but the entry is kiln's"
                           : "the entry has external code, but its statement does not declare it");
  }
  return {std::move(*artifact), std::nullopt};
}

VerifiedHints verify_hints(const RequestKey& request, const Bytes& body, std::size_t limit) {
  const auto rejected = [](RejectReason fault, std::string message) {
    return VerifiedHints{{}, Rejection::of(fault, std::move(message))};
  };
  const auto result = ActionResult::decode(as_bytes(body.view()));
  if (!result) return rejected(RejectReason::HintMalformed, result.error().message);
  const auto file = as_bytes(result->stdout_raw);
  const auto head = decode_hint_head(request, file);
  if (!head) return rejected(RejectReason::HintMalformed, head.error().message);
  if (head->file_size() != file.size()) {
    return rejected(RejectReason::HintMalformed, "the hint file does not have the size that its header states");
  }
  VerifiedHints verified;
  for (const HintHeader::Slot& slot : head->slots) {
    if (verified.dependency_sets.size() == limit) break;
    auto dependency_set = DependencySet::decode(hint_at(slot, file));
    if (!dependency_set) return rejected(RejectReason::HintMalformed, dependency_set.error().message);
    if (!is_portable(*dependency_set)) {
      // The names are not in the message: they come from an untrusted source.
      return rejected(RejectReason::HintUnsafePath,
                      "a hint names files outside the include directories and the working directory");
    }
    verified.dependency_sets.push_back(std::move(*dependency_set));
  }
  return verified;
}

}  // namespace kiln
