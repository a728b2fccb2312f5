// SPDX-License-Identifier: Apache-2.0
#include "analysis/source/launch_shapes.hpp"

#include <unordered_map>
#include <unordered_set>

#include "analysis/source/device_values.hpp"

namespace kiln::source {
namespace {

/// A search for launches in one source. Not thread-safe.
class LaunchShapes {
 public:
  LaunchShapes(const Structure& source, const Imports& imports) : source_(source), imports_(imports) {
    for (const TokenRange& statement : source.statements) add_constant(statement);
    for (std::size_t i = 0; i < source.tokens.size(); ++i) {
      const std::string_view text = source.tokens[i].text;
      if (source.is_word(i) && text.find("ccupancy") != std::string_view::npos) {
        measured_.insert(source.places[i].function);
      }
    }
  }

  std::vector<std::size_t> find() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < source_.tokens.size(); ++i) {
      const std::uint32_t function = source_.places[i].function;
      if (source_.functions[function].device) continue;
      const bool is_launch =
          source_.language == Language::Cuda ? function != 0 && is_cuda_launch(i) : is_python_launch(i);
      if (is_launch && !measured_.contains(function)) found.push_back(i);
    }
    return found;
  }

 private:
  static constexpr std::size_t kMaxShape = 48;  // tokens of a launch configuration; keeps the search linear

  bool is_number(std::size_t at) const {
    const SourceToken& token = source_.tokens[at];
    return token.kind == SourceToken::Kind::Literal && token.text[0] >= '0' && token.text[0] <= '9';
  }

  // Adds `threads = 256`, `dim3 block(16, 16)` and `#define BLOCK 256`. A name that is also assigned another value is
  // no constant.
  void add_constant(TokenRange statement) {
    if (statement.end - statement.first > kMaxShape) return;
    const std::uint32_t function = source_.places[statement.first].function;
    if (source_.language == Language::Cuda) {
      for (std::size_t i = statement.first; i + 2 < statement.end; ++i) {
        if (source_.is(i, "dim3") && source_.is_word(i + 1) && source_.is(i + 2, "(")) {
          return set(function, i + 1, {i + 2, statement.end});
        }
      }
      // The name of a macro is outside of functions.
      if (statement.end - statement.first == 2 && function == 0 && is_number(statement.first + 1)) {
        return set(0, statement.first, {statement.first + 1, statement.end});
      }
    }
    for (std::size_t i = statement.first + 1; i < statement.end; ++i) {
      if (!source_.is_assignment(i)) continue;
      // `threads *= 2` has an operator in front.
      const std::size_t name = source_.is_word(i - 1) || i < 2 ? i - 1 : i - 2;
      if (!source_.is_word(name) || source_.is_member(name)) return;
      return set(function, name, {name == i - 1 ? i + 1 : i - 1, statement.end});
    }
  }
  void set(std::uint32_t function, std::size_t name, TokenRange value) {
    if (constants_.size() > 100'000) return;
    const bool constant = is_literal(value);
    const auto [at, fresh] = constants_.try_emplace({function, source_.tokens[name].text}, constant);
    if (!fresh) at->second = at->second && constant;
  }
  // Returns whether a range has numbers only, as in `256`, `(16, 16)`, `dim3(8 * 32)` or `1 << 8`.
  bool is_literal(TokenRange range) const {
    bool number = false;
    for (std::size_t i = range.first; i < range.end; ++i) {
      const std::string_view text = source_.tokens[i].text;
      if (is_number(i)) {
        number = true;
      } else if (text != "(" && text != ")" && text != "," && text != "*" && text != "dim3" && text != "{" &&
                 text != "}" && text != "<") {
        return false;
      }
    }
    return number;
  }
  bool is_constant(TokenRange range) const {
    while (range.end - range.first > 2 && source_.is(range.first, "(") &&
           source_.tokens[range.first].close == range.end - 1) {
      ++range.first;
      range.end -= source_.is(range.end - 2, ",") ? 2 : 1;
    }
    if (range.end <= range.first) return false;
    if (range.end == range.first + 1 && source_.is_word(range.first)) {
      const std::string_view name = source_.tokens[range.first].text;
      for (const std::uint32_t function : {source_.places[range.first].function, 0U}) {
        const auto found = constants_.find({function, name});
        if (found != constants_.end()) return found->second;
      }
      return false;
    }
    return is_literal(range);
  }
  bool has_constant(const std::vector<TokenRange>& shape) const {
    return shape.size() >= 2 && (is_constant(shape[0]) || is_constant(shape[1]));
  }

  bool is_cuda_launch(std::size_t at) const {
    const std::string_view text = source_.tokens[at].text;
    if (text == "<<<") {
      std::size_t end = at + 1;
      while (end < source_.tokens.size() && end < at + kMaxShape &&
             !(source_.is(end, ">") && source_.is(end + 1, ">") && source_.is(end + 2, ">"))) {
        ++end;
      }
      return source_.is(end, ">") && has_constant(source_.split({at + 1, end}));
    }
    if (!source_.is_word(at)) return false;
    if (text == "Block" && (imports_.libraries & kKiln) != 0) {
      return (source_.is(at + 1, "{") || source_.is(at + 1, "(")) && is_constant_call(at + 1);
    }
    const bool driver = text == "cuLaunchKernel" || text == "hipModuleLaunchKernel";
    if (!driver && text != "cudaLaunchKernel" && text != "hipLaunchKernelGGL") return false;
    const auto arguments = source_.is(at + 1, "(") ? source_.arguments_of(at + 1) : std::vector<TokenRange>();
    const std::size_t block = driver ? 4 : 2;
    return arguments.size() > block && (is_constant(arguments[block]) || is_constant(arguments[1]));
  }
  bool is_constant_call(std::size_t open) const {
    const std::size_t close = source_.tokens[open].close;
    return close != kNoToken && close < open + kMaxShape && is_constant({open + 1, close});
  }

  bool is_python_launch(std::size_t at) const {
    const std::size_t close = source_.tokens[at].close;
    if (source_.is(at, "block")) return is_block_keyword(at);
    if (close == kNoToken || at == 0 || close <= at + 1) return false;
    const bool callee = source_.is_word(at - 1) || source_.is(at - 1, ")") || source_.is(at - 1, "]");
    if (!callee) return false;
    if (source_.is(at, "[")) {
      if ((imports_.libraries & (kNumba | kTriton | kCupy)) == 0 || !source_.is(close + 1, "(")) return false;
      if (close > at + kMaxShape) return false;
      const auto shape = source_.arguments_of(at);
      if (shape.size() == 1) return source_.is(at + 1, "(") && is_constant(shape[0]);
      return shape.size() <= 4 && has_constant(shape);
    }
    if (!source_.is(at, "(") || !source_.is(at + 1, "(") || (imports_.libraries & kCupy) == 0) return false;
    if (close > at + 8 * kMaxShape) return false;
    const auto shape = source_.arguments_of(at);
    if (shape.size() < 3) return false;
    for (std::size_t i = 0; i < 3; ++i) {
      const bool tuple = source_.is(shape[i].first, "(") && source_.tokens[shape[i].first].close == shape[i].end - 1;
      if (!tuple) return false;
    }
    return has_constant(shape);
  }
  // Returns whether `block=256` is a keyword argument of a launch.
  bool is_block_keyword(std::size_t at) const {
    if ((imports_.libraries & (kPycuda | kKiln | kCudaPython)) == 0 || at == 0) return false;
    if (!source_.is_assignment(at + 1) || !(source_.is(at - 1, "(") || source_.is(at - 1, ","))) return false;
    std::size_t end = at + 2;
    while (end < source_.tokens.size() && end < at + kMaxShape && !source_.is(end, ",") && !source_.is(end, ")")) {
      const std::size_t close = source_.tokens[end].close;
      end = close != kNoToken && close > end ? close + 1 : end + 1;
    }
    return end < source_.tokens.size() && is_constant({at + 2, end});
  }

  const Structure& source_;
  const Imports& imports_;
  std::unordered_map<LocalName, bool, LocalNameHash> constants_;  // false: a variable
  std::unordered_set<std::uint32_t> measured_;                    // functions that ask for an occupancy
};

}  // namespace

std::vector<std::size_t> find_launch_shapes(const Structure& source, const Imports& imports) {
  return LaunchShapes(source, imports).find();
}

}  // namespace kiln::source
