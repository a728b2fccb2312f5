// SPDX-License-Identifier: Apache-2.0
// The soak test: processes use one cache directory through real sessions for a given time, while its entries are
// corrupted, evicted and collected and the processes are killed with -9 and replaced.
//   soak_main [--seconds N] [--no-cuda]
// Prints a line per minute and a summary. Returns 1 if an expectation failed.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

#include "base/clock.hpp"
#include "cache/disk_store.hpp"
#include "engine/status_directory.hpp"
#include "fault/soak.hpp"
#include "support/fixtures/corrupt_file.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/child.hpp"
#include "support/processes/processes.hpp"
#include "support/processes/shared_memory.hpp"

namespace kiln::test {
namespace {

using Count = unsigned long long;

Count plain(const std::atomic<std::uint64_t>& value) { return value.load(); }

std::uint64_t bytes_below(const std::string& directory) {
  std::uint64_t bytes = 0;
  struct stat status;
  for (const std::string& path : files_below(directory)) bytes += stat(path.c_str(), &status) == 0 ? status.st_size : 0;
  return bytes;
}

/// One process has no session when it is sampled, so its open resources must not grow.
struct Open {
  std::uint64_t descriptors = 0, threads = 0, resident_kb = 0;
};

class Soak {
 public:
  Soak(int seconds, bool cuda) : seconds_(seconds), cuda_(cuda) {}

  int run() {
    setenv("TMPDIR", place_.temporary().c_str(), 1);
    setenv("XDG_RUNTIME_DIR", place_.runtime().c_str(), 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of killed processes become children of this one, and are detected
    // In a child, like everything that uses kiln: this process only forks.
    if (run_in_child([&] { return prepare_soak(place_, *counts_, cuda_) ? 0 : 1; }) != 0) return 2;
    start_ = system_clock().steady();
    for (int slot = 0; slot < kSoakProcesses; ++slot) begin(slot);
    while (elapsed() < seconds_ && processes_.size() == kSoakProcesses) tick();
    counts_->stop = true;
    expect(wait_for_all(), "every process ends when asked to");
    summarize();
    check_the_end();
    std::printf("soak: %s\n", failed_ == 0 ? "passed" : "FAILED");
    return failed_ == 0 ? 0 : 1;
  }

 private:
  double elapsed() const { return milliseconds_since(system_clock(), start_) / 1000; }

  void expect(bool held, const std::string& what) {
    if (!held) ++failed_;
    std::printf("%s  %s\n", held ? "passed " : "FAILED ", what.c_str());
  }

  void begin(int slot) {
    const unsigned seed = static_cast<unsigned>(random_());
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      soak(place_, *counts_, slot, seed, cuda_);
      _exit(0);
    }
    processes_[child] = slot;
    progress_[static_cast<std::size_t>(slot)] = {plain(counts_->slots[slot].gets), elapsed()};
  }

  // Reaps all ended processes and replaces those that were killed.
  void reap() {
    int status = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found = processes_.find(ended);
      if (found == processes_.end()) continue;  // a descendant of a process
      const int slot = found->second;
      processes_.erase(found);
      const bool wanted = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && ended == victim_;
      if (!wanted) {
        ++crashes_;
        std::printf("FAILED  process %d ended unexpectedly, status 0x%x\n", slot, static_cast<unsigned>(status));
      }
      if (!counts_->stop) begin(slot);
    }
  }

  void tick() {
    usleep(100'000);
    reap();
    const double now = elapsed();
    if (due(now, next_corruption_, 0.1, 0.4)) {
      auto files = files_below(place_.cache() + "/v1/entries");
      if (random_() % 4 == 0) files = files_below(place_.cache() + "/v1/hints");
      corrupt_one(files, random_);
      ++damages_;
    }
    if (due(now, next_kill_, 1, 5)) kill_one();
    if (due(now, next_size_, 1, 1)) {
      largest_ = std::max(largest_, bytes_below(place_.cache() + "/v1"));
      for (int slot = 0; slot < kSoakProcesses; ++slot) look_for_a_hang(slot, now);
    }
    if (due(now, next_command_, 10, 10)) run_command();
    if (early_.empty() && now > seconds_ * 0.1 && survivors_have_settled()) early_ = what_is_open();
    if (due(now, next_line_, 60, 60) && now > 1) print_line(now);
  }

  bool due(double now, double& next, double minimum, double maximum) {
    if (now < next) return false;
    next = now + minimum + (maximum - minimum) * (random_() % 1000) / 1000.0;
    return true;
  }

  void kill_one() {
    if (counts_->slots[kSoakProcesses - 1].gets == 0) return;  // not all processes have started
    auto chosen = processes_.begin();
    std::advance(chosen, random_() % processes_.size());
    if (chosen->second < kSoakSurvivors) return;
    victim_ = chosen->first;
    kill(victim_, SIGKILL);
    ++kills_;
    // Reaped before another one is killed.
    while (processes_.contains(victim_)) {
      usleep(1000);
      reap();
    }
  }

  void look_for_a_hang(int slot, double now) {
    auto& [gets, since] = progress_[static_cast<std::size_t>(slot)];
    if (plain(counts_->slots[slot].gets) != gets) {
      gets = plain(counts_->slots[slot].gets);
      since = now;
    }
    longest_pause_ = std::max(longest_pause_, now - since);
  }

  void run_command() {
    const bool verify = ++commands_ % 2 == 0;
    const int code = run_in_child([&] {
      setenv("KILN_CACHE_DIR", place_.cache().c_str(), 1);
      setenv("KILN_CACHE_MAX_SIZE", std::to_string(kSoakBound).c_str(), 1);
      const int nowhere = open("/dev/null", O_WRONLY);
      dup2(nowhere, 1);
      dup2(nowhere, 2);
      execl(KILN_PROGRAM, "kiln", "cache", verify ? "verify" : "gc", nullptr);
      return 98;
    });
    // verify returns 1 if it found corruption, which is expected.
    if (code != 0 && !(verify && code == 1)) {
      ++failed_commands_;
      std::printf("FAILED  kiln cache %s returned %d\n", verify ? "verify" : "gc", code);
    }
  }

  // The first sessions of a process load libraries and fill pools that stay.
  bool survivors_have_settled() {
    return std::all_of(counts_->slots, counts_->slots + kSoakSurvivors,
                       [](const auto& slot) { return slot.sessions > 4; });
  }

  std::vector<Open> what_is_open() {
    std::vector<Open> open;
    for (int slot = 0; slot < kSoakSurvivors; ++slot) {
      const auto& now = counts_->slots[slot];
      open.push_back({now.descriptors, now.threads, now.resident_kb});
    }
    return open;
  }

  void print_line(double now) {
    std::printf(
        "%5.0f s  gets=%llu bundle=%llu disk=%llu compiled=%llu dropped=%llu kills=%d damages=%d "
        "wrong=%llu errors=%llu unexpected=%llu largest=%llu\n",
        now, plain(counts_->gets), plain(counts_->bundle), plain(counts_->disk), plain(counts_->compiled),
        plain(counts_->dropped), kills_, damages_, plain(counts_->wrong), plain(counts_->errors),
        plain(counts_->unexpected), static_cast<Count>(largest_));
    std::fflush(stdout);
  }

  bool wait_for_all() {
    const auto limit = system_clock().steady() + std::chrono::seconds(120);
    while (!processes_.empty() && system_clock().steady() < limit) {
      int status = 0;
      const pid_t ended = waitpid(-1, &status, WNOHANG);
      if (ended <= 0) {
        usleep(10'000);
      } else if (processes_.erase(ended) != 0 && status != 0) {
        ++crashes_;
      }
    }
    return processes_.empty();
  }

  void summarize() {
    print_line(elapsed());
    std::printf(
        "%d processes for %.0f s on one directory of %llu bytes: %llu gets in %llu sessions: "
        "%llu from the bundle, %llu from disk, %llu compiled, %llu waited for another process; %llu "
        "collections evicted something\n",
        kSoakProcesses, elapsed(), static_cast<Count>(kSoakBound), plain(counts_->gets), plain(counts_->sessions),
        plain(counts_->bundle), plain(counts_->disk), plain(counts_->compiled), plain(counts_->waited),
        plain(counts_->evicted));
    std::printf(
        "%d processes killed with -9, %d files corrupted, %llu corrupt files found by readers, %d runs of "
        "kiln cache gc or verify\n",
        kills_, damages_, plain(counts_->dropped), commands_);
    std::printf("slowest get %llu ms, longest time without one %.1f s, cache at most %llu bytes, %+lld to its bound\n",
                plain(counts_->slowest_ms), longest_pause_, static_cast<Count>(largest_),
                static_cast<long long>(largest_) - static_cast<long long>(kSoakBound));
    if (counts_->complained) std::printf("the first problem: %s\n", counts_->warning);
    expect(counts_->wrong == 0, "no get returned wrong bytes");
    expect(counts_->errors == 0, "no get failed");
    expect(counts_->unexpected == 0, "no unexpected event was emitted");
    expect(crashes_ == 0, "no process ended without being killed");
    expect(failed_commands_ == 0, "kiln cache gc and verify succeeded");
    expect(longest_pause_ < 60, "no process was idle for a minute");
    expect(largest_ <= kSoakBound + kSoakProcesses * kSoakLargestEntry,
           "the cache never exceeded its limit by more than one entry of each process");
    compare_what_is_open();
  }

  void compare_what_is_open() {
    const std::vector<Open> late = what_is_open();
    if (early_.empty()) std::printf("too short to detect growth of descriptors, threads or memory\n");
    for (std::size_t slot = 0; slot < early_.size(); ++slot) {
      const Open& then = early_[slot];
      const Open& now = late[slot];
      std::printf(
          "survivor %zu, %llu sessions, early and at the end: descriptors %llu and %llu, "
          "threads %llu and %llu, resident KB %llu and %llu\n",
          slot, plain(counts_->slots[slot].sessions), static_cast<Count>(then.descriptors),
          static_cast<Count>(now.descriptors), static_cast<Count>(then.threads), static_cast<Count>(now.threads),
          static_cast<Count>(then.resident_kb), static_cast<Count>(now.resident_kb));
      expect(now.descriptors <= then.descriptors && now.threads <= then.threads,
             "descriptors and threads did not grow");
      expect(now.resident_kb <= then.resident_kb + std::max<std::uint64_t>(8'192, then.resident_kb / 10),
             "memory did not grow by more than 8 MB or a tenth");
    }
  }

  // Checks the state after another program, one collection and one status query, a minute later: the files of killed
  // processes are made that old.
  void check_the_end() {
    const std::string status = place_.runtime() + "/kiln/status";
    for (const std::string& directory : {place_.temporary(), status}) {
      std::error_code missing;
      for (const auto& entry : std::filesystem::directory_iterator(directory, missing)) {
        const timespec old[2] = {{time(nullptr) - 120, 0}, {time(nullptr) - 120, 0}};
        utimensat(AT_FDCWD, entry.path().c_str(), old, 0);
      }
    }
    (void)read_status_directory(status);  // like `kiln status`
    expect(run_in_child([&] { return soak_once(place_, *counts_) && counts_->errors == 0 ? 0 : 1; }) == 0,
           "the next program gets its artifacts");
    const auto store = DiskStore::open({.root = place_.cache(), .max_bytes = kSoakBound}).value();
    expect(store->verify().has_value() && store->gc().has_value(), "verification and collection succeed");
    const auto verified = store->verify();
    expect(verified.has_value() && verified->corrupt == 0 && verified->valid > 0,
           "no corrupt entry is left afterwards");
    expect(bytes_below(place_.cache() + "/v1") <= kSoakBound, "the cache is within its limit");
    expect_nothing_in(place_.cache() + "/v1/tmp");
    expect_nothing_in(place_.temporary());
    expect_nothing_in(status);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    expect(children_of(getpid()).empty(), "no child process is left");
  }

  void expect_nothing_in(const std::string& directory) {
    const auto files = files_below(directory);
    expect(files.empty(), "no file is left in " + directory.substr(place_.root.size() + 1) +
                              (files.empty() ? "" : ": " + std::to_string(files.size()) + ", " + files.front()));
  }

  const int seconds_;
  const bool cuda_;
  const TemporaryDirectory directory_;
  const SoakPlace place_{directory_.path()};
  SharedMemory<SoakCounts> counts_;
  std::mt19937 random_{20261116};
  std::chrono::nanoseconds start_{};
  std::map<pid_t, int> processes_;
  std::array<std::pair<std::uint64_t, double>, kSoakProcesses> progress_{};
  std::vector<Open> early_;
  pid_t victim_ = 0;
  double next_corruption_ = 0, next_kill_ = 2, next_size_ = 0, next_command_ = 5, next_line_ = 0, longest_pause_ = 0;
  int kills_ = 0, damages_ = 0, commands_ = 0, failed_commands_ = 0, crashes_ = 0, failed_ = 0;
  std::uint64_t largest_ = 0;
};

}  // namespace
}  // namespace kiln::test

int main(int argc, char** argv) {
  int seconds = 3600;
  bool cuda = true;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--no-cuda") == 0) {
      cuda = false;
    } else if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      seconds = std::max(1, std::atoi(argv[++i]));
    } else {
      std::fprintf(stderr, "usage: soak_main [--seconds N] [--no-cuda]\n");
      return 2;
    }
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return kiln::test::Soak(seconds, cuda).run();
}
