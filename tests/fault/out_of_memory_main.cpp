// SPDX-License-Identifier: Apache-2.0
// Out of memory at each allocation, one at a time: the nth allocation of each operation fails, or the nth and all after
// it, each time in a new process. The caller must get the right result or a clear error in bounded time. The same
// operation must work in that process once there is memory again, and in the next process. No descriptor, lock, partial
// file or growing memory may be left.
//   out_of_memory_main [--sample N | --at N] [NAME…]
// --sample N fails only N of the allocations of each operation, --at N only the nth. Returns 1 if any fault was not
// survived.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>

#include "base/clock.hpp"
#include "base/process/process_lifecycle.hpp"
#include "fault/out_of_memory.hpp"
#include "support/fakes/failing_malloc.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/processes.hpp"
#include "support/processes/shared_memory.hpp"

namespace kiln::test {
namespace {

constexpr std::chrono::seconds kHang{60};
constexpr const char* kCurrent = "/current";  // the directory of a repetition while it runs

/// The report of a child about its fault.
struct Report {
  std::uint64_t allocations = 0;
  std::uint64_t reported = 0;  // how often an allocation failed
  int descriptors = 0;
  int threads = 0;
  std::int64_t grows = 0;  // growth of the blocks in use per repetition
  double slowest_ms = 0;
  Outcome::Kind kind = Outcome::Kind::Right;
  bool broken = false;
  char text[400] = {};

  void warn(const std::string& what) {
    if (!broken) std::snprintf(text, sizeof text, "%s", what.c_str());
    broken = true;
  }
};

int entries_of(const char* directory) {
  std::error_code ignored;
  int count = 0;
  for (auto at = std::filesystem::directory_iterator(directory, ignored); at != std::filesystem::directory_iterator();
       ++at) {
    ++count;
  }
  return count;
}

// Threads can take some time to disappear from the list after they were joined.
void note_what_is_open(Report& report, int max_threads) {
  for (int tries = 0; tries < 4000; ++tries, usleep(5'000)) {
    report.threads = entries_of("/proc/self/task");
    if (report.threads <= max_threads) break;
  }
  report.descriptors = entries_of("/proc/self/fd");
}

Outcome try_it(const Operation& operation, const std::string& directory, Report& report, bool with_memory) {
  const auto start = system_clock().steady();
  Outcome outcome;
  try {
    outcome = operation.run(directory);
  } catch (const std::bad_alloc&) {
    (void)Heap::give_back();
    outcome = {Outcome::Kind::Failed, "std::bad_alloc"};
    if (!operation.may_throw || with_memory) report.warn("std::bad_alloc was thrown to the caller");
  } catch (const std::exception& thrown) {
    (void)Heap::give_back();
    report.warn(std::string("thrown to the caller: ") + thrown.what());
  }
  report.reported += Heap::give_back();
  report.slowest_ms = std::max(report.slowest_ms, milliseconds_since(system_clock(), start));
  if (outcome.kind == Outcome::Kind::Wrong) report.warn("wrong: " + outcome.text);
  return outcome;
}

/// Registers the first thread-local destructor in advance. glibc ends a process that has no memory left for it, and the
/// first session of a process would register it: kiln cannot handle that failure (decision 0013).
void register_what_glibc_insists_on() {
  class : public ProcessLifecycleListener {
    void at_exit() override {}
    void in_child() override {}
  } listener;
  add_process_listener(listener);
  remove_process_listener(listener);
}

/// Returns the least growth of the blocks in use from one repetition to the next, or 0 for fewer than four repetitions.
std::int64_t least_growth(const std::vector<std::int64_t>& live) {
  if (live.size() < 4) return 0;
  std::int64_t least = INT64_MAX;
  for (std::size_t i = 1; i < live.size(); ++i) least = std::min(least, live[i] - live[i - 1]);
  return least;
}

/// Runs in a separate process. If `number` is 0, nothing fails: this counts the allocations and the resources that stay
/// open.
void suffer(const Operation& operation, const std::string& root, std::uint64_t number, Heap::Mode mode,
            const Report& without, Report& report) {
  register_what_glibc_insists_on();
  // Each repetition runs in a new directory of the same path, so that what a process stores by path is no growth.
  const std::string directory = root + kCurrent;
  std::vector<std::int64_t> live;
  const auto most = static_cast<std::size_t>(6 * operation.times);
  live.reserve(most);
  const auto set_aside = [&] {
    if (!live.empty()) rename(directory.c_str(), (root + "/" + std::to_string(live.size() - 1)).c_str());
  };
  const auto repeat = [&] {
    set_aside();
    mkdir(directory.c_str(), 0700);
    operation.prepare(directory);
    Heap::fail_at(number, mode);
    const Outcome outcome = try_it(operation, directory, report, number == 0);
    const std::uint64_t asked = Heap::asked();
    if (number == 0 && outcome.kind != Outcome::Kind::Right) report.warn(outcome.text);
    if (live.empty()) {
      report.allocations = asked;
      report.kind = outcome.kind;
    }
    live.push_back(Heap::live());
  };
  for (int i = 0; i < operation.times; ++i) repeat();
  const Outcome after = try_it(operation, directory, report, true);
  if (after.kind != Outcome::Kind::Right) report.warn("with memory again: " + after.text);
  note_what_is_open(report, number == 0 ? 1 : without.threads);
  // One-time allocations are not leaks, and neither is growth that also occurs without a fault, such as that of the
  // digests of files. Threads can spread one-time allocations over the first repetitions: where all of them grew, more
  // follow.
  while (number != 0 && least_growth(live) > without.grows && live.size() < most) repeat();
  report.grows = least_growth(live);
  set_aside();
  if (number == 0) return;
  if (report.descriptors > without.descriptors) {
    report.warn(std::to_string(report.descriptors) + " open descriptors, " + std::to_string(without.descriptors) +
                " without the fault");
  }
  if (report.threads > without.threads) report.warn("a thread is left");
  if (report.grows > without.grows) {
    report.warn("blocks in use grow by " + std::to_string(report.grows) + " each time, without the fault by " +
                std::to_string(without.grows));
  }
}

/// Runs `work` in a child. Returns how the child ended if it did not exit normally.
template <class Work>
std::string in_child(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    _exit(0);
  }
  const auto until = system_clock().steady() + kHang;
  for (int status = 0;; usleep(500)) {
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status)) return std::string("ended by ") + strsignal(WTERMSIG(status));
      return WEXITSTATUS(status) == 0 ? "" : "exited with code " + std::to_string(WEXITSTATUS(status));
    }
    if (system_clock().steady() < until) continue;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return "hangs";
  }
}

class Campaign {
 public:
  Campaign(std::uint64_t sample, std::uint64_t at) : sample_(sample), at_(at) {}

  void run(const Operation& operation) {
    if (!measure(operation)) return;
    const std::uint64_t all = without_->allocations;
    const std::uint64_t step = sample_ == 0 ? 1 : std::max<std::uint64_t>(1, all / sample_);
    counts_ = {};
    for (std::uint64_t number = std::max<std::uint64_t>(1, at_); number <= (at_ != 0 ? at_ : all); number += step) {
      for (const Heap::Mode mode : {Heap::Mode::Once, Heap::Mode::FromThenOn}) fault(operation, number, mode);
    }
    std::printf("%-28s %6llu allocations %6d faults: %6d correct, %6d errors, %4d not reached, slowest %7.1f ms%s\n",
                operation.name.c_str(), static_cast<unsigned long long>(all), counts_.faults, counts_.right,
                counts_.errors, counts_.not_met, counts_.slowest, counts_.broken != 0 ? "  FAILED" : "");
    faults_ += counts_.faults;
    survived_ += counts_.faults - counts_.broken;
    slowest_ = std::max(slowest_, counts_.slowest);
  }

  int summary() const {
    std::printf("%d faults, %d survived, slowest %.1f ms\n", faults_, survived_, slowest_);
    return failed_ || faults_ != survived_ ? 1 : 0;
  }

 private:
  bool measure(const Operation& operation) {
    *without_ = {};
    const TemporaryDirectory directory;
    const std::string end =
        in_child([&] { suffer(operation, directory.path(), 0, Heap::Mode::Once, *without_, *without_); });
    if (end.empty() && !without_->broken && without_->kind == Outcome::Kind::Right) return true;
    std::printf("%-28s fails without a fault: %s %s\n", operation.name.c_str(), end.c_str(), without_->text);
    failed_ = true;
    return false;
  }

  void fault(const Operation& operation, std::uint64_t number, Heap::Mode mode) {
    const TemporaryDirectory directory;
    *report_ = {};
    std::string broken = in_child([&] { suffer(operation, directory.path(), number, mode, *without_, *report_); });
    if (broken.empty() && report_->broken) broken = report_->text;
    if (broken.empty()) {
      for (int i = 0; i < operation.times && broken.empty(); ++i) {
        *check_ = {};
        const std::string current = directory.path() + kCurrent;
        std::filesystem::rename(directory.path(std::to_string(i)), current);
        broken = in_child([&] {
          const std::string wrong = operation.check(current);
          if (!wrong.empty()) check_->warn("the next process: " + wrong);
        });
        if (broken.empty() && check_->broken) broken = check_->text;
        std::filesystem::remove_all(current);
      }
    }
    // Threads are scheduled differently each time, so the last allocations of one run may not occur in another.
    ++counts_.faults;
    counts_.not_met += report_->reported == 0 ? 1 : 0;
    ++(report_->kind == Outcome::Kind::Right ? counts_.right : counts_.errors);
    counts_.slowest = std::max(counts_.slowest, report_->slowest_ms);
    if (broken.empty()) return;
    if (++counts_.broken <= 40) {
      std::printf("FAILED  %s, allocation %llu%s: %s\n", operation.name.c_str(),
                  static_cast<unsigned long long>(number), mode == Heap::Mode::Once ? "" : " and all after it",
                  broken.c_str());
    }
  }

  struct Counts {
    int faults = 0, right = 0, errors = 0, not_met = 0, broken = 0;
    double slowest = 0;
  };
  const std::uint64_t sample_;
  const std::uint64_t at_;
  SharedMemory<Report> without_;
  SharedMemory<Report> report_;
  SharedMemory<Report> check_;
  Counts counts_;
  int faults_ = 0, survived_ = 0;
  double slowest_ = 0;
  bool failed_ = false;
};

}  // namespace
}  // namespace kiln::test

int main(int argc, char** argv) {
  using namespace kiln::test;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::uint64_t sample = 0;
  std::uint64_t at = 0;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--sample") == 0 && i + 1 < argc) {
      sample = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--at") == 0 && i + 1 < argc) {
      at = std::strtoull(argv[++i], nullptr, 10);
    } else {
      names.emplace_back(argv[i]);
    }
  }
  std::vector<Operation> operations;
  add_parsers(operations);
  add_stores(operations);
  add_sessions(operations);
  Campaign campaign(sample, at);
  for (const Operation& operation : operations) {
    const bool wanted = names.empty() || std::find(names.begin(), names.end(), operation.name) != names.end();
    if (wanted) campaign.run(operation);
  }
  return campaign.summary();
}
