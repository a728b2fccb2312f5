// SPDX-License-Identifier: Apache-2.0
#include "analysis/source/rail_scan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "analysis/source/device_values.hpp"
#include "analysis/source/launch_shapes.hpp"
#include "base/format.hpp"

namespace kiln::source {
namespace {

constexpr std::string_view kIgnore = "kiln-audit: ignore";
constexpr std::size_t kMaxText = 160;

/// The lines of a text.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {
    starts_.push_back(0);
    for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
      starts_.push_back(at + 1);
    }
  }
  std::size_t number(std::size_t offset) const {
    return static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin());
  }
  std::string_view line(std::size_t number) const {
    const std::size_t begin = starts_[number - 1];
    const std::size_t end = number < starts_.size() ? starts_[number] - 1 : text_.size();
    return text_.substr(begin, end - begin);
  }

 private:
  std::string_view text_;
  std::vector<std::size_t> starts_;
};

std::string shown(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  line.remove_prefix(first);
  line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
  if (line.size() <= kMaxText) return std::string(line);
  return std::string(truncate_utf8(line, kMaxText - 3)) + "…";
}

/// The names of a trace that the functions of a source mention. Not thread-safe.
class MentionIndex {
 public:
  MentionIndex(const Structure& source, const TraceNames& names) : source_(source), names_(names) {
    if (names.empty()) return;
    for (std::uint32_t i = 0; i < names.kernels.size(); ++i) kernels_.emplace(names.kernels[i], i);
    for (std::uint32_t i = 0; i < names.operations.size(); ++i) operations_.emplace(names.operations[i], i);
    for (const TokenRange& statement : source.statements) add_alias(statement);
    for (std::size_t i = 0; i < source.tokens.size(); ++i) {
      const std::uint32_t function = source.places[i].function;
      if (const auto kernel = kernel_at(i)) found_[function].first.insert(*kernel);
      if (const auto operation = operation_at(i)) found_[function].second.insert(*operation);
    }
  }

  Mentions of(std::uint32_t function) const {
    const auto found = found_.find(function);
    if (found == found_.end()) return {};
    return {{found->second.first.begin(), found->second.first.end()},
            {found->second.second.begin(), found->second.second.end()}};
  }
  std::vector<std::pair<std::uint32_t, std::string>> implementations() const {
    std::vector<std::pair<std::uint32_t, std::string>> out;
    if (names_.operations.empty()) return out;
    for (const TokenRange& statement : source_.statements) {
      if (source_.places[statement.first].function != 0) continue;
      for (std::size_t i = statement.first; i < statement.end && out.size() < 10'000; ++i) {
        if (const auto operation = operation_at(i)) add_words(statement, *operation, out);
      }
    }
    return out;
  }

 private:
  // `k = module.get_function("refine")` makes k a name of the kernel.
  void add_alias(TokenRange statement) {
    std::size_t assignment = kNoToken;
    for (std::size_t i = statement.first; i < statement.end; ++i) {
      if (assignment == kNoToken && source_.is_assignment(i)) assignment = i;
      const std::string_view content = string_content(source_.tokens[i]);
      if (assignment == kNoToken || content.empty() || !source_.is_word(assignment - 1)) continue;
      const auto kernel = kernels_.find(std::string(base_name(content)));
      const std::string_view name = source_.tokens[assignment - 1].text;
      if (kernel != kernels_.end() && name.size() > 1) aliases_.emplace(name, kernel->second);
    }
  }
  std::optional<std::uint32_t> kernel_at(std::size_t at) const {
    const SourceToken& token = source_.tokens[at];
    const bool word = token.is_word();
    const std::string_view name = word ? token.text : base_name(string_content(token));
    if (name.empty()) return std::nullopt;
    // A short name is a kernel only if it is launched.
    const bool launched =
        source_.is(at + 1, "<<<") || source_.is(at + 1, "[") || source_.is(at + 1, "(") || source_.is(at + 1, "<");
    if (word && name.size() < 3 && !launched) return std::nullopt;
    const auto kernel = kernels_.find(std::string(name));
    if (kernel != kernels_.end()) return kernel->second;
    if (!word) return std::nullopt;
    const auto alias = aliases_.find(name);
    return alias == aliases_.end() ? std::nullopt : std::optional(alias->second);
  }
  // A string that equals the name of an operation declares it if the name has a dot or if a word in front of it says
  // so: operation("sum"), OperationScope, nvtxRangePush.
  std::optional<std::uint32_t> operation_at(std::size_t at) const {
    const std::string_view content = string_content(source_.tokens[at]);
    if (content.empty()) return std::nullopt;
    const auto operation = operations_.find(std::string(content));
    if (operation == operations_.end()) return std::nullopt;
    if (content.find('.') != std::string_view::npos) return operation->second;
    for (std::size_t i = at; i > 0 && at - i < 12; --i) {
      std::string word(source_.tokens[i - 1].text);
      std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
      for (const char* part : {"operation", "range", "record_function", "annotate", "nvtx", "dispatch"}) {
        if (word.find(part) != std::string::npos) return operation->second;
      }
    }
    return std::nullopt;
  }
  void add_words(TokenRange statement, std::uint32_t operation,
                 std::vector<std::pair<std::uint32_t, std::string>>& to) const {
    for (std::size_t i = statement.first; i < std::min(statement.end, statement.first + kMaxExpression); ++i) {
      if (source_.is_word(i) && !source_.is(i + 1, ":")) to.emplace_back(operation, source_.tokens[i].text);
    }
  }

  const Structure& source_;
  const TraceNames& names_;
  std::unordered_map<std::string, std::uint32_t> kernels_;
  std::unordered_map<std::string, std::uint32_t> operations_;
  std::unordered_map<std::string_view, std::uint32_t> aliases_;  // of kernels
  std::map<std::uint32_t, std::pair<std::set<std::uint32_t>, std::set<std::uint32_t>>> found_;
};

/// The search of one file. Not thread-safe.
class RailScan {
 public:
  RailScan(std::string_view text, Language language, const TraceNames& names)
      : source_(language == Language::Cuda ? structure_of_cuda(text) : structure_of_python(text)),
        imports_(imports_of(source_, text)), lines_(text), values_(source_, imports_), mentions_(source_, names) {}

  FileScan run() {
    for (std::size_t i = 0; i < source_.tokens.size(); ++i) {
      if (source_.is_word(i)) check_word(i);
    }
    for (const Loop& loop : source_.loops) {
      if (values_.drive(loop)) add(loop.at, Rail::DeviceRangeLoop, loop.loops);
    }
    for (const std::size_t at : find_launch_shapes(source_, imports_)) {
      add(at, Rail::LaunchShape, source_.places[at].loops);
    }
    FileScan out;
    out.suppressed = suppressed_;
    for (auto& [place, hit] : hits_) out.hits.push_back(std::move(hit));
    out.implementations = mentions_.implementations();
    return out;
  }

 private:
  void check_word(std::size_t at) {
    const std::uint32_t loops = source_.places[at].loops;
    if (values_.is_thrust_read(at) || values_.is_scalar_read(at)) return add(at, Rail::HostRead, loops);
    const Pattern* pattern = find_pattern(source_.language, source_.tokens[at].text);
    if (pattern == nullptr || (pattern->rail == Rail::AllocationInLoop && loops == 0)) return;
    if (values_.is_hit(at, *pattern)) add(at, pattern->rail, loops);
  }
  void add(std::size_t at, Rail rail, std::uint32_t loops) {
    const std::uint32_t index = source_.places[at].function;
    const Function& function = source_.functions[index];
    // What is outside of functions in C++ is a declaration.
    if (function.device || (index == 0 && source_.language == Language::Cuda)) return;
    const std::size_t line = lines_.number(source_.tokens[at].begin);
    const std::string_view text = lines_.line(line);
    const auto [place, fresh] = hits_.try_emplace({line, rail});
    if (!fresh) {
      place->second.loops = std::max(place->second.loops, loops);
      return;
    }
    if (text.find(kIgnore) != std::string_view::npos) {
      ++suppressed_;
      hits_.erase(place);
      return;
    }
    place->second = {
        {}, rail, line, std::string(truncate_utf8(function.name, kMaxText)), loops, shown(text), mentions_.of(index),
        {}};
  }

  Structure source_;
  Imports imports_;
  Lines lines_;
  DeviceValues values_;
  MentionIndex mentions_;
  std::map<std::pair<std::size_t, Rail>, Hit> hits_;
  std::uint64_t suppressed_ = 0;
};

}  // namespace

std::string_view base_name(std::string_view name) {
  name = name.substr(0, name.find_first_of("<("));
  while (name.ends_with(' ')) name.remove_suffix(1);
  const std::size_t before = name.find_last_of(" :.*&");
  return before == std::string_view::npos ? name : name.substr(before + 1);
}

FileScan scan_source(std::string_view text, Language language, const TraceNames& names) {
  if (!may_have_rails(language, text)) return {};
  return RailScan(text, language, names).run();
}

}  // namespace kiln::source
