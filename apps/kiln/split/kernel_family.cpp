// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/split/kernel_family.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "analysis/source/source_tokens.hpp"
#include "apps/kiln/split/later_code.hpp"
#include "apps/kiln/split/macro_kernels.hpp"
#include "apps/kiln/split/macros.hpp"
#include "backends/source_scan.hpp"

namespace kiln::cli {
namespace {

constexpr std::size_t kMaxInstances = 100'000;

// Finds the family of one source. Not thread-safe.
class FamilyFinder {
 public:
  FamilyFinder(std::string_view text, std::set<std::string_view> kernel_words)
      : text_(text), source_(tokenize(text)), macros_(std::move(kernel_words)), is_removed_(text.size()) {
    for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
      line_ends_.push_back(at);
    }
  }

  void add_header(std::string_view text) {
    const SourceTokens tokens = tokenize(text);
    macros_.add(tokens);
    add_words(words_, tokens, true);
  }
  KernelFamily find(const std::vector<std::string>& entries);

 private:
  struct NamedKernel {
    std::string name;
    std::size_t line;
  };

  std::size_t line_of(std::size_t at) const {
    return static_cast<std::size_t>(std::lower_bound(line_ends_.begin(), line_ends_.end(), at) - line_ends_.begin()) +
           1;
  }
  std::size_t line_of(const SourceToken& token) const { return line_of(token.begin); }
  void omit(std::size_t line, std::string reason) { family_.omissions.push_back({line, std::move(reason)}); }

  std::string misplaced(std::size_t first, std::size_t last) const;
  void scan();
  std::size_t scan_call(const MacroCall& call, std::size_t at);
  std::size_t scan_template(std::size_t at);
  void scan_instantiation(std::size_t at, std::size_t end);
  void scan_kernel(std::size_t at);
  void add_instances(std::vector<KernelFamily::Instance> found, std::size_t first, std::size_t last);
  void refuse(std::size_t at, std::string reason);
  void check_meaning();
  void remove_instances();
  void report_templates();

  std::string_view text_;
  SourceTokens source_;
  MacroTable macros_;
  MacroKernels kernels_{macros_};
  FirstUses words_;
  std::vector<std::size_t> line_ends_;
  std::vector<SourceRange> ranges_;  // of instances
  std::vector<bool> is_removed_;     // for each byte of the text
  std::set<std::string> entries_;
  std::vector<NamedKernel> templates_;
  std::size_t depth_ = 0;            // open braces
  std::size_t call_end_ = kNoToken;  // index of the last token of a macro call that was a declaration
  bool has_launch_ = false;
  KernelFamily family_;
};

// Returns why the declaration from token `first` to `last` cannot be moved; empty if it can.
std::string FamilyFinder::misplaced(std::size_t first, std::size_t last) const {
  const TokenList& code = source_.code;
  if (depth_ != 0) return "is used inside braces";
  if (code[first].conditional) return "is used inside an #if";
  const bool starts =
      first == 0 || code[first - 1].text == ";" || code[first - 1].text == "}" || call_end_ + 1 == first;
  if (!starts) return "is used after the start of a declaration";
  const auto directive =
      std::lower_bound(source_.directives.begin(), source_.directives.end(), code[first].begin,
                       [](const SourceTokens::Directive& one, std::size_t at) { return one.begin < at; });
  const bool encloses = directive != source_.directives.end() && directive->begin < code[last].end();
  if (encloses) return "is used around a directive";
  return family_.instances.size() >= kMaxInstances ? "is one of too many instances" : "";
}

void FamilyFinder::add_instances(std::vector<KernelFamily::Instance> found, std::size_t first, std::size_t last) {
  const std::size_t line = line_of(source_.code[first]);
  if (const std::string reason = misplaced(first, last); !reason.empty()) {
    return omit(line, found.front().origin + ' ' + reason + ", so that it stays in the preamble; move it out");
  }
  for (KernelFamily::Instance& instance : found) {
    instance.line = line;
    if (!entries_.insert(instance.entry).second) {
      omit(line, "'" + instance.entry + "' is instantiated twice");
    } else {
      family_.instances.push_back(std::move(instance));
    }
  }
  const std::size_t end = source_.code[last].end();
  ranges_.push_back({source_.code[first].begin, end});
  std::fill(is_removed_.begin() + static_cast<std::ptrdiff_t>(source_.code[first].begin),
            is_removed_.begin() + static_cast<std::ptrdiff_t>(end), true);
}

// Handles a macro call at index `at`. Returns the index of its last token.
std::size_t FamilyFinder::scan_call(const MacroCall& call, std::size_t at) {
  MacroKernels::Found found = kernels_.find(call);
  const TokenList& code = source_.code;
  if (!found.problem.empty()) omit(line_of(code[at]), found.problem);
  if (found.instances.empty()) {
    if (macros_.has_statements(call.name)) call_end_ = call.last;
    return call.last;
  }
  const bool semicolon = call.last + 1 < code.size() && code[call.last + 1].text == ";";
  const std::size_t last = call.last + (semicolon ? 1 : 0);
  add_instances(std::move(found.instances), at, last);
  call_end_ = last;
  return last;
}

// Handles `template <…> declaration` and `template declaration;`. Returns the index before which scanning continues.
std::size_t FamilyFinder::scan_template(std::size_t at) {
  const TokenList& code = source_.code;
  const bool defines = at + 1 < code.size() && code[at + 1].text == "<";
  const std::size_t start = defines ? closing_angle(code, at + 1) : at;
  if (start == kNoToken) {
    std::size_t next = at + 1;
    while (next < code.size() && code[next].text != ";" && code[next].text != "{" && code[next].text != "}") ++next;
    return next - 1;
  }
  std::size_t kernel = kNoToken;
  std::size_t end = start + 1;
  for (; end < code.size() && code[end].text != "{" && code[end].text != ";"; ++end) {
    if (kernel == kNoToken && macros_.is_kernel_word(code[end].text)) kernel = end;
    if (code[end].text != "(") continue;
    if (code[end].close == kNoToken) return end;
    end = code[end].close;
  }
  if (kernel == kNoToken || end == code.size()) return end - 1;
  const std::string name = kernels_.kernel_name(text_, code, kernel);
  if (!defines) {
    scan_instantiation(at, end);
  } else if (name.find('<') == std::string::npos && code[end].text == "{") {
    templates_.push_back({name, line_of(code[kernel])});
  } else if (code[end].text == "{") {
    scan_kernel(kernel);
  }
  return end - 1;
}

// Handles `template __global__ void scale<float>(float*);` from index `at` to the semicolon at `end`.
void FamilyFinder::scan_instantiation(std::size_t at, std::size_t end) {
  const TokenList& code = source_.code;
  std::size_t kernel = at;
  while (!macros_.is_kernel_word(code[kernel].text)) ++kernel;
  const std::string entry = kernels_.kernel_name(text_, code, kernel);
  const std::size_t angle = entry.find('<');
  if (angle == std::string::npos) {
    return omit(line_of(code[at]), "the instantiation of '" + entry + "' has no template arguments; write them");
  }
  add_instances({{entry, {}, entry.substr(0, angle), 0}}, at, end);
}

void FamilyFinder::scan_kernel(std::size_t at) {
  omit(line_of(source_.code[at]),
       "kernel '" + kernels_.kernel_name(text_, source_.code, at) +
           "' stays in the preamble and is compiled with each instance; move it to another file");
}

void FamilyFinder::scan() {
  const TokenList& code = source_.code;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const SourceToken& token = code[i];
    if (token.text == "{") ++depth_;
    if (token.text == "}" && depth_ > 0) --depth_;
    if (token.text == "<<<" && !std::exchange(has_launch_, true)) {
      omit(line_of(token), "a kernel launch is host code, which NVRTC does not compile; move it to another file");
    }
    if (!token.is_word()) continue;
    const int balance = macros_.brace_balance(token.text);
    depth_ = balance < 0 ? depth_ - std::min(depth_, static_cast<std::size_t>(-balance))
                         : depth_ + static_cast<std::size_t>(balance);
    if (const std::optional<MacroCall> call = macros_.call_at(text_, code, i)) {
      i = scan_call(*call, i);
    } else if (token.text == "template") {
      i = scan_template(i);
    } else if (macros_.is_kernel_word(token.text)) {
      scan_kernel(i);
      while (i + 1 < code.size() && code[i + 1].text != "{" && code[i + 1].text != ";") ++i;
    }
  }
}

// Makes the family empty: nothing is written.
void FamilyFinder::refuse(std::size_t at, std::string reason) {
  omit(line_of(at), std::move(reason));
  family_.instances.clear();
  std::fill(is_removed_.begin(), is_removed_.end(), false);
}

// All instances move behind the rest of the file. Refuses a file in which that can change what they mean.
void FamilyFinder::check_meaning() {
  if (ranges_.empty()) return;
  if (const auto found = find_later_code(text_, source_, macros_, words_, ranges_)) refuse(found->at, found->reason);
  const auto counter = words_.find("__COUNTER__");
  if (counter != words_.end()) refuse(counter->second, "__COUNTER__ has another value in each instance");
  for (std::size_t at = text_.find("\\\n"); at != std::string_view::npos; at = text_.find("\\\n", at + 2)) {
    const bool splits = at > 0 && at + 2 < text_.size() && is_word(text_[at - 1]) && is_word(text_[at + 2]);
    if (splits) return refuse(at, "a line break splits a word; write the word in one line");
  }
}

// Builds the preamble. A line that contains nothing but instances is removed.
void FamilyFinder::remove_instances() {
  std::string line;
  bool has_removed = false;
  for (std::size_t i = 0; i <= text_.size(); ++i) {
    const bool at_end = i == text_.size();
    if (!at_end && is_removed_[i]) {
      has_removed = true;
      continue;
    }
    if (!at_end) line += text_[i];
    if (!at_end && text_[i] != '\n') continue;
    const bool blank = line.find_first_not_of(" \t\r\n") == std::string::npos;
    if (!has_removed || !blank) family_.preamble += line;
    family_.is_preamble_changed = family_.is_preamble_changed || has_removed;
    line.clear();
    has_removed = false;
  }
  const bool ends_line = family_.preamble.ends_with('\n') && !family_.preamble.ends_with("\\\n");
  if (family_.is_preamble_changed && !family_.preamble.empty() && !ends_line) family_.preamble += '\n';
  const SourceTokens rest = tokenize(family_.preamble);
  const std::vector<std::string> included = quoted_includes(family_.preamble);
  if (rest.code.empty() && rest.directives.size() == 1 && included.size() == 1) family_.included_preamble = included[0];
}

void FamilyFinder::report_templates() {
  for (const NamedKernel& kernel : templates_) {
    const auto at = entries_.lower_bound(kernel.name + '<');
    if (at != entries_.end() && at->starts_with(kernel.name + '<')) continue;
    omit(kernel.line, "template '" + kernel.name +
                          "' has no explicit instantiation; name its instances with --entry '" + kernel.name +
                          "<...>'");
  }
}

KernelFamily FamilyFinder::find(const std::vector<std::string>& entries) {
  macros_.add(source_);
  add_words(words_, source_, false);
  scan();
  for (const std::string& entry : entries) {
    if (entries_.insert(entry).second) family_.instances.push_back({entry, {}, entry.substr(0, entry.find('<')), 0});
  }
  report_templates();
  check_meaning();
  remove_instances();
  std::stable_sort(family_.omissions.begin(), family_.omissions.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return std::move(family_);
}

}  // namespace

std::vector<std::string> quoted_includes(std::string_view text) {
  std::vector<std::string> names;
  for (const SourceTokens::Directive& directive : tokenize(text).directives) {
    if (directive.name != "include" || directive.tokens.empty()) continue;
    const std::string_view name = directive.tokens.front().text;
    if (name.size() > 2 && name.front() == '"' && name.back() == '"')
      names.emplace_back(name.substr(1, name.size() - 2));
  }
  return names;
}

KernelFamily find_kernel_family(std::string_view text, bool opencl, const std::vector<std::string>& headers,
                                const std::vector<std::string>& entries) {
  FamilyFinder finder(
      text, opencl ? std::set<std::string_view>{"__kernel", "kernel"} : std::set<std::string_view>{"__global__"});
  for (const std::string& header : headers) finder.add_header(header);
  return finder.find(entries);
}

}  // namespace kiln::cli
