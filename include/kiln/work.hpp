#pragma once

#include <cstdint>
#include <string>

#include <kiln/export.hpp>

namespace kiln {

/// Where the rows are that an operation works on.
enum class Residency : unsigned char { Unknown, Host, Device };
KILN_API const char* to_string(Residency residency);

/// What a copy or a wait is for, as far as whoever makes it says so. An audit believes it only as far as what follows
/// agrees: docs/audit.md.
enum class Purpose : unsigned char {
  Unsaid,
  Input,        ///< rows come to the device because the program handed them over
  Size,         ///< one scalar is read that says how much to allocate
  Materialise,  ///< results go to the host because somebody asked for them there
  Trace,        ///< only there to measure: without a trace it would not be
};
KILN_API const char* to_string(Purpose purpose);

/// What a thread is doing, in the words of the program. Every event that the thread causes carries it.
struct Work {
  std::string operation;       ///< "spatial.sjoin"
  std::string stage;           ///< "refine"
  std::uint64_t dispatch = 0;  ///< which run of the operation; of a number no other in this process has; zero: none
  std::uint64_t workflow = 0;  ///< by which decision, likewise
  std::uint64_t rows = 0;
  Residency residency = Residency::Unknown;
  Purpose purpose = Purpose::Unsaid;
};

/// For as long as it lives the calling thread does this work, and after it what it did before. On the stack of one
/// thread; no two of a thread overlap in part.
class KILN_API WorkScope {
 public:
  explicit WorkScope(Work work);
  ~WorkScope();
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;

  /// The calling thread's; null where it said nothing.
  static const Work* current() noexcept;

  /// A kernel was put on a stream by the calling thread. kiln's own launches say so; whoever launches a native handle
  /// by himself says so too, or his work does not count as done on a device.
  static void count_launch() noexcept;
  /// How many were while it lived, in scopes inside of it too.
  std::uint64_t launches() const noexcept { return launches_; }

 private:
  const Work work_;
  WorkScope* const outer_;
  std::uint64_t launches_ = 0;
};

}  // namespace kiln
