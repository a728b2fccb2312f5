// kiln status: how far the programs are that run now.
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/status_text.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "session/status_folder.hpp"

namespace kiln::cli {
namespace {

constexpr timespec kLookAgain{0, 500'000'000};

/// While it lives Ctrl-C and a polite end do not end the program but a wait, so that it can leave the terminal as it
/// was.
class Interrupts {
 public:
  Interrupts() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~Interrupts() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Whether one came within that time.
  bool came_within(const timespec& time) const { return sigtimedwait(&signals_, nullptr, &time) > 0; }

 private:
  sigset_t signals_;
  sigset_t before_;
};

/// A screen of its own over what the terminal showed, which is there again afterwards.
class OwnScreen {
 public:
  OwnScreen() { say("\033[?1049h\033[?25l"); }
  ~OwnScreen() { say("\033[?25h\033[?1049l"); }
  OwnScreen(const OwnScreen&) = delete;
  OwnScreen& operator=(const OwnScreen&) = delete;

  static bool show(const std::string& text) {
    std::string screen = "\033[H";
    for (const char c : text) screen += c == '\n' ? "\033[K\n" : std::string(1, c);
    return say(screen + "\033[J");
  }
  static Room room() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row < 2) return {79, 23};
    return {static_cast<std::size_t>(size.ws_col) - 1, static_cast<std::size_t>(size.ws_row) - 1};
  }

 private:
  static bool say(const std::string& text) { return write_all(STDOUT_FILENO, text, "standard output").ok(); }
};

class StatusCommand {
 public:
  StatusCommand(const Arguments& arguments, Console& console)
      : arguments_(arguments), console_(console), config_(Config::load({}, Observer(console.listener()))),
        folders_(status_folders(config_)) {}

  int once() {
    const auto processes = look();
    if (!processes) return report(processes.error(), console_);
    if (arguments_.json) {
      console_.print(status_json(*processes, false));
    } else if (!processes->empty()) {
      console_.print(status_text(*processes, system_clock().wall(), {}, console_));
    }
    if (processes->empty() && (arguments_.pid != 0 || !arguments_.json)) return nobody();
    return kDone;
  }

  /// On a terminal twice a second, in a pipe whenever something has changed; until Ctrl-C, or the end of the process
  /// that was named.
  int watch() {
    const Interrupts interrupts;
    std::vector<ProcessStatus> last;
    bool seen = false;
    {
      const bool terminal = console_.drawable() && !arguments_.json;
      std::optional<OwnScreen> screen;
      if (terminal) screen.emplace();
      do {
        auto processes = look();
        if (!processes) {
          screen.reset();
          return report(processes.error(), console_);
        }
        if (arguments_.pid != 0 && processes->empty()) break;
        if (!(terminal ? redraw(*processes) : tell(*processes))) return kDone;  // whoever read it has gone
        seen = seen || !processes->empty();
        last = std::move(*processes);
      } while (!interrupts.came_within(kLookAgain));
      if (!terminal) return seen || arguments_.pid == 0 ? kDone : nobody();
    }
    if (last.empty()) return nobody();
    console_.print(status_text(last, system_clock().wall(), OwnScreen::room(), console_));
    return kDone;
  }

 private:
  Result<std::vector<ProcessStatus>> look() {
    std::vector<ProcessStatus> all;
    for (const std::string& folder : folders_) {
      Result<StatusListing> listing = read_status_folder(folder);
      if (!listing) return listing.error();
      for (const std::string& problem : listing->problems) console_.warn(problem);
      for (ProcessStatus& process : listing->processes) {
        if (arguments_.pid == 0 || process.pid == arguments_.pid) all.push_back(std::move(process));
      }
    }
    return all;
  }

  bool redraw(const std::vector<ProcessStatus>& processes) {
    const Room room = OwnScreen::room();
    const std::string text = status_text(processes, system_clock().wall(), room, console_);
    return OwnScreen::show(text.empty() ? "no program has work for kiln now; Ctrl-C ends this" : text);
  }

  bool tell(const std::vector<ProcessStatus>& processes) {
    std::string mark = status_mark(processes);
    if (mark == mark_) return reader_is_there();
    mark_ = std::move(mark);
    const std::string text = arguments_.json     ? status_json(processes, true)
                             : processes.empty() ? "no program has work for kiln now\n"
                                                 : status_text(processes, system_clock().wall(), {}, console_);
    return write_all(STDOUT_FILENO, text + '\n', "standard output").ok();
  }

  // A pipe whose reader has gone shows it without anything being written.
  static bool reader_is_there() {
    pollfd out{STDOUT_FILENO, 0, 0};
    return poll(&out, 1, 0) <= 0 || (out.revents & POLLERR) == 0;
  }

  int nobody() {
    if (arguments_.pid == 0) {
      if (!arguments_.json)
        console_.print("no program has work for kiln now, or has had any (looked in " + joined(folders_) + ")");
      return kDone;
    }
    return report(failure(Code::Io, "process " + std::to_string(arguments_.pid) +
                                        " says nothing: it is not there, belongs to somebody else, has asked kiln for "
                                        "nothing yet, or was told so by KILN_STATUS_DIR (looked in " +
                                        joined(folders_) + "); 'kiln status' lists those that do"),
                  console_);
  }

  const Arguments& arguments_;
  Console& console_;
  const Config config_;
  const std::vector<std::string> folders_;
  std::string mark_;
};

}  // namespace

int status_command(const Arguments& arguments, Console& console) {
  StatusCommand command(arguments, console);
  return arguments.watch ? command.watch() : command.once();
}

}  // namespace kiln::cli
