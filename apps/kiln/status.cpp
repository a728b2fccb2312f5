// SPDX-License-Identifier: Apache-2.0
// kiln status: shows the progress of running programs.
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/status_text.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "engine/status_directory.hpp"
#include "session/config/config.hpp"

namespace kiln::cli {
namespace {

constexpr timespec kPollInterval{0, 500'000'000};

/// Blocks SIGINT and SIGTERM during its lifetime. The signals end a wait instead of the program, so that the program
/// can restore the terminal.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  /// Waits up to `time`. Returns true if a signal arrived.
  bool wait_for(const timespec& time) const { return sigtimedwait(&signals_, nullptr, &time) > 0; }

 private:
  sigset_t signals_;
  sigset_t before_;
};

/// The alternate screen of the terminal. The destructor restores the previous contents.
class AlternateScreen {
 public:
  AlternateScreen() { say("\033[?1049h\033[?25l"); }
  ~AlternateScreen() { say("\033[?25h\033[?1049l"); }
  AlternateScreen(const AlternateScreen&) = delete;
  AlternateScreen& operator=(const AlternateScreen&) = delete;

  static bool show(const Text& text) {
    std::string screen = "\033[H";
    for (const char c : text.bytes()) screen += c == '\n' ? "\033[K\n" : std::string(1, c);
    return say(screen + "\033[J");
  }
  static ScreenSize room() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row < 2) return {79, 23};
    return {static_cast<std::size_t>(size.ws_col) - 1, static_cast<std::size_t>(size.ws_row) - 1};
  }

 private:
  static bool say(const std::string& text) { return write_all(STDOUT_FILENO, text, "standard output").has_value(); }
};

class StatusCommand {
 public:
  StatusCommand(const Arguments& arguments, Console& console)
      : arguments_(arguments), console_(console), config_(Config::load({}, EventEmitter(console.listener()))),
        directories_(status_directories(config_.status_dir)) {}

  int once() {
    const auto processes = look();
    if (!processes) return report(processes.error(), console_);
    if (arguments_.json) {
      console_.print(status_json(*processes, false));
    } else if (!processes->empty()) {
      console_.print(status_text(*processes, system_clock().wall(), {}, console_));
    }
    if (processes->empty() && (arguments_.pid != 0 || !arguments_.json)) return report_no_process();
    return kSuccess;
  }

  /// Prints the status twice a second on a terminal, and after each change in a pipe. Ends on Ctrl-C or when the given
  /// process ends.
  int watch() {
    const BlockedSignals interrupts;
    std::vector<ProcessStatus> last;
    bool seen = false;
    {
      const bool terminal = console_.drawable() && !arguments_.json;
      std::optional<AlternateScreen> screen;
      if (terminal) screen.emplace();
      do {
        auto processes = look();
        if (!processes) {
          screen.reset();
          return report(processes.error(), console_);
        }
        if (arguments_.pid != 0 && processes->empty()) break;
        if (!(terminal ? redraw(*processes) : emit(*processes)))
          return kSuccess;  // main reports an error other than a closed pipe
        seen = seen || !processes->empty();
        last = std::move(*processes);
      } while (!interrupts.wait_for(kPollInterval));
      if (!terminal) return seen || arguments_.pid == 0 ? kSuccess : report_no_process();
    }
    if (last.empty()) return report_no_process();
    console_.print(status_text(last, system_clock().wall(), AlternateScreen::room(), console_));
    return kSuccess;
  }

 private:
  Result<std::vector<ProcessStatus>> look() {
    std::vector<ProcessStatus> all;
    for (const std::string& directory : directories_) {
      Result<StatusListing> listing = read_status_directory(directory);
      if (!listing) return listing.error();
      for (const std::string& problem : listing->problems) console_.warn(problem);
      for (ProcessStatus& process : listing->processes) {
        if (arguments_.pid == 0 || process.pid == arguments_.pid) all.push_back(std::move(process));
      }
    }
    return all;
  }

  bool redraw(const std::vector<ProcessStatus>& processes) {
    const ScreenSize room = AlternateScreen::room();
    const Text text = status_text(processes, system_clock().wall(), room, console_);
    return AlternateScreen::show(text.empty() ? Text("no program is using kiln; press Ctrl-C to exit") : text);
  }

  bool emit(const std::vector<ProcessStatus>& processes) {
    std::string mark = status_mark(processes);
    if (mark == mark_) return console_.is_writable();
    mark_ = std::move(mark);
    const Text text = arguments_.json     ? Text(status_json(processes, true))
                      : processes.empty() ? Text("no program is using kiln\n")
                                          : status_text(processes, system_clock().wall(), {}, console_);
    console_.print(text + '\n');
    return console_.is_writable();
  }

  int report_no_process() {
    if (arguments_.pid == 0) {
      if (!arguments_.json) console_.print("no program is using kiln (searched " + join_strings(directories_) + ")");
      return kSuccess;
    }
    return report(
        make_error(Code::Io, "process " + std::to_string(arguments_.pid) +
                                 " has no status file: it does not exist, belongs to another user, has not used "
                                 "kiln yet, or has KILN_STATUS_DIR=off (searched " +
                                 join_strings(directories_) + "); 'kiln status' lists all processes"),
        console_);
  }

  const Arguments& arguments_;
  Console& console_;
  const Config config_;
  const std::vector<std::string> directories_;
  std::string mark_;
};

}  // namespace

int status_command(const Arguments& arguments, Console& console) {
  StatusCommand command(arguments, console);
  return arguments.watch ? command.watch() : command.once();
}

}  // namespace kiln::cli
