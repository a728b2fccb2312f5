// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "analysis/source/structure.hpp"

namespace kiln::source {
namespace {

// Words before a parenthesis that do not make it the parameters of a function.
constexpr std::array<std::string_view, 14> kNotFunctions = {
    "alignas",  "__attribute__", "__declspec", "__launch_bounds__", "__align__",
    "noexcept", "decltype",      "requires",   "explicit",          "throw",
    "if",       "for",           "while",      "__cluster_dims__"};
// Words between the parameters of a function and its body.
constexpr std::array<std::string_view, 6> kBeforeBody = {"const", "noexcept", "override", "final", "mutable", "try"};
constexpr std::array<std::string_view, 5> kTypes = {"class", "struct", "union", "enum", "namespace"};
constexpr std::size_t kMaxDeclaration = 1024;  // tokens in front of a body; keeps the search for its name linear

/// Determines the functions and loops of a C++ source in one pass. A file of another kind gives an arbitrary but
/// bounded result. Not thread-safe.
class CudaStructure {
 public:
  explicit CudaStructure(std::string_view text) {
    SourceTokens source = tokenize(text);
    out_.functions.emplace_back();
    const std::vector<TokenRange> dead = dead_ranges(source, text.size());
    add_code(source.code, dead);
    for (SourceTokens::Directive& directive : source.directives) {
      if (directive.name == "define") add_macro(std::move(directive.tokens));
    }
    out_.places.resize(out_.tokens.size());
  }
  Structure take() { return std::move(out_); }

 private:
  enum class Kind : unsigned char { Outer, Function, Block, Bracket, Loop };
  // A scope, with the state to return to at its end.
  struct Scope {
    Kind kind;
    std::size_t close;
    std::size_t init_end;
    std::uint32_t function;
    std::uint16_t loops;
  };

  // Returns the offsets of the text that `#if 0` removes.
  static std::vector<TokenRange> dead_ranges(const SourceTokens& source, std::size_t size) {
    std::vector<TokenRange> dead;
    std::size_t depth = 0;
    std::size_t since = kNoToken;
    for (const SourceTokens::Directive& each : source.directives) {
      if (since == kNoToken) {
        if (each.name == "if" && each.tokens.size() == 1 && each.tokens[0].text == "0") {
          since = each.begin;
          depth = 1;
        }
        continue;
      }
      if (each.name.starts_with("if")) ++depth;
      if (each.name == "endif") --depth;
      if (depth == 0 || (depth == 1 && each.name.starts_with("el"))) {
        dead.push_back({since, each.begin});
        since = kNoToken;
      }
    }
    if (since != kNoToken) dead.push_back({since, size});
    return dead;
  }

  void add_code(const TokenList& code, const std::vector<TokenRange>& dead) {
    auto range = dead.begin();
    for (const SourceToken& token : code) {
      while (range != dead.end() && range->end <= token.begin) ++range;
      if (range == dead.end() || token.begin < range->first) out_.tokens.push_back(token);
    }
    if (!dead.empty()) {
      for (SourceToken& token : out_.tokens) token.close = kNoToken;
      link_brackets(out_.tokens);
    }
    walk(0);
  }

  // A macro counts as a function of the name `#define NAME`: its code runs wherever it is used.
  void add_macro(TokenList tokens) {
    if (tokens.empty()) return;
    const std::size_t offset = out_.tokens.size();
    const bool has_parameters = tokens.size() > 1 && tokens[1].text == "(" && !tokens[1].spaced;
    std::size_t body = has_parameters && tokens[1].close != kNoToken ? tokens[1].close + 1 : 1;
    out_.functions.push_back({"#define " + std::string(tokens[0].text)});
    function_ = static_cast<std::uint32_t>(out_.functions.size() - 1);
    loops_ = 0;
    for (SourceToken& token : tokens) {
      if (token.close != kNoToken) token.close += offset;
      out_.tokens.push_back(token);
    }
    out_.places.resize(offset + body);  // name and parameters are outside of functions
    walk(offset + body);
    out_.statements.push_back({offset, out_.tokens.size()});
    function_ = 0;
  }

  void walk(std::size_t first) {
    scopes_.clear();
    close_ = kNoToken;
    init_end_ = 0;
    statement_ = first;
    std::size_t start = first;  // of the statement for the lists of statements
    const std::size_t end = out_.tokens.size();
    for (std::size_t i = first; i < end; ++i) {
      visit(i);
      const std::string_view text = out_.tokens[i].text;
      if (text == ";" || text == "{" || text == "}") {
        if (i > start) out_.statements.push_back({start, i});
        start = i + 1;
      }
    }
    if (end > start) out_.statements.push_back({start, end});
  }

  void visit(std::size_t i) {
    const SourceToken& token = out_.tokens[i];
    const bool once = i < init_end_ && loops_ > 0;
    out_.places.push_back({function_, static_cast<std::uint16_t>(once ? loops_ - 1 : loops_)});
    if (i == close_) pop(i);
    if (token.text == "(" || token.text == "[") {
      if (token.close != kNoToken) push(Kind::Bracket, token.close);
    } else if (token.text == "{") {
      open_brace(i);
    } else if (token.text == ";") {
      end_statement(i);
    } else if (function_ != 0 && token.is_word()) {
      if (token.text == "do" && !runs_once(i)) push_loop(i, kNoToken);
      if ((token.text == "for" || token.text == "while") && out_.is(i + 1, "(")) push_loop(i, i + 1);
    }
  }

  // Returns whether a `do` is the `do { … } while (0)` of a macro.
  bool runs_once(std::size_t at) const {
    const std::size_t end = out_.is(at + 1, "{") ? out_.tokens[at + 1].close : kNoToken;
    return end != kNoToken && out_.is(end + 1, "while") && out_.is(end + 2, "(") &&
           (out_.is(end + 3, "0") || out_.is(end + 3, "false")) && out_.is(end + 4, ")");
  }

  // Ends the innermost scope with a bracket. Loops without braces inside of it end, too.
  void pop(std::size_t i) {
    end_loops();
    const Kind kind = scopes_.back().kind;
    restore();
    if (kind == Kind::Outer || kind == Kind::Function) statement_ = i + 1;
    if (kind == Kind::Block && !out_.is(i + 1, "else")) end_loops();
  }
  void restore() {
    const Scope& scope = scopes_.back();
    close_ = scope.close;
    init_end_ = scope.init_end;
    function_ = scope.function;
    loops_ = scope.loops;
    scopes_.pop_back();
  }
  void end_loops() {
    while (!scopes_.empty() && scopes_.back().kind == Kind::Loop) restore();
  }
  void end_statement(std::size_t i) {
    if (!out_.is(i + 1, "else")) end_loops();
    if (function_ == 0) statement_ = i + 1;
  }
  void push(Kind kind, std::size_t close) {
    scopes_.push_back({kind, close_, init_end_, function_, loops_});
    close_ = close;
  }

  // Starts a loop at `for`, `while` or `do`; `open` is the parenthesis of its header.
  void push_loop(std::size_t at, std::size_t open) {
    push(Kind::Loop, close_);
    if (loops_ < 9999) ++loops_;
    const std::size_t close = open == kNoToken ? kNoToken : out_.tokens[open].close;
    if (close == kNoToken) return;
    std::size_t first = open + 1;
    if (out_.tokens[at].text == "for") {
      init_end_ = next_semicolon(first, close);
      if (init_end_ < close) first = init_end_ + 1;
    }
    out_.loops.push_back({{first, next_semicolon(first, close)}, at, loops_});
  }
  std::size_t next_semicolon(std::size_t at, std::size_t end) const {
    while (at < end && !out_.is(at, ";")) at = after(at, end);
    return std::min(at, end);
  }
  // Returns the index after a token, or after its closing bracket.
  std::size_t after(std::size_t at, std::size_t end) const {
    const std::size_t close = out_.tokens[at].close;
    return (close != kNoToken && close > at && close < end ? close : at) + 1;
  }

  void open_brace(std::size_t i) {
    const std::size_t close = out_.tokens[i].close;
    if (function_ != 0) return push(Kind::Block, close);
    const bool in_bracket = !scopes_.empty() && scopes_.back().kind == Kind::Bracket;
    const std::optional<Function> found = in_bracket || i - statement_ > kMaxDeclaration
                                              ? (is_lambda(i) ? std::optional(Function{"lambda"}) : std::nullopt)
                                              : function_before(i);
    if (!found) {
      push(in_bracket ? Kind::Bracket : Kind::Outer, close);
      if (!in_bracket) statement_ = i + 1;
      return;
    }
    if (found->name.empty()) return push(Kind::Bracket, close);  // an initializer of a member
    push(Kind::Function, close);
    out_.functions.push_back(*found);
    function_ = static_cast<std::uint32_t>(out_.functions.size() - 1);
    loops_ = 0;
  }

  // Returns whether the brace starts the body of a lambda: `[](int x) {` and the like.
  bool is_lambda(std::size_t brace) const {
    const std::size_t limit = brace > 24 ? brace - 24 : 0;
    for (std::size_t i = brace; i > limit; --i) {
      const std::string_view text = out_.tokens[i - 1].text;
      if (text == "]") return i == brace || out_.is(i, "(");
      if (text == "{" || text == "}" || text == ";") return false;
    }
    return false;
  }

  // Returns the function whose body starts with the brace, one without a name for an initializer in front of a body,
  // and nothing for a type, a namespace or a value.
  std::optional<Function> function_before(std::size_t brace) const {
    std::size_t at = statement_;
    if (out_.is(at, "template") && out_.is(at + 1, "<")) {
      const std::size_t angle = closing_angle(out_.tokens, at + 1);
      at = angle == kNoToken || angle > brace ? at : angle + 1;
    }
    Function found;
    bool host = false;
    bool type = false;
    bool colon = false;
    std::size_t name = kNoToken;
    for (; at < brace; at = after(at, brace)) {
      const std::string_view text = out_.tokens[at].text;
      type = type || is_one_of(kTypes, text);
      found.device = found.device || text == "__global__" || text == "__device__" || text == "__kernel";
      host = host || text == "__host__";
      colon = colon || (text == ":" && !out_.is(at - 1, ":") && !out_.is(at + 1, ":"));
      if (name != kNoToken) continue;
      if (type && colon) return std::nullopt;
      const bool named = out_.is_word(at) && !is_one_of(kNotFunctions, text) && !is_one_of(kTypes, text);
      if (named && out_.is(at + 1, "(")) name = at;
      if (text == "=" && out_.is_word(at - 1) && out_.is(at + 1, "[")) name = at - 1;
    }
    if (name == kNoToken) return is_lambda(brace) ? std::optional(Function{"lambda"}) : std::nullopt;
    const bool after_name =
        (out_.is_word(brace - 1) || out_.is(brace - 1, ">")) && !is_one_of(kBeforeBody, out_.tokens[brace - 1].text);
    if (type && after_name) return std::nullopt;  // struct DEPRECATED("…") Name {
    if (colon && after_name) return Function{};
    found.name = qualified(name);
    found.device = found.device && !host;
    return found;
  }

  // Returns `Type::name` for the word at `at`.
  std::string qualified(std::size_t at) const {
    std::string name = (out_.is(at - 1, "~") ? "~" : "") + std::string(out_.tokens[at].text);
    if (at == 0) return name;
    std::size_t before = at - (out_.is(at - 1, "~") ? 1 : 0);
    for (unsigned parts = 0;
         parts < 4 && before >= 3 && out_.is(before - 1, ":") && out_.is(before - 2, ":") && out_.is_word(before - 3);
         ++parts) {
      before -= 3;
      name = std::string(out_.tokens[before].text) + "::" + name;
    }
    return name;
  }

  Structure out_;
  std::vector<Scope> scopes_;
  std::uint32_t function_ = 0;
  std::uint16_t loops_ = 0;
  std::size_t close_ = kNoToken;  // index of the bracket that ends the innermost scope
  std::size_t init_end_ = 0;      // end of the part of the innermost loop that runs once
  std::size_t statement_ = 0;     // start of the statement outside of functions
};

}  // namespace

bool Structure::is_assignment(std::size_t at) const {
  if (!is(at, "=") || at == 0 || is(at + 1, "=")) return false;
  const std::string_view before = tokens[at - 1].text;
  return tokens[at].spaced || (before != "=" && before != "<" && before != ">" && before != "!");
}

std::size_t Structure::call_of(std::size_t at) const {
  if (is(at + 1, "(")) return at + 1;
  if (language == Language::Python || !is(at + 1, "<")) return kNoToken;
  const std::size_t close = close_of_angle(at + 1);
  return close != kNoToken && is(close + 1, "(") ? close + 1 : kNoToken;
}

std::size_t Structure::close_of_angle(std::size_t open) const {
  std::size_t depth = 0;
  for (std::size_t i = open; i < std::min(open + 32, tokens.size()); ++i) {
    if (is(i, "<")) ++depth;
    if (is(i, ">") && --depth == 0) return i;
    if (depth == 0 || is(i, ";") || is(i, "{") || is(i, ")")) break;
  }
  return kNoToken;
}

std::vector<TokenRange> Structure::arguments_of(std::size_t open) const {
  if (open >= tokens.size() || tokens[open].close == kNoToken || tokens[open].close <= open + 1) return {};
  return split({open + 1, tokens[open].close});
}

std::vector<TokenRange> Structure::split(TokenRange range) const {
  std::vector<TokenRange> parts;
  std::size_t first = range.first;
  for (std::size_t i = range.first; i < range.end; ++i) {
    const std::size_t close = tokens[i].close;
    if (is(i, ",")) {
      parts.push_back({first, i});
      first = i + 1;
    } else if (close != kNoToken && close > i && close < range.end) {
      i = close;
    }
  }
  if (first < range.end) parts.push_back({first, range.end});
  return parts;
}

bool Structure::has_word(TokenRange range, std::string_view word) const {
  for (std::size_t i = range.first; i < std::min(range.end, range.first + kMaxExpression); ++i) {
    if (tokens[i].is_word() && tokens[i].text == word) return true;
  }
  return false;
}

std::string_view string_content(const SourceToken& token) {
  const std::string_view text = token.text;
  if (token.kind != SourceToken::Kind::Literal || text.size() < 2) return {};
  const std::size_t quote = text.find_first_of("\"'");
  if (quote == std::string_view::npos || text.back() != text[quote]) return {};
  std::string_view content = text.substr(quote);
  const bool triple = content.size() >= 6 && content[1] == content[0] && content[2] == content[0];
  const std::size_t width = triple ? 3 : 1;
  return content.size() < 2 * width ? std::string_view() : content.substr(width, content.size() - 2 * width);
}

Structure structure_of_cuda(std::string_view text) { return CudaStructure(text).take(); }

}  // namespace kiln::source
