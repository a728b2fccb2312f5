// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bare_nvrtc.hpp"
#include "base/mutex.hpp"
#include "project.hpp"
#include "session/components.hpp"

namespace kiln::test {

/// The result of one kiln lookup.
struct Got {
  bool ok = false;
  std::string bytes;
  std::vector<std::string> symbols;
  std::string origin;
  std::size_t compiles = 0;
  bool published = false;
  std::string reason;  ///< the error, or the reason why it was not published
  std::string miss;    ///< the reason why it was compiled

  bool is(const BareResult& truth) const {
    return ok == truth.ok && (!ok || (bytes == truth.bytes && symbols == truth.symbols));
  }
};

/// The number of events of each kind since `clear`. It must outlive the observers that it created. Thread-safe.
class EventCounts {
 public:
  EventEmitter emitter();
  void clear();
  std::size_t of(Event::Kind kind) const;
  std::string not_published() const;  ///< the reason; empty if everything was published
  std::string missed() const;         ///< the reason of the last miss; empty if there was none

 private:
  mutable Mutex mutex_;
  std::map<Event::Kind, std::size_t> counts_ KILN_GUARDED_BY(mutex_);
  std::string not_published_ KILN_GUARDED_BY(mutex_);
  std::string missed_ KILN_GUARDED_BY(mutex_);
};

/// Gets the unit of a project from kiln and from bare NVRTC, and counts the results. All lookups share one cache
/// directory. Most use a new `Components` for the lookup, like a new process, and the warm workers of a persistent
/// `Components` for the compile. Some use a new `Components` for both, like the first compile of a process, and some
/// the persistent one for both, like a long-lived process. Not thread-safe.
class Requester {
 public:
  /// Which `Components` objects look up and compile.
  enum class Lookups { Any, NewOnly };

  Requester(std::string cache, std::array<std::string, 2> nvrtc, bool pch);

  /// `is_edited` means that files may change during the call, so that the state behind the result is unknown.
  Got get(const Project& project, Lookups lookups = Lookups::Any, bool is_edited = false);
  BareResult bare(const Project& project);
  /// Counts a compile of inputs that were already stored.
  void add_needless() { ++needless; }
  double typical_compile_ms() const { return typical_ms_; }

  std::size_t compiles = 0;
  std::size_t bare_compiles = 0;
  std::size_t hits = 0;
  std::size_t needless = 0;             ///< compiles of inputs that were already compiled and stored
  std::size_t beyond_hints = 0;         ///< the same, if more dependency sets were stored since than a store retains
  std::map<std::string, int> unstored;  ///< reasons why results were not stored, with their counts
  std::size_t pch_created = 0;
  std::size_t pch_used = 0;
  std::size_t pch_dropped = 0;

 private:
  std::unique_ptr<Components> make_components(int compiler);
  void note(const Project& project, const std::string& request, const Got& got, bool is_edited);

  std::string cache_;
  std::array<std::string, 2> nvrtc_;
  bool pch_;
  EventCounts events_;
  std::array<std::unique_ptr<Components>, 2> kept_;  // by compiler
  BareNvrtc bare_;
  Random random_{7};
  double typical_ms_ = 100;
  std::map<std::string, std::size_t> stored_;        // inputs, and the publication count of the request when they were
                                                     // stored
  std::map<std::string, std::size_t> publications_;  // by request
};

}  // namespace kiln::test
