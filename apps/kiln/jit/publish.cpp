// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/publish.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "apps/kiln/jit/entry_pack.hpp"
#include "apps/kiln/jit/filled_record.hpp"
#include "apps/kiln/jit/place.hpp"
#include "apps/kiln/jit/scan.hpp"
#include "backends/source_scan.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln::jit {
namespace {

using PublishState = PublishOutcome::State;

// Returns the next place of the root's path in a text, not as a part of a longer name: `/cache` is not in `/my/cache`
// nor in `/cache_add.json`.
std::size_t find_root(std::string_view text, std::string_view root, std::size_t from) {
  const auto is_part = [](char each) {
    return is_word(each) || std::string_view("-.+@=~").find(each) != std::string_view::npos;
  };
  for (std::size_t at = text.find(root, from); at != std::string_view::npos; at = text.find(root, at + 1)) {
    const std::size_t end = at + root.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) return at;
  }
  return std::string_view::npos;
}

std::string without_root(std::string_view text, std::string_view root) {
  std::string result;
  std::size_t from = 0;
  for (std::size_t at = find_root(text, root, 0); at != std::string_view::npos; at = find_root(text, root, from)) {
    result.append(text.substr(from, at - from)).append(kRootPlaceholder);
    from = at + root.size();
  }
  return result.append(text.substr(from));
}

/// An entry that was read whole, or the reason why it was not.
struct ReadEntry {
  PublishState state = PublishState::Published;
  std::string reason;
  std::string packed;
};

/// Reads the entries of one root.
class EntryReader {
 public:
  EntryReader(int root, const std::string& path, const Rule& rule, std::uint64_t limit, std::chrono::nanoseconds settle)
      : root_(root), rule_(rule), limit_(limit), settle_(settle), spellings_{path} {
    std::error_code error;
    const std::string real = std::filesystem::canonical(path, error).string();
    if (!error && real != path) spellings_.push_back(real);
    // A path that is the start of another one must come after it.
    std::sort(spellings_.begin(), spellings_.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  }

  ReadEntry read(const std::string& path) const {
    const auto files = scan_entry(root_, rule_, path);
    if (!files) return refused(files.error());
    if (const ReadEntry early = check(*files); early.state != PublishState::Published) return early;
    std::vector<Bytes> contents;
    for (const ScannedFile& file : *files) {
      auto bytes = read_scanned(root_, rule_, path, file);
      if (!bytes) return refused(bytes.error());
      contents.push_back(std::move(*bytes));
    }
    // A second scan: no file was added, removed or changed while the entry was read.
    const auto again = scan_entry(root_, rule_, path);
    if (!again || *again != *files) return {PublishState::Changing, "its files changed while they were read", {}};
    return pack(*files, contents);
  }

 private:
  static ReadEntry refused(const Error& error) {
    return {error.code == Code::Denied ? PublishState::Refused : PublishState::Changing, error.message, {}};
  }

  ReadEntry check(const std::vector<ScannedFile>& files) const {
    std::uint64_t size = 0;
    const auto now = system_clock().wall();
    for (const ScannedFile& file : files) {
      size += file.stamp.size;
      if (size > limit_) return {PublishState::Refused, "larger than the limit of one entry", {}};
      if (settle_.count() > 0 && file.stamp.is_newer_than(settle_, now))
        return {PublishState::Changing, "'" + file.path + "' was written a moment ago", {}};
    }
    for (const PathPattern& pattern : rule_.whole) {
      if (std::none_of(files.begin(), files.end(), [&](const auto& file) { return pattern.matches_file(file.path); }))
        return {PublishState::Incomplete, "it has no file " + pattern.text(), {}};
    }
    if (files.empty()) return {PublishState::Incomplete, "it has no files", {}};
    return {};
  }

  ReadEntry pack(const std::vector<ScannedFile>& files, const std::vector<Bytes>& contents) const {
    EntryPack pack{rule_.kind, {}};
    std::size_t rewritten_bytes = 0;
    std::vector<std::string> rewritten(files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
      PackedFile file{files[i].path, files[i].executable, false, contents[i].view()};
      if (file.bytes.find(kRootPlaceholder) != std::string_view::npos)
        return {PublishState::Refused, "'" + files[i].path + "' contains kiln's placeholder", {}};
      if (contains_root(file.bytes)) {
        if (!any_matches(rule_.rewrite, file.path))
          return {PublishState::Refused, "'" + files[i].path + "' contains the path of the cache directory", {}};
        rewritten[i] = file.bytes;
        for (const std::string& spelling : spellings_) rewritten[i] = without_root(rewritten[i], spelling);
        file.bytes = rewritten[i];
        file.rewritten = true;
        rewritten_bytes += file.bytes.size();
        if (rewritten_bytes > kMaxRewrittenBytes)
          return {PublishState::Refused, "the files with the path of the cache directory have more than 1 MiB", {}};
      } else if (rule_.must_contain_root(file.path)) {
        return {PublishState::Refused,
                "'" + files[i].path +
                    "' does not contain the path of the cache directory, which was moved or copied; remove the entry",
                {}};
      }
      pack.files.push_back(file);
    }
    return {PublishState::Published, {}, encode_pack(pack)};
  }

  bool contains_root(std::string_view bytes) const {
    return std::any_of(spellings_.begin(), spellings_.end(),
                       [&](const std::string& each) { return find_root(bytes, each, 0) != std::string_view::npos; });
  }

  const int root_;
  const Rule& rule_;
  const std::uint64_t limit_;
  const std::chrono::nanoseconds settle_;
  std::vector<std::string> spellings_;  // of the path of the root
};

/// Publishes the entries of one root.
class RootPublisher {
 public:
  RootPublisher(const JitTiers& tiers, const DetectedSystem& system, const FilledRecord& filled, const Limits& limits,
                const Deadline& deadline)
      : tiers_(tiers), system_(system), filled_(filled), limits_(limits), deadline_(deadline) {
    std::vector<std::string> problems;
    for (const FoundList& found : tiers.lists(system, deadline, problems)) {
      for (const EntryList::Line& line : found.list.lines) {
        if (found.source == kOwnSource) own_.emplace(line.path, line.digest);
        if (found.source != kOwnSource) foreign_.insert(line.digest.bytes);
      }
    }
  }

  PublishOutcome add(const std::string& path, const EntryReader& reader) {
    // By its path: the system can have changed the entry, or the versions that the lists are for.
    if (filled_.is_of_others(path)) return {PublishState::Known, path, {}, 0};
    PublishOutcome outcome{PublishState::Refused, path, "time limit reached", 0};
    if (deadline_.remaining().count() == 0) return outcome;
    ReadEntry entry = reader.read(path);
    outcome.state = entry.state;
    outcome.reason = std::move(entry.reason);
    if (outcome.state != PublishState::Published) return outcome;
    outcome.bytes = entry.packed.size();
    const Digest digest = sha256(entry.packed);
    if (is_known(path, digest)) {
      outcome.state = PublishState::Known;
      return outcome;
    }
    Status stored;
    total_ += outcome.bytes;
    if (total_ > limits_.system_bytes) {
      stored = make_error(Code::Denied, "limit of the system reached");
    } else {
      stored = tiers_.put_entry(system_.system, digest, std::move(entry.packed), path);
    }
    if (stored) {
      lines_.push_back({path, digest, outcome.bytes});
    } else {
      outcome.state = PublishState::Refused;
      outcome.reason = stored.error().message;
    }
    return outcome;
  }

  /// Adds the published entries to the lists. Without new entries it repairs the list in the remote store.
  Status finish() const { return tiers_.put_lines(system_, lines_, deadline_); }

 private:
  // A line without its entry is of no use: a store can have removed the entry, or the cache can have evicted it. Then
  // it is stored again.
  bool is_known(const std::string& path, const Digest& digest) const {
    if (foreign_.contains(digest.bytes) && tiers_.entry(system_.system, digest, deadline_)) return true;
    const auto own = own_.find(path);
    return own != own_.end() && own->second == digest && tiers_.has_own_entry(system_.system, digest);
  }

  const JitTiers& tiers_;
  const DetectedSystem& system_;
  const FilledRecord& filled_;
  const Limits& limits_;
  const Deadline& deadline_;
  std::map<std::string, Digest> own_;               // lines of this user's list
  std::set<std::array<std::uint8_t, 32>> foreign_;  // entries of other publishers
  std::vector<EntryList::Line> lines_;
  std::uint64_t total_ = 0;
};

}  // namespace

std::size_t PublishReport::count(PublishOutcome::State state) const {
  return static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(), [&](const PublishOutcome& each) { return each.state == state; }));
}

PublishReport publish(const JitTiers& tiers, const DetectedSystem& system, const std::string& root,
                      const Limits& limits, const Deadline& deadline, std::chrono::nanoseconds settle) {
  PublishReport report;
  report.system = system.system;
  report.root = root;
  const auto directory = open_root(root, false);
  if (!directory) {
    if (directory.error().code != Code::Unavailable) report.error = directory.error().message;
    return report;
  }
  const auto filled = FilledRecord::read(directory->get());
  if (!filled) {
    report.error = filled.error().message;
    return report;
  }
  const Rule& rule = *system.rule;
  RootPublisher publisher(tiers, system, *filled, limits, deadline);
  const EntryReader reader(directory->get(), root, rule, std::min(limits.entry_bytes, kMaxPackBytes), settle);
  for (const std::string& path : find_entries(directory->get(), rule))
    report.entries.push_back(publisher.add(path, reader));
  if (Status listed = publisher.finish(); !listed) report.error = listed.error().message;
  return report;
}

}  // namespace kiln::jit
