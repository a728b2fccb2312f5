#include "apps/kiln/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "apps/kiln/hints.hpp"
#include "apps/kiln/progress_meter.hpp"
#include "base/files.hpp"

namespace kiln::cli {
namespace {

// Whether it is a terminal that obeys: to draw a line anew, or to change colours.
bool is_terminal(int fd) {
  const char* terminal = std::getenv("TERM");
  return isatty(fd) != 0 && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

// https://no-color.org: set and not empty means no colour.
bool may_style(int fd) {
  const char* no_colour = std::getenv("NO_COLOR");
  return is_terminal(fd) && (no_colour == nullptr || *no_colour == '\0');
}

std::string painted(bool styled, const char* code, std::string_view text) {
  if (!styled) return std::string(text);
  return "\033[" + std::string(code) + 'm' + std::string(text) + "\033[0m";
}

bool is_warning(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::NotPublished:
    case Event::Kind::EntryDropped:
    case Event::Kind::CacheUnavailable:
    case Event::Kind::WorkerUnavailable:
    case Event::Kind::SetAside:
    case Event::Kind::BundleRefused:
    case Event::Kind::FellBack:
    case Event::Kind::RecordUnavailable:
    case Event::Kind::RemoteRefused:
    case Event::Kind::RemoteUnavailable:
    case Event::Kind::Configuration: return true;
    default: return false;
  }
}

// One event in one line: what, of which unit, why.
std::string line_of(const Event& event) {
  std::string line = to_string(event.kind);
  if (!event.unit.empty()) line += ' ' + event.unit;
  if (!event.target.empty()) line += " for " + event.target;
  if (!event.origin.empty()) line += " [" + event.origin + ']';
  if (!event.key.empty()) line += " key " + event.key.substr(0, 12);
  if (event.ms > 0) line += " in " + time_text(event.ms);
  if (!event.message.empty()) line += ": " + event.message;
  return line;
}

}  // namespace

Console::Console(const Arguments& arguments)
    : command_(arguments.command), verbose_(arguments.verbose), quiet_(arguments.quiet),
      drawable_out_(is_terminal(STDOUT_FILENO)), styled_out_(may_style(STDOUT_FILENO)),
      styled_err_(may_style(STDERR_FILENO)), live_(is_terminal(STDERR_FILENO) && !arguments.quiet && !arguments.json) {}

Console::~Console() { draw({}); }

void Console::print(std::string_view text) {
  const MutexLock lock(mutex_);
  clear_line();
  std::string line(text);
  if (line.empty() || line.back() != '\n') line += '\n';
  (void)write_all(STDOUT_FILENO, line, "standard output");  // a reader that went away has what it wanted
}

void Console::note(const char* colour, const char* word, const std::string& message) {
  clear_line();
  (void)write_all(STDERR_FILENO, "kiln: " + painted(styled_err_, colour, word) + message + '\n', "standard error");
}

void Console::error(const Error& error, const std::string& context) {
  const MutexLock lock(mutex_);
  std::string message = context.empty() ? error.message : context + ": " + error.message;
  if (!error.log.empty()) {
    message += '\n' + error.log;
    while (message.back() == '\n' || message.back() == '\0') message.pop_back();
  }
  note("31", "error: ", message);
  const std::string hint(hint_for(error.code, command_));
  if (!quiet_ && !names_next_step(error.message) && said_.insert(hint).second) note("2", "hint: ", hint);
}

void Console::warn(const std::string& message) {
  const MutexLock lock(mutex_);
  if (quiet_ || !said_.insert(message).second) return;
  note("33", "warning: ", message);
}

std::size_t Console::columns() const {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return (known ? size.ws_col : std::size_t{80}) - 1;  // a terminal may wrap as soon as its last column is taken
}

void Console::draw(const std::string& text) {
  if (!live_) return;
  const MutexLock lock(mutex_);
  if (text.empty()) return clear_line();
  (void)write_all(STDERR_FILENO, "\r" + text + "\033[K", "standard error");
  line_shown_ = true;
}

void Console::clear_line() {
  if (!line_shown_) return;
  (void)write_all(STDERR_FILENO, "\r\033[K", "standard error");
  line_shown_ = false;
}

EventCallback Console::listener() {
  return [this](const Event& event) { hear(event); };
}

void Console::hear(const Event& event) {
  if (is_warning(event.kind)) {
    {
      // That a cache cannot be used is said once; that nothing was kept in it goes without saying.
      const MutexLock lock(mutex_);
      cache_unavailable_ = cache_unavailable_ || event.kind == Event::Kind::CacheUnavailable;
      if (cache_unavailable_ && event.kind == Event::Kind::NotPublished && !verbose_) return;
    }
    const std::string about = event.unit.empty() ? "" : event.unit + ": ";
    warn(about + event.message + " [" + to_string(event.kind) + ']');
  } else if (verbose_) {
    const MutexLock lock(mutex_);
    note("2", "", line_of(event));
  }
}

std::string Console::style(const char* code, std::string_view text) const { return painted(styled_out_, code, text); }

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

std::string printable(std::string text) {
  const auto obeyed = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  std::replace_if(text.begin(), text.end(), obeyed, '?');
  return text;
}

std::string table_text(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<std::size_t> widths;
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
