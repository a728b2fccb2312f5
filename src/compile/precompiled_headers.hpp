#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file_digests.hpp"
#include "base/mutex.hpp"
#include "compile/pch_shelf.hpp"
#include "compile/worker_protocol.hpp"
#include "observe/observer.hpp"

namespace kiln {

/// Sees to it that headers which several CUDA units share are parsed once on this host. For each compile it decides
/// whether to use a precompiled header, to make one, or neither; afterwards it keeps or drops what came of it. What it
/// changes is how long a compile takes, never what comes out. Any thread.
///
/// A precompiled header is used only where every file that went into it is as it was, by content: NVRTC itself would
/// notice neither an edited nor a shadowed header and would give old code.
class PrecompiledHeaders {
 public:
  /// `shelf` says where they are kept, or that there are to be none; it is asked once, at the first need.
  using FindShelf = std::function<std::optional<PchShelf::Options>()>;
  PrecompiledHeaders(FindShelf shelf, FileDigests& digests, Observer observer);

  /// Which headers a unit begins with, in a form that tells whether two can share a precompiled one; nothing where
  /// there is nothing to share. Costs a look through the source.
  std::optional<Digest> headers_of(const Recipe& recipe);

  /// Somebody who is about to compile a unit with these headers; several at once are worth a precompiled one.
  class Interest {
   public:
    Interest(PrecompiledHeaders& owner, const Digest& headers);
    ~Interest();
    Interest(const Interest&) = delete;
    Interest& operator=(const Interest&) = delete;

   private:
    PrecompiledHeaders& owner_;
    const Digest headers_;
  };

  /// That a precompiled header is being made in this process, until it is destroyed.
  class Underway {
   public:
    Underway(PrecompiledHeaders& owner, const Digest& headers);
    ~Underway();
    Underway(const Underway&) = delete;
    Underway& operator=(const Underway&) = delete;

   private:
    PrecompiledHeaders& owner_;
    const Digest headers_;
  };

  /// What one compile does about its headers.
  struct Plan {
    PchOrder order;
    Digest headers{};
    std::unique_ptr<Underway> underway;        ///< Create; goes after what was made is published
    std::unique_ptr<PchShelf::Making> making;  ///< Create
    std::vector<Observation> observations;     ///< Use: what was asked when it was made, with the stamps of now
    bool made_alone = false;                   ///< Create: it was made, and nothing else was
  };
  Plan plan(const Recipe& recipe, const Digest& headers);

  /// What became of it. Gives all that the compile depended on: what it asked itself, and where it used a precompiled
  /// header what had been asked for that.
  std::vector<Observation> settle(Plan& plan, const Recipe& recipe, const WorkerReply& reply);
  /// A worker died with this plan: the precompiled header that it used is not trusted any more.
  void suspect(const Plan& plan, const Recipe& recipe);

 private:
  /// `start` is what begins the units that can share them.
  static Digest digest_of(const Recipe& recipe, const std::vector<std::string>& start);
  std::optional<Plan> use(const Recipe& recipe, const Digest& headers);
  bool is_worth_making(const Recipe& recipe, const Digest& headers);
  bool wait_for_maker(const Recipe& recipe, const Digest& headers);
  void keep(Plan& plan, const Recipe& recipe, const WorkerReply& reply);
  /// What was made, or was to be made, cannot be kept.
  void give_up(const Recipe& recipe, const Digest& headers, const std::string& why);
  void drop(const Recipe& recipe, const Digest& headers, const std::string& why);
  void tell(Event::Kind kind, const Recipe& recipe, std::string message) const;

  const FindShelf find_shelf_;
  std::once_flag found_;
  std::unique_ptr<PchShelf> shelf_;  // null: none; constant once it was looked for
  FileDigests& digests_;
  const Observer observer_;
  Mutex mutex_;
  Condition made_;
  struct Sight {
    std::optional<std::chrono::nanoseconds> making;  // since when somebody in this process does, by the steady clock
    unsigned interested = 0;                         // who are compiling units with these headers now
    bool seen = false;                               // somebody has before
    unsigned vain = 0;                               // how often making a precompiled one came to nothing
  };
  std::unordered_map<Digest, Sight> sights_ KILN_GUARDED_BY(mutex_);
  bool unavailable_ KILN_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln
