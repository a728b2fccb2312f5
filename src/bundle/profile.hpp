// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>

#include "base/files/files.hpp"
#include "base/mutex.hpp"
#include "events/event_emitter.hpp"

namespace kiln {

/// A unit that a program requested, for one target. It has no source and no options, so that a profile cannot make a
/// build compile anything that is not its own (docs/internals/formats/small-files.md).
struct ProfileEntry {
  std::string unit;  ///< name of the unit
  std::string kind;
  UnitKey key;
  Target target;
  friend bool operator==(const ProfileEntry&, const ProfileEntry&) = default;
};

/// Returns one line with its line end.
std::string profile_line(const ProfileEntry& asked);

struct Profile {
  std::vector<ProfileEntry> entries;  ///< without duplicates, in the order of first occurrence
  std::size_t lines = 0;              ///< lines that are not empty
  std::size_t skipped_lines = 0;      ///< lines that are incomplete, of another version or not from kiln
};
/// Parses a profile. Accepts any bytes.
Profile parse_profile(std::string_view text);
Result<Profile> read_profile(const std::string& path);

/// Appends the requests of this process to a profile, each once. Several processes can append to one file at the same
/// time. If the file cannot be written, it emits one event; that is not an error. Thread-safe.
class ProfileRecorder {
 public:
  ProfileRecorder(std::string path, EventEmitter emitter);
  void note(const Unit& unit, const Target& target);

 private:
  const std::string path_;
  const EventEmitter emitter_;
  Mutex mutex_;
  Fd file_ KILN_GUARDED_BY(mutex_);
  bool failed_ KILN_GUARDED_BY(mutex_) = false;
  std::unordered_set<std::string> noted_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
