// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/source/python_tokens.hpp"
#include "analysis/source/structure.hpp"

namespace kiln::source {
namespace {

/// Determines the functions and loops of a Python source by its indentation. Not thread-safe.
class PythonStructure {
 public:
  explicit PythonStructure(std::string_view text) {
    PythonTokens source = tokenize_python(text);
    out_.language = Language::Python;
    out_.tokens = std::move(source.tokens);
    out_.places.resize(out_.tokens.size());
    out_.functions.emplace_back();
    for (const PythonLine& line : source.lines) add(line);
    for (std::size_t i = 0; i < out_.tokens.size(); ++i) {
      if (out_.is(i, "for")) add_comprehension(i);
    }
  }
  Structure take() { return std::move(out_); }

 private:
  struct Scope {
    std::size_t indent;
    Place outer;         // place to return to
    std::string prefix;  // prefix of names to return to
  };

  void add(const PythonLine& line) {
    while (!scopes_.empty() && line.indent <= scopes_.back().indent) {
      here_ = scopes_.back().outer;
      prefix_ = std::move(scopes_.back().prefix);
      scopes_.pop_back();
    }
    const bool decorator = out_.is(line.first, "@");
    if (decorator) {
      if (decorators_.first == decorators_.end) decorators_.first = line.first;
      decorators_.end = line.end;
    }
    std::size_t at = line.first + (out_.is(line.first, "async") ? 1 : 0);
    const std::size_t colon = header_end(at, line.end);
    fill(line.first, line.end);
    if (colon == line.end) {
      out_.statements.push_back({line.first, line.end});
    } else if (out_.is(at, "def") && out_.is_word(at + 1)) {
      open_function(line, at + 1);
    } else if (out_.is(at, "class") && out_.is_word(at + 1)) {
      open(line);
      prefix_ += std::string(out_.tokens[at + 1].text) + '.';
    } else if (out_.is(at, "for") || out_.is(at, "while")) {
      open_loop(line, at, colon);
    } else {
      out_.statements.push_back({line.first, colon});  // with x as y:, if (n := f()):
    }
    if (colon != line.end && colon + 1 < line.end) {
      fill(colon + 1, line.end);
      out_.statements.push_back({colon + 1, line.end});
    }
    if (!decorator) decorators_ = {};
  }

  // Returns the index of the colon that ends the header of a compound statement; `end` if there is none.
  std::size_t header_end(std::size_t at, std::size_t end) const {
    static constexpr std::string_view kHeaders[] = {"def",  "class", "for",    "while",   "if",    "elif", "else",
                                                    "with", "try",   "except", "finally", "match", "case"};
    if (std::find(std::begin(kHeaders), std::end(kHeaders), out_.tokens[std::min(at, out_.tokens.size() - 1)].text) ==
        std::end(kHeaders)) {
      return end;
    }
    std::size_t lambdas = 0;
    for (; at < end; ++at) {
      const SourceToken& token = out_.tokens[at];
      if (token.close != kNoToken && token.close > at && token.close < end) {
        at = token.close;
      } else if (token.text == "lambda") {
        ++lambdas;
      } else if (token.text == ":" && !out_.is(at + 1, "=")) {
        if (lambdas == 0) return at;
        --lambdas;
      }
    }
    return end;
  }

  void fill(std::size_t first, std::size_t end) {
    std::fill(out_.places.begin() + static_cast<std::ptrdiff_t>(first),
              out_.places.begin() + static_cast<std::ptrdiff_t>(end), here_);
  }
  void open(const PythonLine& line) { scopes_.push_back({line.indent, here_, prefix_}); }

  void open_function(const PythonLine& line, std::size_t name) {
    open(line);
    Function function{prefix_ + std::string(out_.tokens[name].text)};
    function.device = is_kernel(decorators_) || out_.functions[here_.function].device;
    // Names of nested scopes grow with each level; a limit keeps hostile sources small.
    if (prefix_.size() < 200) prefix_ = function.name + '.';
    out_.functions.push_back(std::move(function));
    here_ = {static_cast<std::uint32_t>(out_.functions.size() - 1), 0};
    if (decorators_.end > decorators_.first) {
      fill(decorators_.first, decorators_.end);
    }
    fill(line.first, line.end);
  }
  void open_loop(const PythonLine& line, std::size_t at, std::size_t colon) {
    open(line);
    if (here_.loops < 9999) ++here_.loops;
    if (out_.is(at, "while")) {
      out_.loops.push_back({{at + 1, colon}, at, here_.loops});
      fill(at + 1, colon);  // evaluated in each iteration
      return;
    }
    std::size_t in = at + 1;
    while (in < colon && !out_.is(in, "in")) ++in;
    out_.loops.push_back({{std::min(in + 1, colon), colon}, at, here_.loops});
  }

  // Returns whether a decorator makes the function a kernel: @triton.jit, @cuda.jit, @jit.rawkernel, @wp.kernel.
  bool is_kernel(TokenRange range) const {
    for (std::size_t i = range.first; i < range.end; ++i) {
      const std::string_view text = out_.tokens[i].text;
      if (!out_.tokens[i].is_word()) continue;
      if (text == "rawkernel" || (text == "kernel" && out_.is_member(i))) return true;
      const bool jit = text == "jit" || text == "autotune" || text == "heuristics";
      if (jit && i >= 2 && (out_.is(i - 2, "triton") || out_.is(i - 2, "cuda") || out_.is(i - 2, "gluon"))) return true;
    }
    return false;
  }

  // Counts a `for` in brackets: all of the brackets but its first iterable runs once per item.
  void add_comprehension(std::size_t at) {
    std::size_t open = at;
    std::size_t depth = 0;
    // Long lists are not comprehensions; the limit keeps the search linear.
    const std::size_t limit = at > kMaxElement ? at - kMaxElement : 0;
    for (;; --open) {
      if (open == limit) return;
      const std::string_view text = out_.tokens[open - 1].text;
      if (text == ")" || text == "]" || text == "}") ++depth;
      if (text == "(" || text == "[" || text == "{") {
        if (depth == 0) break;
        --depth;
      }
    }
    const std::size_t close = out_.tokens[open - 1].close;
    if (close == kNoToken || close < at || close - open > 4 * kMaxElement) return;
    std::size_t in = at + 1;
    while (in < close && !out_.is(in, "in")) ++in;
    std::size_t end = in;
    for (; end < close && !out_.is(end, "for") && !out_.is(end, "if") && !out_.is(end, "async"); ++end) {
      const std::size_t inner = out_.tokens[end].close;
      if (inner != kNoToken && inner > end && inner < close) end = inner;
    }
    out_.loops.push_back({{std::min(in + 1, close), end}, at, static_cast<std::uint16_t>(out_.places[at].loops + 1)});
    for (std::size_t i = open; i < close; ++i) {
      if ((i <= in || i >= end) && out_.places[i].loops < 9999) ++out_.places[i].loops;
    }
  }

  static constexpr std::size_t kMaxElement = 256;  // tokens

  Structure out_;
  Place here_;
  std::string prefix_;
  TokenRange decorators_;
  std::vector<Scope> scopes_;
};

}  // namespace

Structure structure_of_python(std::string_view text) { return PythonStructure(text).take(); }

}  // namespace kiln::source
