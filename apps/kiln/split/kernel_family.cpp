#include "apps/kiln/split/kernel_family.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "apps/kiln/split/macros.hpp"
#include "apps/kiln/split/source_tokens.hpp"

namespace kiln::cli {
namespace {

constexpr unsigned kMaxNesting = 16;
constexpr std::size_t kMaxInstances = 100'000;
constexpr std::size_t kMaxExpansions = 1'000'000;

bool is_attribute(std::string_view word) {
  return word == "__launch_bounds__" || word == "__cluster_dims__" || word == "__maxnreg__" ||
         word == "__block_size__" || word == "__attribute__";
}

// Returns the text with each run of blanks replaced by one blank.
std::string single_spaced(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\\';
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  return out;
}

// Finds the family of one source. Not thread-safe.
class FamilyFinder {
 public:
  FamilyFinder(std::string_view text, std::set<std::string_view> kernel_words)
      : text_(text), source_(tokenize(text)), macros_(std::move(kernel_words)), is_removed_(text.size()) {}

  void add_header(std::string_view text) { macros_.add(tokenize(text)); }
  KernelFamily find(const std::vector<std::string>& entries);

 private:
  // The kernels of a macro call, or the reason why they cannot be instances. Neither if the macro has no kernel.
  struct Expansion {
    std::vector<KernelFamily::Instance> instances;
    std::string problem;
  };
  struct NamedKernel {
    std::string name;
    std::size_t line;
  };

  std::size_t line_of(const SourceToken& token) const {
    return static_cast<std::size_t>(
               std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(token.begin), '\n')) +
           1;
  }
  void omit(std::size_t line, std::string reason) { family_.omissions.push_back({line, std::move(reason)}); }

  std::string kernel_name(std::string_view text, const TokenList& tokens, std::size_t at) const;
  std::string expanded_word(const MacroCall& call) const;
  void scan();
  std::size_t scan_call(const MacroCall& call, std::size_t at);
  std::size_t scan_template(std::size_t at);
  void scan_instantiation(std::size_t at, std::size_t end);
  void scan_kernel(std::size_t at);
  void add_instances(std::vector<KernelFamily::Instance> found, std::size_t first, std::size_t last);
  Expansion expand(const MacroCall& call, unsigned depth);
  Expansion expand_list(std::string_view body, const TokenList& tokens, unsigned depth);
  void remove_instances();
  void report_templates();

  std::string_view text_;
  SourceTokens source_;
  MacroTable macros_;
  std::vector<bool> is_removed_;      // for each byte of the text
  std::deque<std::string> expanded_;  // the texts that tokens point to
  std::set<std::string> entries_;
  std::vector<NamedKernel> templates_;
  std::size_t depth_ = 0;  // open braces
  std::size_t expansions_ = 0;
  bool has_launch_ = false;
  KernelFamily family_;
};

// Returns the word that a macro such as CONCAT(a, b) expands to; empty if it is not one word.
std::string FamilyFinder::expanded_word(const MacroCall& call) const {
  std::optional<std::string> text = expand_call(call);
  for (unsigned depth = 0; text && depth < kMaxNesting; ++depth) {
    const SourceTokens tokens = tokenize(*text);
    if (tokens.code.size() == 1) return tokens.code.front().is_word() ? *text : std::string();
    const std::optional<MacroCall> next = tokens.code.empty() ? std::nullopt : macros_.call_at(*text, tokens.code, 0);
    if (!next || next->last + 1 != tokens.code.size()) return {};
    text = expand_call(*next);
  }
  return {};
}

// Returns the name in the declarator after the kernel word at index `at`, with template arguments if it has any; empty
// if it is not found.
std::string FamilyFinder::kernel_name(std::string_view text, const TokenList& tokens, std::size_t at) const {
  for (std::size_t i = at + 1; i < tokens.size(); ++i) {
    if (tokens[i].text == "{" || tokens[i].text == ";") return {};
    if (is_attribute(tokens[i].text) && i + 1 < tokens.size() && tokens[i + 1].text == "(") {
      i = closing_bracket(tokens, i + 1);
      if (i == kNoToken) return {};
      continue;
    }
    if (const std::optional<MacroCall> call = macros_.call_at(text, tokens, i)) {
      i = call->last;
      if (i + 1 < tokens.size() && tokens[i + 1].text == "(") return expanded_word(*call);
      continue;
    }
    if (tokens[i].is_word() && i + 1 < tokens.size() && tokens[i + 1].text == "<") {
      const std::size_t close = closing_angle(tokens, i + 1);
      if (close == kNoToken || close + 1 >= tokens.size()) return {};
      if (tokens[close + 1].text != "(") continue;
      return single_spaced(text.substr(tokens[i].begin, tokens[close].end() - tokens[i].begin));
    }
    if (tokens[i].text == "(") return tokens[i - 1].is_word() ? std::string(tokens[i - 1].text) : std::string();
  }
  return {};
}

FamilyFinder::Expansion FamilyFinder::expand(const MacroCall& call, unsigned depth) {
  const std::string name(call.name);
  const std::optional<std::string> body = expand_call(call);
  if (!body || depth > kMaxNesting || ++expansions_ > kMaxExpansions) return {};
  expanded_.push_back(*body);
  const std::string_view text = expanded_.back();
  const SourceTokens inner = tokenize(text);
  const TokenList& tokens = inner.code;
  const auto is_kernel = [&](const SourceToken& token) { return macros_.is_kernel_word(token.text); };
  const auto count = std::count_if(tokens.begin(), tokens.end(), is_kernel);
  Expansion result = count == 0 ? expand_list(text, tokens, depth + 1) : Expansion();
  const bool has_kernels = count != 0 || !result.instances.empty();
  if (has_kernels && call.macro->is_redefined) return {{}, "macro " + name + " has several definitions"};
  if (count == 0) return result;
  if (count > 1) {
    return {{}, "macro " + name + " defines " + std::to_string(count) + " kernels; an instance has one"};
  }
  const auto at = static_cast<std::size_t>(std::find_if(tokens.begin(), tokens.end(), is_kernel) - tokens.begin());
  for (std::size_t i = 0; i + 1 < at; ++i) {
    if (tokens[i].text == "template" && tokens[i + 1].text == "<") return {{}, "macro " + name + " defines a template"};
  }
  const std::string entry = kernel_name(text, tokens, at);
  if (entry.empty()) {
    return {{}, "the kernel's name in macro " + name + " was not found"};
  }
  return {{{entry, std::string(call.text) + '\n', name, 0}}, {}};
}

// Returns the kernels of a text that consists of macro calls.
FamilyFinder::Expansion FamilyFinder::expand_list(std::string_view body, const TokenList& tokens, unsigned depth) {
  Expansion all;
  bool has_other_code = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::optional<MacroCall> call = macros_.call_at(body, tokens, i);
    has_other_code = has_other_code || (!call && tokens[i].text != ";");
    if (!call) continue;
    Expansion one = expand(*call, depth);
    if (!one.problem.empty()) return one;
    has_other_code = has_other_code || one.instances.empty();
    if (all.instances.size() + one.instances.size() > kMaxInstances) return {{}, "a macro has too many kernels"};
    std::move(one.instances.begin(), one.instances.end(), std::back_inserter(all.instances));
    i = call->last;
  }
  if (has_other_code && !all.instances.empty()) return {{}, "a macro contains kernels and other code"};
  return all;
}

void FamilyFinder::add_instances(std::vector<KernelFamily::Instance> found, std::size_t first, std::size_t last) {
  const std::size_t line = line_of(source_.code[first]);
  if (depth_ != 0 || source_.code[first].conditional) {
    return omit(line, found.front().origin + (depth_ != 0 ? " is used inside braces" : " is used inside an #if") +
                          ", so that it stays in the preamble; move it out");
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
  std::fill(is_removed_.begin() + static_cast<std::ptrdiff_t>(source_.code[first].begin),
            is_removed_.begin() + static_cast<std::ptrdiff_t>(end), true);
}

// Handles a macro call at index `at`. Returns the index of its last token.
std::size_t FamilyFinder::scan_call(const MacroCall& call, std::size_t at) {
  Expansion found = expand(call, 0);
  expanded_.clear();
  const TokenList& code = source_.code;
  if (!found.problem.empty()) omit(line_of(code[at]), found.problem);
  if (found.instances.empty()) return call.last;
  const bool semicolon = call.last + 1 < code.size() && code[call.last + 1].text == ";";
  const std::size_t last = call.last + (semicolon ? 1 : 0);
  add_instances(std::move(found.instances), at, last);
  return last;
}

// Handles `template <…> declaration` and `template declaration;`. Returns the index before which scanning continues.
std::size_t FamilyFinder::scan_template(std::size_t at) {
  const TokenList& code = source_.code;
  const bool defines = at + 1 < code.size() && code[at + 1].text == "<";
  const std::size_t start = defines ? closing_angle(code, at + 1) : at;
  if (start == kNoToken) return at;
  std::size_t kernel = kNoToken;
  std::size_t end = start + 1;
  for (; end < code.size() && code[end].text != "{" && code[end].text != ";"; ++end) {
    if (kernel == kNoToken && macros_.is_kernel_word(code[end].text)) kernel = end;
    if (code[end].text == "(") end = closing_bracket(code, end);
    if (end == kNoToken) return at;
  }
  if (kernel == kNoToken || end == code.size()) return end - 1;
  const std::string name = kernel_name(text_, code, kernel);
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
  const std::string entry = kernel_name(text_, code, kernel);
  const std::size_t angle = entry.find('<');
  if (angle == std::string::npos) {
    return omit(line_of(code[at]), "the instantiation of '" + entry + "' has no template arguments; write them");
  }
  add_instances({{entry, {}, single_spaced(entry.substr(0, angle)), 0}}, at, end);
}

void FamilyFinder::scan_kernel(std::size_t at) {
  omit(line_of(source_.code[at]),
       "kernel '" + kernel_name(text_, source_.code, at) +
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
    const bool blank = line.find_first_not_of(" \t\r\n;") == std::string::npos;
    if (!has_removed || !blank) family_.preamble += line;
    family_.is_preamble_changed = family_.is_preamble_changed || has_removed;
    line.clear();
    has_removed = false;
  }
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
  scan();
  for (const std::string& entry : entries) {
    if (entries_.insert(entry).second) family_.instances.push_back({entry, {}, entry.substr(0, entry.find('<')), 0});
  }
  report_templates();
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
