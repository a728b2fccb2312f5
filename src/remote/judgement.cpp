#include "remote/judgement.hpp"

#include <algorithm>
#include <utility>

#include "base/hash.hpp"
#include "remote/action_result.hpp"
#include "store/entry_format.hpp"
#include "store/hint_format.hpp"

namespace kiln {
namespace {

// A relative name of a file without a step up, to here or into nowhere. What is absent may be a folder, and "./" is the
// root itself.
bool stays_below(std::string_view name, bool may_be_folder) {
  if (may_be_folder && name == "./") return true;
  if (may_be_folder && name.ends_with('/')) name.remove_suffix(1);
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

const char* to_string(RemoteFault fault) {
  switch (fault) {
    case RemoteFault::NotAnActionResult: return "not_an_action_result";
    case RemoteFault::NoStatement: return "no_statement";
    case RemoteFault::StatementMalformed: return "statement_malformed";
    case RemoteFault::Distrusted: return "distrusted";
    case RemoteFault::ContentMissing: return "content_missing";
    case RemoteFault::ContentDiffers: return "content_differs";
    case RemoteFault::EntryMalformed: return "entry_malformed";
    case RemoteFault::TooLarge: return "too_large";
    case RemoteFault::HintMalformed: return "hint_malformed";
    case RemoteFault::HintHostile: return "hint_hostile";
  }
  return "distrusted";
}

std::string entry_subject(const Key& key) { return "kiln entry 1 " + key.hex(); }

Digest closures_place(const RequestKey& request) { return sha256("kiln closures 1 " + request.hex()); }

bool may_travel(const Closure& closure) {
  return !closure.of_this_host() &&
         std::all_of(closure.items.begin(), closure.items.end(), [](const Closure::Item& item) {
           return stays_below(item.name, item.state == Closure::State::Absent);
         });
}

JudgedAction judge_action(const Key& key, const Bytes& body, const TrustPolicy& policy, std::chrono::nanoseconds wall) {
  JudgedAction judged;
  const auto reject = [&judged](RemoteFault fault, std::string message) {
    judged.rejection = Rejection::of(fault, std::move(message));
    return judged;
  };
  const auto result = ActionResult::decode(as_bytes(body.view()));
  if (!result) return reject(RemoteFault::NotAnActionResult, result.error().message);
  if (result->said.empty()) return reject(RemoteFault::NoStatement, "an action that has no statement of kiln's");
  auto stated = SignedStatement::decode(result->said, entry_subject(key));
  if (!stated) return reject(RemoteFault::StatementMalformed, stated.error().message);
  judged.stated = std::move(*stated);
  if (auto doubt = policy.doubt(*judged.stated, wall)) {
    const bool forged = doubt->why == Doubt::Why::Unsigned || doubt->why == Doubt::Why::NotANamespace ||
                        doubt->why == Doubt::Why::BadSignature;
    judged.rejection = {RemoteFault::Distrusted, to_string(doubt->why), std::move(doubt->message), forged};
    return judged;
  }
  if (result->files.size() != 1 || result->files.front().path != kEntryFile ||
      result->files.front().digest != judged.stated->statement.digest) {
    return reject(RemoteFault::ContentDiffers, "an action that names another content than was signed");
  }
  // The size is not signed: it only says how much to ask for.
  judged.size = result->files.front().size;
  if (judged.size > kLargestEntry) {
    return reject(RemoteFault::TooLarge, "a content of " + std::to_string(judged.size) + " bytes, which no entry has");
  }
  if (judged.size < EntryHeader::kSize) {
    return reject(RemoteFault::ContentDiffers, "a content of " + std::to_string(judged.size) + " bytes is no entry");
  }
  return judged;
}

JudgedContent judge_content(const Key& key, const JudgedAction& action, const Bytes& body) {
  if (body.size() != action.size || sha256(as_bytes(body.view())) != action.stated->statement.digest) {
    return {std::nullopt, Rejection::of(RemoteFault::ContentDiffers, "another content than the one that was signed")};
  }
  auto artifact = decode_entry(key, body);
  if (!artifact) {
    return {std::nullopt, Rejection::of(RemoteFault::EntryMalformed,
                                        "signed content that this kiln cannot use: " + artifact.error().message)};
  }
  return {std::move(*artifact), std::nullopt};
}

JudgedHints judge_hints(const RequestKey& request, const Bytes& body, std::size_t limit) {
  const auto rejected = [](RemoteFault fault, std::string message) {
    return JudgedHints{{}, Rejection::of(fault, std::move(message))};
  };
  const auto result = ActionResult::decode(as_bytes(body.view()));
  if (!result) return rejected(RemoteFault::HintMalformed, result.error().message);
  const auto file = as_bytes(result->said);
  const auto head = decode_hint_head(request, file);
  if (!head) return rejected(RemoteFault::HintMalformed, head.error().message);
  if (head->file_size() != file.size()) {
    return rejected(RemoteFault::HintMalformed, "a hint file that is longer or shorter than it says");
  }
  JudgedHints judged;
  for (const HintHead::Slot& slot : head->slots) {
    if (judged.closures.size() == limit) break;
    auto closure = Closure::decode(hint_in(slot, file));
    if (!closure) return rejected(RemoteFault::HintMalformed, closure.error().message);
    if (!may_travel(*closure)) {
      // The names are not repeated: they come from outside, and may be anything.
      return rejected(RemoteFault::HintHostile,
                      "a hint that names files outside of the include folders and the working folder");
    }
    judged.closures.push_back(std::move(*closure));
  }
  return judged;
}

}  // namespace kiln
