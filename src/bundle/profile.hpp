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

#include "base/files.hpp"
#include "base/mutex.hpp"
#include "observe/observer.hpp"

namespace kiln {

/// Something that a program asked for. No source and no options are in it, so that whoever hands a profile to a build
/// cannot make it build anything that is not its own. docs/profile-format.md has the grammar.
struct Asked {
  std::string unit;  ///< its name
  std::string kind;
  UnitKey key;
  Target target;
  friend bool operator==(const Asked&, const Asked&) = default;
};

/// One line, with its end.
std::string profile_line(const Asked& asked);

struct Profile {
  std::vector<Asked> asked;        ///< each once, in the order in which they were first seen
  std::size_t lines = 0;           ///< that said something
  std::size_t not_understood = 0;  ///< torn, of another version, or none of ours
};
/// Any bytes may be given.
Profile parse_profile(std::string_view text);
Result<Profile> read_profile(const std::string& path);

/// Appends to a profile what this process asks for, each thing once. Many processes may append to one file at a time.
/// A file that cannot be written is one event and no error. Any thread.
class ProfileRecorder {
 public:
  ProfileRecorder(std::string path, Observer observer);
  void note(const Unit& unit, const Target& target);

 private:
  const std::string path_;
  const Observer observer_;
  Mutex mutex_;
  Fd file_ KILN_GUARDED_BY(mutex_);
  bool failed_ KILN_GUARDED_BY(mutex_) = false;
  std::unordered_set<std::string> noted_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
