// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/output/console.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <kiln/runtime/events.hpp>

#include "apps/kiln/output/error_hints.hpp"
#include "apps/kiln/output/progress_meter.hpp"
#include "base/files/files.hpp"

namespace kiln::cli {
namespace {

// Returns true for a terminal that supports control sequences: redrawing a line and colors.
bool is_terminal(int fd) {
  const char* terminal = std::getenv("TERM");
  return isatty(fd) != 0 && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

// https://no-color.org: a variable that is set and not empty disables color.
bool may_style(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(fd) && (no_color == nullptr || *no_color == '\0');
}

// Returns the compiler log without trailing line ends and without carriage returns.
std::string log_text(std::string log) {
  while (!log.empty() && (log.back() == '\n' || log.back() == '\0')) log.pop_back();
  for (std::size_t at = 0; (at = log.find("\r\n", at)) != std::string::npos;) log.erase(at, 1);
  return log;
}

bool is_warning(const Event& event) {
  switch (event.kind) {
    case Event::Kind::NotPublished:
    case Event::Kind::EntryDropped:
    case Event::Kind::CacheUnavailable:
    case Event::Kind::WorkerUnavailable:
    case Event::Kind::Quarantined:
    case Event::Kind::BundleRejected:
    case Event::Kind::RecordUnavailable:
    case Event::Kind::RemoteRejected:
    case Event::Kind::RemoteUnavailable:
    case Event::Kind::ConfigWarning: return true;
    default: return event.is(runtime::events::kFellBack);
  }
}

// Formats an event as one line: kind, unit and message.
std::string line_of(const Event& event) {
  std::string line = event_name(event);
  if (!event.unit.empty()) line += ' ' + event.unit;
  if (!event.target.empty()) line += " for " + event.target;
  if (!event.origin.empty()) line += " [" + event.origin + ']';
  if (!event.key.empty()) line += " key " + event.key.substr(0, 12);
  if (event.ms > 0) line += " in " + time_text(event.ms);
  if (!event.message.empty()) line += ": " + event.message;
  return line;
}

// Returns true if standard output is a pipe that its reader has closed. Writes nothing.
bool is_output_closed() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

// True while the terminal shows a progress line. A signal handler reads it.
std::atomic<bool> line_is_shown = false;
static_assert(std::atomic<bool>::is_always_lock_free);

// Ends the progress line, so that the prompt of the shell gets a line of its own; then the signal ends the program.
void end_line(int signal) {
  if (line_is_shown.exchange(false)) (void)!write(STDERR_FILENO, "\n", 1);
  raise(signal);  // delivered when this function returns, with the default action (SA_RESETHAND)
}

// Has Ctrl-C end the progress line. A signal that is ignored or handled stays so.
void handle_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = end_line;
    ours.sa_flags = static_cast<int>(SA_RESETHAND);
    (void)sigaction(signal, &ours, nullptr);
  }
}

}  // namespace

Console::Console(const Arguments& arguments)
    : command_(arguments.command), verbose_(arguments.verbose), quiet_(arguments.quiet),
      drawable_out_(is_terminal(STDOUT_FILENO)), styled_out_(may_style(STDOUT_FILENO)),
      styled_err_(may_style(STDERR_FILENO)), live_(is_terminal(STDERR_FILENO) && !arguments.quiet && !arguments.json) {
  if (live_) handle_interrupts();
}

Console::~Console() { draw({}); }

Text Console::painted(bool styled, const char* code, const Text& text) {
  if (!styled) return text;
  Text out;
  out.bytes_ = "\033[" + std::string(code) + 'm' + text.bytes() + "\033[0m";
  return out;
}

void Console::print(const Text& text) {
  const MutexLock lock(mutex_);
  clear_line();
  std::string line = text.bytes();
  if (line.empty() || line.back() != '\n') line += '\n';
  Status written = write_all(STDOUT_FILENO, line, "standard output");
  if (!written && written_ && !is_output_closed()) written_ = std::move(written);
}

bool Console::is_writable() const {
  const MutexLock lock(mutex_);
  return written_.has_value() && !is_output_closed();
}

bool Console::finish() {
  const Status written = [&] {
    const MutexLock lock(mutex_);
    return written_;
  }();
  if (!written) error(written.error(), {}, "the output is incomplete: free space, or write it to another place");
  return written.has_value();
}

void Console::note(const char* color, const char* word, const Text& message) {
  clear_line();
  const Text line = "kiln: " + painted(styled_err_, color, word) + message + '\n';
  (void)write_all(STDERR_FILENO, line.bytes(), "standard error");
}

void Console::error(const Error& error, const std::string& context, const std::string& hint) {
  const MutexLock lock(mutex_);
  Text message = printable(context.empty() ? error.message : context + ": " + error.message);
  if (const std::string log = log_text(error.log); !log.empty()) message += '\n' + log;
  note("31", "error: ", message);
  const std::string next = hint.empty() ? std::string(hint_for(error.code, command_)) : hint;
  const bool is_known = hint.empty() && names_next_step(error.message);
  if (!quiet_ && !is_known && said_.insert(next).second) note("2", "hint: ", next);
}

void Console::warn(const std::string& message) {
  const MutexLock lock(mutex_);
  if (quiet_ || !said_.insert(message).second) return;
  note("33", "warning: ", printable(message));
}

std::size_t Console::columns() const {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return (known ? size.ws_col : std::size_t{80}) - 1;  // a terminal may wrap when its last column is used
}

void Console::draw(const Text& text) {
  if (!live_) return;
  const MutexLock lock(mutex_);
  if (text.empty()) return clear_line();
  line_is_shown = true;
  (void)write_all(STDERR_FILENO, "\r" + text.bytes() + "\033[K", "standard error");
}

void Console::clear_line() {
  if (line_is_shown.exchange(false)) (void)write_all(STDERR_FILENO, "\r\033[K", "standard error");
}

EventCallback Console::listener() {
  return [this](const Event& event) { on_event(event); };
}

void Console::on_event(const Event& event) {
  if (event.kind == Event::Kind::BlockingCompile) return;  // a command always waits for its compiles
  if (is_warning(event)) {
    {
      // If a cache is unavailable, warn once and do not repeat it for each entry that is not stored.
      const MutexLock lock(mutex_);
      cache_unavailable_ = cache_unavailable_ || event.kind == Event::Kind::CacheUnavailable;
      if (cache_unavailable_ && event.kind == Event::Kind::NotPublished && !verbose_) return;
    }
    const std::string about = event.unit.empty() ? "" : event.unit + ": ";
    warn(about + event.message + " [" + event_name(event) + ']');
  } else if (verbose_) {
    const MutexLock lock(mutex_);
    note("2", "", printable(line_of(event)));
  }
}

std::string time_text(double ms) {
  char text[32];
  const char* format = ms < 10 ? "%.2f ms" : ms < 1000 ? "%.0f ms" : "%.2f s";
  std::snprintf(text, sizeof text, format, ms < 1000 ? ms : ms / 1000);
  return text;
}

std::string day_text(std::uint64_t day) {
  constexpr std::uint64_t kLastOfFourDigits = 2932896;  // 9999-12-31
  if (day > kLastOfFourDigits) return "day " + std::to_string(day);
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day}}};
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()));
  return text;
}

std::string age_text(std::chrono::seconds age) {
  const long long seconds = std::max<long long>(0, age.count());
  const std::pair<long long, const char*> units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
  for (const auto& [length, name] : units) {
    const long long count = seconds / length;
    if (count > 0) return std::to_string(count) + ' ' + name + (count == 1 ? " ago" : "s ago");
  }
  return "just now";
}

std::string table_text(std::vector<std::vector<std::string>> rows, std::string_view indent,
                       std::vector<std::size_t> widths) {
  for (auto& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  for (const auto& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - columns_of(row[i]) + 2, ' ');
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + '\n';
  }
  return text;
}

}  // namespace kiln::cli
