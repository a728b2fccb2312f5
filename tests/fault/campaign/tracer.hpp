#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kiln::test {

/// What is done to one system call of a program.
struct Injected {
  int process = 0;     ///< whose call: 0 is the program, 1 the first process that it started
  std::string call;    ///< by its name: openat; or several, counted together: read+write
  int occurrence = 1;  ///< which of that process's calls, the first being 1
  int every = 0;       ///< where it is not 0, that one and every so many after it, in every process
  enum class Kind {
    Error,  ///< it is not made and says `error`
    Late,   ///< it is made and says `error` all the same, as a server does whose answer was lost
    Short,  ///< it is made with half of the bytes
    Kill,   ///< it is made, and then the process is killed with -9
  } kind = Kind::Error;
  int error = 0;
};

/// A system call that was made after `main` began.
struct Call {
  int process = 0;
  std::string name;
  int occurrence = 0;
  std::string text;  ///< for people: `openat "/a/b"`, `write to 2`
};

/// How a program ran.
struct Traced {
  int exit_code = -1;  ///< 128 and the signal where one ended it
  double seconds = 0;  ///< until the last of its processes was gone
  bool late = false;   ///< it had to be killed at the limit
  int strays = 0;      ///< processes that outlived it for longer than they may, and had to be killed
  int crashed = 0;     ///< processes that died by a signal which nobody here sent
  int met = 0;         ///< how often the fault was
  std::string where;   ///< the call that it met last
  std::vector<Call> calls;
};

/// Runs a program and everything that it starts under ptrace, and does one thing to one of its system calls. What the
/// dynamic loader does before a program's own code begins is neither counted nor touched. x86-64 only.
class Tracer {
 public:
  struct Options {
    std::vector<std::string> command;
    std::optional<Injected> injected;  ///< without it all calls are written down
    std::optional<unsigned>
        files;  ///< how many descriptors it and its children may have, from when its own code begins
    std::chrono::seconds limit{30};   ///< then all is killed
    std::chrono::seconds outlive{5};  ///< how long its children may go on after it
  };
  explicit Tracer(Options options) : options_(std::move(options)) {}
  /// Once.
  Traced run();

 private:
  struct Process {
    int number = 0;
    unsigned long entry = 0;  ///< where its own code begins, until it has
    long covered = 0;         ///< the instruction that the breakpoint there stands for
    bool began = false;
    bool killed = false;  ///< by us
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
  std::set<long> numbers_;             ///< of the calls that the fault concerns
  int newest_ = 0;                     ///< number of a process
  std::map<pid_t, pid_t> process_of_;  ///< by thread
  std::map<pid_t, Process> processes_;
  std::set<pid_t> early_;  ///< stopped before the thread that made it told so
  /// What a call had for arguments that is being made, perhaps with others, and to whose thread something is done after
  /// it.
  struct OnWay {
    unsigned long long first, third;
    bool says_error;
  };
  std::map<pid_t, OnWay> on_way_;
  std::chrono::steady_clock::time_point began_{};
  std::chrono::steady_clock::time_point program_ended_{};
};

}  // namespace kiln::test
