// Out of memory at each allocation, one at a time: of each operation the nth allocation fails, or the nth and all
// behind it, in a process of its own for each. Whoever called must have the right thing or a clear error in bounded
// time; the same must work in that process once there is memory again, and in the next process; nothing is left open,
// locked, half-written or growing.
//   out_of_memory_main [--sample N | --at N] [NAME…]
// With --sample N only N of the allocations of each operation fail, with --at N only the nth. Returns 1 where anything
// was not survived.
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
#include "base/process_life.hpp"
#include "fault/out_of_memory.hpp"
#include "support/failing_malloc.hpp"
#include "support/processes.hpp"
#include "support/shared_memory.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

constexpr std::chrono::seconds kHang{60};

/// What a child says of its fault.
struct Report {
  std::uint64_t allocations = 0;
  std::uint64_t told = 0;  // how often somebody was told that there is no memory
  int descriptors = 0;
  int threads = 0;
  std::int64_t grows = 0;  // by how many blocks in use, each time
  double slowest_ms = 0;
  Outcome::Kind kind = Outcome::Kind::Right;
  bool broken = false;
  char text[400] = {};

  void complain(const std::string& what) {
    if (!broken) std::snprintf(text, sizeof text, "%s", what.c_str());
    broken = true;
  }
};

int entries_of(const char* folder) {
  std::error_code ignored;
  int count = 0;
  for (auto at = std::filesystem::directory_iterator(folder, ignored); at != std::filesystem::directory_iterator();
       ++at) {
    ++count;
  }
  return count;
}

// Threads may need a moment to be gone from the list after they were joined.
void note_what_is_open(Report& report, int most_threads) {
  for (int tries = 0; tries < 200; ++tries, usleep(5'000)) {
    report.threads = entries_of("/proc/self/task");
    if (report.threads <= most_threads) break;
  }
  report.descriptors = entries_of("/proc/self/fd");
}

Outcome try_it(const Operation& operation, const std::string& folder, Report& report, bool with_memory) {
  const auto start = system_clock().steady();
  Outcome outcome;
  try {
    outcome = operation.run(folder);
  } catch (const std::bad_alloc&) {
    (void)Heap::give_back();
    outcome = {Outcome::Kind::Failed, "std::bad_alloc"};
    if (!operation.may_throw || with_memory) report.complain("std::bad_alloc was thrown at the caller");
  } catch (const std::exception& thrown) {
    (void)Heap::give_back();
    report.complain(std::string("thrown at the caller: ") + thrown.what());
  }
  report.told += Heap::give_back();
  report.slowest_ms = std::max(report.slowest_ms, milliseconds_since(system_clock(), start));
  if (outcome.kind == Outcome::Kind::Wrong) report.complain("wrong: " + outcome.text);
  return outcome;
}

/// glibc ends a process that has no memory left for its first thread-local destructor, which the first session of a
/// process registers: nobody is asked, so nobody can answer (decision 0013).
void register_what_glibc_insists_on() {
  class : public ProcessListener {
    void at_exit() override {}
    void in_child() override {}
  } nobody;
  add_listener(nobody);
  remove_listener(nobody);
}

/// In a process of its own. `number` zero: with memory, to see how many allocations there are and what stays open.
void suffer(const Operation& operation, const std::string& root, std::uint64_t number, Heap::Manner manner,
            const Report& without, Report& report) {
  register_what_glibc_insists_on();
  std::string folder;
  std::vector<std::int64_t> live;
  live.reserve(16);
  for (int i = 0; i < operation.times; ++i) {
    folder = root + "/" + std::to_string(i);
    mkdir(folder.c_str(), 0700);
    operation.prepare(folder);
    Heap::fail_at(number, manner);
    const Outcome outcome = try_it(operation, folder, report, number == 0);
    const std::uint64_t asked = Heap::asked();
    if (number == 0 && outcome.kind != Outcome::Kind::Right) report.complain(outcome.text);
    if (i == 0) {
      report.allocations = asked;
      report.kind = outcome.kind;
    }
    live.push_back(Heap::live());
  }
  const Outcome after = try_it(operation, folder, report, true);
  if (after.kind != Outcome::Kind::Right) report.complain("with memory again: " + after.text);
  note_what_is_open(report, number == 0 ? 1 : without.threads);
  // What is made once and stays is no leak, nor is what grows without a fault: the environment does.
  report.grows = live.size() < 4 ? 0 : INT64_MAX;
  for (std::size_t i = live.size() - 1; live.size() >= 4 && i > 0; --i) {
    report.grows = std::min(report.grows, live[i] - live[i - 1]);
  }
  if (number == 0) return;
  if (report.descriptors > without.descriptors) {
    report.complain(std::to_string(report.descriptors) + " descriptors are open, " +
                    std::to_string(without.descriptors) + " without the fault");
  }
  if (report.threads > without.threads) report.complain("a thread is left");
  if (report.grows > without.grows) {
    report.complain("blocks in use grow by " + std::to_string(report.grows) + " each time, without the fault by " +
                    std::to_string(without.grows));
  }
}

/// Runs it in a child; how it ended where that is not by itself.
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
      return WEXITSTATUS(status) == 0 ? "" : "ended with code " + std::to_string(WEXITSTATUS(status));
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
      for (const Heap::Manner manner : {Heap::Manner::Once, Heap::Manner::FromThenOn}) fault(operation, number, manner);
    }
    std::printf("%-28s %6llu allocations %6d faults: %6d right, %6d an error, %4d not met, slowest %7.1f ms%s\n",
                operation.name.c_str(), static_cast<unsigned long long>(all), counts_.faults, counts_.right,
                counts_.errors, counts_.not_met, counts_.slowest, counts_.broken != 0 ? "  BROKEN" : "");
    faults_ += counts_.faults;
    survived_ += counts_.faults - counts_.broken;
    slowest_ = std::max(slowest_, counts_.slowest);
  }

  int summary() const {
    std::printf("%d faults, %d survived, slowest answer %.1f ms\n", faults_, survived_, slowest_);
    return failed_ || faults_ != survived_ ? 1 : 0;
  }

 private:
  bool measure(const Operation& operation) {
    *without_ = {};
    const TemporaryDirectory directory;
    const std::string end =
        in_child([&] { suffer(operation, directory.path(), 0, Heap::Manner::Once, *without_, *without_); });
    if (end.empty() && !without_->broken && without_->kind == Outcome::Kind::Right) return true;
    std::printf("%-28s does not work with memory: %s %s\n", operation.name.c_str(), end.c_str(), without_->text);
    failed_ = true;
    return false;
  }

  void fault(const Operation& operation, std::uint64_t number, Heap::Manner manner) {
    const TemporaryDirectory directory;
    *report_ = {};
    std::string broken = in_child([&] { suffer(operation, directory.path(), number, manner, *without_, *report_); });
    if (broken.empty() && report_->broken) broken = report_->text;
    if (broken.empty()) {
      for (int i = 0; i < operation.times && broken.empty(); ++i) {
        *check_ = {};
        broken = in_child([&] {
          const std::string wrong = operation.check(directory.path(std::to_string(i)));
          if (!wrong.empty()) check_->complain("the next process: " + wrong);
        });
        if (broken.empty() && check_->broken) broken = check_->text;
      }
    }
    // Threads take turns otherwise each time, so the last allocations of a run may not be met in another.
    ++counts_.faults;
    counts_.not_met += report_->told == 0 ? 1 : 0;
    ++(report_->kind == Outcome::Kind::Right ? counts_.right : counts_.errors);
    counts_.slowest = std::max(counts_.slowest, report_->slowest_ms);
    if (broken.empty()) return;
    if (++counts_.broken <= 40) {
      std::printf("BROKEN  %s, allocation %llu%s: %s\n", operation.name.c_str(),
                  static_cast<unsigned long long>(number), manner == Heap::Manner::Once ? "" : " and all behind it",
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
