// SPDX-License-Identifier: Apache-2.0
// kiln selftest: runs every check that needs a device and writes a report. Each check runs in its own process, so that
// a crash of a driver is a result.
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/output.hpp"
#include "apps/kiln/selftest/isolated.hpp"
#include "apps/kiln/selftest/selftest_check.hpp"
#include "apps/kiln/selftest/selftest_report.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/json.hpp"
#include "base/process/environment.hpp"
#include "base/process/system_info.hpp"
#include "session/config/config.hpp"

namespace kiln::cli {
namespace selftest {
namespace {

using SelftestClock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kTimeForAll{540};  // the whole command ends in ten minutes
constexpr seconds kTimeForOne{240};
constexpr JsonLimits kLimits{4, 10'000};
constexpr const char* kDefaultDirectory = "kiln-selftest";
constexpr const char* kTimeIsOver = "the time of the selftest is over";
constexpr const char* kNoDescription = "the driver did not describe its devices";

double ms_since(SelftestClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SelftestClock::now() - start).count();
}

std::string encoded(const Result<Shown>& shown) {
  if (!shown) {
    return json_text(Json{{"state", "failed"}, {"text", shown.error().message}, {"log", shown.error().log}});
  }
  return json_text(
      Json{{"state", shown->skipped ? "skipped" : "passed"}, {"text", shown->text}, {"executed", shown->executed}});
}

std::string text_member(const SortedJson& object, const char* name) {
  const SortedJson& value = member_of(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// Removes the name of the user and of the directory from texts, because people publish the report.
class Anonymizer {
 public:
  explicit Anonymizer(const std::string& directory) {
    hidden_.emplace_back(directory, "DIR");
    if (const auto home = environment_variable("HOME"); home && home->size() > 1) hidden_.emplace_back(*home, "~");
  }
  std::string operator()(std::string text) const {
    for (const auto& [from, to] : hidden_) {
      for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
      }
    }
    return text;
  }

 private:
  std::vector<std::pair<std::string, std::string>> hidden_;
};

std::vector<std::pair<std::string, std::string>> system_facts() {
  std::vector<std::pair<std::string, std::string>> facts;
  std::string name = "unknown";
  if (const auto release = read_file("/etc/os-release"); release && *release) {
    const std::string_view text = (*release)->view();
    constexpr std::string_view kKey = "PRETTY_NAME=\"";
    if (const std::size_t at = text.find(kKey); at != std::string_view::npos) {
      const std::size_t begin = at + kKey.size();
      name = text.substr(begin, text.find_first_of("\"\n", begin) - begin);
    }
  }
  utsname kernel{};
  uname(&kernel);
  facts.emplace_back("system", name);
  facts.emplace_back("kernel", std::string(kernel.sysname) + ' ' + kernel.release + ' ' + kernel.machine);
  facts.emplace_back("libc", std::string("glibc ") + gnu_get_libc_version());
  facts.emplace_back("processor", processor_model() + ", " + std::to_string(usable_cores()) + " usable cores");
  facts.emplace_back("container", in_container() ? "yes" : "no");
  return facts;
}

// Lets drivers and libraries write below `work` what they would write to the home directory or to /tmp.
Status keep_files_below(const std::string& work) {
  for (const char* name : {"", "/run", "/tmp", "/cache"}) {
    if (Status made = make_directories(work + name); !made) return made;
  }
  setenv("XDG_RUNTIME_DIR", (work + "/run").c_str(), 1);
  setenv("TMPDIR", (work + "/tmp").c_str(), 1);
  for (const char* name : {"XDG_CACHE_HOME", "CUDA_CACHE_PATH", "POCL_CACHE_DIR"}) {
    setenv(name, (work + "/cache").c_str(), 1);
  }
  return {};
}

/// Runs the checks of a backend, each in its own process, and prints their results. Not thread-safe.
class Runner {
 public:
  Runner(bool print, Console& console, Anonymizer anonymized)
      : print_(print), console_(console), anonymized_(std::move(anonymized)) {}

  BackendOutcome run(Subject subject) {
    BackendOutcome made;
    made.backend = to_string(subject.backend);
    made.driver_replaced = !subject.driver.empty();
    take_description(subject, made);
    if (print_) console_.print(console_.bold(made.backend) + ": " + header(made));
    if (print_ && !made.checks.empty()) print(made.checks.back());
    const std::string reason = made.failed_to_describe() ? kNoDescription : made.absent;
    for (const Check& check : checks_of(subject.backend)) {
      made.checks.push_back(reason.empty() ? run_one(check, subject, made.executed) : skipped(check, reason));
      if (print_ && reason.empty()) print(made.checks.back());
    }
    return made;
  }

 private:
  static Outcome skipped(const Check& check, const std::string& reason) {
    return {check.name, check.description, Outcome::State::Skipped, reason, {}, 0};
  }
  static std::string header(const BackendOutcome& made) {
    if (!made.absent.empty()) return "not tested: " + made.absent;
    if (made.failed_to_describe()) return kNoDescription;
    return made.devices.front().name + " (" + made.devices.front().target + "), " + made.driver;
  }
  milliseconds time_left() const {
    const auto left = std::chrono::duration_cast<milliseconds>(start_ + kTimeForAll - SelftestClock::now());
    return std::min<milliseconds>(left, kTimeForOne);
  }

  // Only a driver that answers can be absent. One that crashes or does not answer is a failed check.
  void take_description(const Subject& subject, BackendOutcome& made) const {
    const milliseconds time = time_left();
    if (time.count() <= 0) {
      made.absent = kTimeIsOver;
      return;
    }
    const auto start = SelftestClock::now();
    const Result<std::string> text = run_in_child(
        [&] {
          const Result<std::string> described = describe(subject);
          return described ? *described : json_text(Json{{"absent", described.error().message}});
        },
        time);
    const Result<SortedJson> json = text ? parse_json(*text, kLimits) : Result<SortedJson>(text.error());
    if (!json) {
      made.executed = false;
      made.checks.push_back({"describe",
                             "the driver describes its devices",
                             Outcome::State::Failed,
                             anonymized_(json.error().message),
                             {},
                             ms_since(start)});
      return;
    }
    made.absent = anonymized_(text_member(*json, "absent"));
    if (!made.absent.empty()) return;
    made.driver = text_member(*json, "driver");
    for (const SortedJson& device : member_of(*json, "devices")) {
      made.devices.push_back({text_member(device, "name"), text_member(device, "target"), text_member(device, "memory"),
                              device.value("units", 0U), device.value("cpu", false)});
    }
    if (made.devices.empty()) made.absent = "the driver lists no device";
  }

  Outcome run_one(const Check& check, Subject& subject, bool& executed) const {
    Outcome outcome{check.name, check.description, Outcome::State::Failed, {}, {}, 0};
    const milliseconds time = time_left();
    if (time.count() <= 0) return skipped(check, kTimeIsOver);
    const auto start = SelftestClock::now();
    const Result<std::string> text = run_in_child([&] { return encoded(run_check(check, subject)); }, time);
    outcome.ms = ms_since(start);
    const Result<SortedJson> json = text ? parse_json(*text, kLimits) : Result<SortedJson>(text.error());
    if (!json) {
      outcome.text = json.error().message;
      return outcome;
    }
    const std::string state = text_member(*json, "state");
    if (state == "passed") outcome.state = Outcome::State::Passed;
    if (state == "skipped") outcome.state = Outcome::State::Skipped;
    outcome.text = anonymized_(text_member(*json, "text"));
    outcome.log = anonymized_(text_member(*json, "log"));
    executed = executed && json->value("executed", true);
    subject.executes = executed;
    return outcome;
  }

  void print(const Outcome& outcome) const {
    Text state = console_.green("passed ");
    if (outcome.state == Outcome::State::Failed) state = console_.red("failed ");
    if (outcome.state == Outcome::State::Skipped) state = console_.yellow("skipped");
    std::string name = outcome.name;
    name.resize(std::max<std::size_t>(name.size(), 14), ' ');
    console_.print(Text("  ") + state + "  " + name + printable(outcome.text) + " (" + time_text(outcome.ms) + ")");
  }

  const bool print_;
  Console& console_;
  const Anonymizer anonymized_;
  const SelftestClock::time_point start_ = SelftestClock::now();
};

Result<SelftestReport> run_all(const std::string& directory, const Arguments& arguments, Console& console) {
  const Config config = Config::load({}, EventEmitter([](const Event&) {}));  // before the environment changes
  const std::string work = directory + "/work";
  if (Status kept = keep_files_below(work); !kept) return std::move(kept).error();
  SelftestReport report;
  report.kiln = version();
  report.date = format_utc(system_clock().wall());
  report.system = system_facts();
  report.quick = arguments.quick;
  const auto start = SelftestClock::now();
  Runner runner(!arguments.json, console, Anonymizer(directory));
  for (const Backend backend : {Backend::Cuda, Backend::OpenCl}) {
    Subject subject;
    subject.backend = backend;
    subject.directory = work + '/' + to_string(backend);
    subject.nvrtc = config.nvrtc;
    subject.cccl = config.cccl;
    subject.driver = backend == Backend::Cuda ? config.driver : std::string();
    subject.worker = config.worker_path;
    subject.quick = arguments.quick;
    if (Status made = make_directories(subject.directory); !made) return std::move(made).error();
    report.backends.push_back(runner.run(std::move(subject)));
  }
  report.seconds = std::chrono::duration<double>(SelftestClock::now() - start).count();
  return report;
}

// Creates the directory of the run. An existing one can contain files of the user.
Result<std::string> new_directory(const std::string& given) {
  const std::string path = given.empty() ? kDefaultDirectory : given;
  if (mkdir(path.c_str(), 0755) != 0) {
    if (errno != EEXIST) return io_error("cannot create", path, errno);
    return make_error(Code::InvalidArgument,
                      path + " exists; remove it, or name another directory with 'kiln selftest -o DIR'");
  }
  std::error_code failed;
  const std::string absolute = std::filesystem::canonical(path, failed).string();
  if (failed) return make_error(Code::Io, "cannot resolve " + path + ": " + failed.message());
  return absolute;
}

}  // namespace
}  // namespace selftest

int selftest_command(const Arguments& arguments, Console& console) {
  using selftest::Outcome;
  const Result<std::string> directory = selftest::new_directory(arguments.output);
  if (!directory) return report(directory.error(), console);
  const Result<selftest::SelftestReport> made = selftest::run_all(*directory, arguments, console);
  if (!made) return report(made.error(), console);
  const std::string json = selftest::selftest_json(*made);
  Status written = write_output(*directory + "/report.json", json);
  if (written) written = write_output(*directory + "/report.html", selftest::selftest_page(*made));
  if (!written) return report(written.error(), console);
  const std::size_t failed = made->count(Outcome::State::Failed);
  // After a failure the files of the checks can show why.
  std::error_code ignored;
  if (failed == 0) std::filesystem::remove_all(*directory + "/work", ignored);
  if (arguments.json) {
    console.print(json);
  } else {
    console.print(std::to_string(made->count(Outcome::State::Passed)) + " passed, " + std::to_string(failed) +
                  " failed, " + std::to_string(made->count(Outcome::State::Skipped)) + " skipped in " +
                  time_text(made->seconds * 1000) + "\nThe report is in " + *directory +
                  ": attach report.html and report.json to an issue, also if everything passed.");
  }
  if (failed != 0) return kFailed;
  return made->tested() ? kSuccess : kUnavailable;
}

}  // namespace kiln::cli
