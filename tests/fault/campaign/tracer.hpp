// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kiln::test {

/// The fault that is injected into one system call of a program.
struct Injected {
  int process = 0;     ///< process that makes the call: 0 is the program, 1 the first process that it started
  std::string call;    ///< name of the call: openat; or several names that are counted together: read+write
  int occurrence = 1;  ///< which of that process's calls; the first is 1
  int every = 0;       ///< if not 0, also every so many calls after it, in every process
  enum class Kind {
    Error,  ///< the call is not made and returns `error`
    Late,   ///< the call is made but returns `error`, as when the response of a server is lost
    Short,  ///< the call is made with half of the bytes
    Kill,   ///< the call is made, and then the process is killed with -9
  } kind = Kind::Error;
  int error = 0;
};

/// A system call made after `main` started.
struct Call {
  int process = 0;
  std::string name;
  int occurrence = 0;
  std::string text;  ///< human-readable: `openat "/a/b"`, `write to 2`
};

/// The result of running a program.
struct Traced {
  int exit_code = -1;  ///< 128 plus the signal if a signal ended it
  double seconds = 0;  ///< time until the last of its processes ended
  bool late = false;   ///< it was killed at the time limit
  int strays = 0;      ///< processes that outlived it for too long and were killed
  int crashed = 0;     ///< processes that died by a signal that the tracer did not send
  int met = 0;         ///< how often the fault occurred
  std::string where;   ///< the last call at which the fault occurred
  std::vector<Call> calls;
};

/// Runs a program and all its child processes under ptrace and injects a fault into its system calls. Calls of the
/// dynamic loader before the program's own code are neither counted nor changed. x86-64 only.
class Tracer {
 public:
  struct Options {
    std::vector<std::string> command;
    std::optional<Injected> injected;  ///< without it, all calls are recorded
    std::optional<unsigned>
        files;  ///< limit on the descriptors of the program and its children, from the start of its own code
    std::chrono::seconds timeout{30};  ///< time after which all processes are killed
    std::chrono::seconds outlive{5};   ///< how long children may run after the program has ended
  };
  explicit Tracer(Options options) : options_(std::move(options)) {}
  /// Runs the program. Call it once.
  Traced run();

 private:
  struct Process {
    int number = 0;
    unsigned long entry = 0;  ///< address at which its own code starts, until it has started
    long covered = 0;         ///< the instruction that the breakpoint there replaces
    bool began = false;
    bool killed = false;  ///< by the tracer
    std::map<long, int> seen;
    int seen_of_injected = 0;
  };

  bool start();
  void look_at_the_time();
  void ended(pid_t thread, int status);
  void stopped(pid_t thread, int status);
  void born(pid_t thread, pid_t child, bool is_process);
  void replaced(pid_t process);
  bool at_its_entry(pid_t thread, Process& process);
  bool called(pid_t thread);
  void made(pid_t thread);
  void end_all();
  Process& process_of(pid_t thread) { return processes_[process_of_[thread]]; }

  const Options options_;
  Traced result_;
  pid_t program_ = -1;
  std::set<long> numbers_;             ///< numbers of the calls that the fault concerns
  int newest_ = 0;                     ///< number of the newest process
  std::map<pid_t, pid_t> process_of_;  ///< by thread
  std::map<pid_t, Process> processes_;
  std::set<pid_t> early_;  ///< threads that stopped before their creator reported them
  /// The original arguments of a call that is being made, possibly with changed ones, if the tracer acts on its thread
  /// afterwards.
  struct OnWay {
    unsigned long long first, third;
    bool says_error;
  };
  std::map<pid_t, OnWay> on_way_;
  std::chrono::steady_clock::time_point began_{};
  std::chrono::steady_clock::time_point program_ended_{};
};

}  // namespace kiln::test
