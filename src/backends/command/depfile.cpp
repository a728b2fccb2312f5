// SPDX-License-Identifier: Apache-2.0
#include "backends/command/depfile.hpp"

#include <unordered_set>

#include "base/error.hpp"

namespace kiln {
namespace {

// The dependency file of a kernel that includes CUB's block_reduce.cuh has 61 KB with 884 names (nvcc 13.0).
constexpr std::size_t kMaxBytes = 64u << 20;
constexpr std::size_t kMaxNames = 200'000;
constexpr std::size_t kMaxNameLength = 64u << 10;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> parse() {
    if (text_.size() > kMaxBytes) return rejected("it is too large");
    while (at_ < text_.size() && error_.empty()) step();
    end_rule();
    if (!error_.empty()) return rejected(error_);
    return std::move(names_);
  }

 private:
  static Error rejected(const std::string& reason) {
    return make_error(Code::Corrupt, "invalid dependency file: " + reason);
  }

  char at(std::size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\n'; }

  // Returns the length of the line break at offset `ahead`; 0 if there is none.
  std::size_t line_break(std::size_t ahead) const {
    if (at(ahead) == '\n') return 1;
    return at(ahead) == '\r' && at(ahead + 1) == '\n' ? 2 : 0;
  }

  void step() {
    const char c = at(0);
    if (c == '\0') {
      error_ = "it contains a NUL byte";
    } else if (const std::size_t end = line_break(0); end != 0) {
      end_rule();
      at_ += end;
    } else if (c == ' ' || c == '\t') {
      end_word();
      ++at_;
    } else if (c == '#' && word_.empty() && !before_colon_ && !behind_colon_) {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '\\') {
      backslash();
    } else if (c == '$') {
      // gcc doubles it; nvcc does not.
      add('$', at(1) == '$' ? 2 : 1);
    } else if (c == ':' && !behind_colon_ && is_blank(1)) {
      end_word();
      behind_colon_ = true;
      ++at_;
    } else {
      add(c, 1);
    }
  }

  bool is_blank(std::size_t ahead) const { return at(ahead) == ' ' || at(ahead) == '\t' || line_break(ahead) != 0; }

  void backslash() {
    if (const std::size_t end = line_break(1); end != 0) {
      end_word();
      at_ += 1 + end;
    } else if (at(1) == ' ' || at(1) == '#' || at(1) == ':') {
      add(at(1), 2);
    } else if (at(1) == '\\' && ends_in_blank()) {
      // Backslashes represent half their number only before a blank.
      add('\\', 2);
    } else {
      add('\\', 1);
    }
  }

  // Returns true if the backslashes at this position are followed by a blank or a hash.
  bool ends_in_blank() const {
    std::size_t end = at_;
    while (end < text_.size() && text_[end] == '\\') ++end;
    return end < text_.size() && (text_[end] == ' ' || text_[end] == '#');
  }

  void add(char c, std::size_t taken) {
    if (word_.size() >= kMaxNameLength) error_ = "it has a name of more than 64 KiB";
    if (error_.empty()) word_ += c;
    at_ += taken;
  }

  void end_word() {
    if (word_.empty()) return;
    if (!behind_colon_) {
      before_colon_ = true;
    } else if (seen_.insert(word_).second) {
      names_.push_back(word_);
      if (names_.size() > kMaxNames) error_ = "it has too many names";
    }
    word_.clear();
  }

  void end_rule() {
    end_word();
    if (before_colon_ && !behind_colon_) error_ = "it has a line that is not a rule";
    if (behind_colon_ && !before_colon_) error_ = "it has a rule without a target";
    before_colon_ = false;
    behind_colon_ = false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string word_;
  bool before_colon_ = false;  // a target was seen
  bool behind_colon_ = false;
  std::vector<std::string> names_;
  std::unordered_set<std::string> seen_;
  std::string error_;
};

}  // namespace

Result<std::vector<std::string>> parse_depfile(std::string_view text) { return Parser(text).parse(); }

}  // namespace kiln
