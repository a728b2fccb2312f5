// SPDX-License-Identifier: Apache-2.0
#include "analysis/source/device_values.hpp"

#include <algorithm>
#include <array>

namespace kiln::source {
namespace {

// Members that describe an array and read nothing.
constexpr std::array<std::string_view, 12> kMetadata = {"shape", "size",  "ndim", "dtype",  "nbytes",  "empty",
                                                        "begin", "numel", "dim",  "device", "columns", "dtypes"};
constexpr std::array<std::string_view, 11> kReductions = {"max",  "min", "sum",    "any",    "all",          "mean",
                                                          "prod", "nnz", "argmax", "argmin", "count_nonzero"};
// Functions whose result has a size that depends on data.
constexpr std::array<std::string_view, 8> kSizedByData = {
    "unique", "nonzero", "flatnonzero", "argwhere", "where", "compress", "unique_consecutive", "drop_duplicates"};
// Functions through which a value that was read stays one.
constexpr std::array<std::string_view, 12> kTransparent = {"int", "float", "bool",      "min",  "max",  "len",
                                                           "abs", "range", "enumerate", "list", "ceil", "sizeof"};
// Parts of an array library that are not arrays.
constexpr std::array<std::string_view, 9> kNotArrays = {"binary_repr",       "cuda",    "RawKernel",
                                                        "RawModule",         "testing", "get_array_module",
                                                        "ElementwiseKernel", "dtype",   "fuse"};
// Receivers of .get() and .tolist() that are no arrays.
constexpr std::array<std::string_view, 7> kNotReceivers = {"queue",   "q",     "future", "environ",
                                                           "context", "proxy", "columns"};

}  // namespace

DeviceValues::DeviceValues(const Structure& source, const Imports& imports) : source_(source), imports_(imports) {
  if (imports.libraries == 0 && source.language == Language::Python) return;
  // Twice, because a loop can use what a later statement assigns.
  for (int pass = 0; pass < 2; ++pass) {
    for (const TokenRange& statement : source.statements) add_statement(statement);
  }
}

bool DeviceValues::is_hit(std::size_t at, const Pattern& pattern) const {
  if (pattern.libraries != 0 && (pattern.libraries & imports_.libraries) == 0) return false;
  if (!matches(source_, at, pattern)) return false;
  if (source_.language == Language::Cuda) return true;
  if (at > 0 && source_.is(at - 1, "def")) return false;
  if (pattern.rail == Rail::AllocationInLoop && pattern.libraries == kCupy && !source_.is(at, "free_all_blocks")) {
    const std::size_t root = root_of(source_, at);
    return root != kNoToken && imports_.of(source_.tokens[root].text) == kCupy;
  }
  if (at >= 2 && (source_.is(at, "get") || source_.is(at, "tolist")) && source_.is_word(at - 2)) {
    const std::string_view receiver = source_.tokens[at - 2].text;
    return !is_one_of(kNotReceivers, receiver) && !receiver.ends_with("queue") && !receiver.ends_with("_var");
  }
  return true;
}

bool DeviceValues::is_thrust_read(std::size_t at) const {
  if (source_.language != Language::Cuda || (imports_.libraries & kThrust) == 0) return false;
  if (source_.is(at, "copy") && at >= 3 && source_.is(at - 3, "thrust") && source_.is(at + 1, "(")) {
    const auto arguments = source_.arguments_of(at + 1);
    if (arguments.size() != 3) return false;
    const std::string_view to = source_.tokens[arguments[2].first].text;
    return to.starts_with("h_") || to.starts_with("host") || (flags_of(arguments[2].first) & kHost) != 0;
  }
  if (!source_.is(at, "host_vector") || !source_.is(at + 1, "<")) return false;
  const std::size_t angle = source_.close_of_angle(at + 1);
  if (angle == kNoToken || !source_.is_word(angle + 1)) return false;
  if (source_.is_assignment(angle + 2)) return true;
  const auto arguments = source_.is(angle + 2, "(") ? source_.arguments_of(angle + 2) : std::vector<TokenRange>();
  if (arguments.size() >= 2) return source_.has_word(arguments[0], "begin");
  return arguments.size() == 1 && source_.tokens[arguments[0].first].text.starts_with("d_");
}

bool DeviceValues::is_read(std::size_t at) const {
  if (!source_.is_word(at)) return false;
  if (is_thrust_read(at)) return true;
  const Pattern* pattern = find_pattern(source_.language, source_.tokens[at].text);
  const bool reads = pattern != nullptr && (pattern->rail == Rail::HostRead || pattern->rail == Rail::Materialization);
  return reads && is_hit(at, *pattern);
}

unsigned DeviceValues::flags_of(std::size_t at) const {
  const auto found = names_.find({source_.places[at].function, source_.tokens[at].text});
  if (found != names_.end()) return found->second;
  const auto outer = names_.find({0, source_.tokens[at].text});
  return outer == names_.end() ? 0 : outer->second;
}

// Returns the flags of `cp.unique(…)` and the like, by the name of the module at `at`.
unsigned DeviceValues::module_flags(std::size_t at) const {
  if (!source_.is(at + 1, ".") || !source_.is_word(at + 2)) return 0;
  const Libraries library = imports_.of(source_.tokens[at].text);
  const std::string_view member = source_.tokens[at + 2].text;
  if (library == kNumpy) return kHost;
  if ((library & (kCupy | kTorch | kJax | kCudf)) == 0 || !source_.is(at + 3, "(")) return 0;
  if (is_one_of(kSizedByData, member)) return kDevice | kSized;
  // Only some of the functions of the others return arrays.
  const bool array = library == kCupy ? !is_one_of(kNotArrays, member) : is_one_of(kReductions, member);
  return array ? kDevice : 0;
}

// Returns whether the word at `at` is only asked for its description: `x.shape`, `x->rows.size()`.
bool DeviceValues::ends_in_metadata(std::size_t at, std::size_t end) const {
  while (at + 2 < end) {
    const bool arrow = source_.is(at + 1, "-") && source_.is(at + 2, ">");
    if (!arrow && !source_.is(at + 1, ".")) return false;
    at += arrow ? 3 : 2;
    if (at < end && is_one_of(kMetadata, source_.tokens[at].text)) return true;
  }
  return false;
}

unsigned DeviceValues::word_flags(std::size_t at, TokenRange range) const {
  if (source_.is_member(at)) return 0;
  unsigned flags = source_.language == Language::Python ? module_flags(at) : 0;
  flags |= flags_of(at);
  const bool metadata = ends_in_metadata(at, range.end);
  const bool length = at >= 2 && source_.is(at - 1, "(") && source_.is(at - 2, "len");
  if (metadata || length) return (flags & kSized) != 0 ? kRead : 0;
  return flags;
}

// Returns whether `int(…)` at `at` reads a scalar: likely for `int(x.max())`, where x is not known to be on the host.
DeviceValues::ScalarRead DeviceValues::scalar_read(std::size_t at) const {
  const std::string_view text = source_.tokens[at].text;
  if (source_.language != Language::Python || (text != "int" && text != "float" && text != "bool"))
    return ScalarRead::None;
  if (!source_.is(at + 1, "(") || (imports_.libraries & (kCupy | kTorch | kJax | kCudf)) == 0) return ScalarRead::None;
  const std::size_t close = source_.tokens[at + 1].close;
  if (close == kNoToken || close > at + 64) return ScalarRead::None;
  bool reduces = false;
  unsigned flags = 0;
  for (std::size_t i = at + 2; i < close; ++i) {
    if (!source_.is_word(i)) continue;
    flags |= word_flags(i, {at + 2, close});
    reduces =
        reduces || (is_one_of(kReductions, source_.tokens[i].text) && source_.is_member(i) && source_.is(i + 1, "("));
  }
  if ((flags & kDevice) != 0) return ScalarRead::Known;
  return reduces && (flags & kHost) == 0 ? ScalarRead::Likely : ScalarRead::None;
}

unsigned DeviceValues::expression_flags(TokenRange range) const {
  unsigned flags = 0;
  bool opaque = false;
  for (std::size_t i = range.first; i < range.end; ++i) {
    if (!source_.is_word(i)) continue;
    if (is_read(i) || scalar_read(i) != ScalarRead::None) return kRead;
    const unsigned found = word_flags(i, range);
    const bool called =
        source_.is(i + 1, "(") && !source_.is_member(i) && !is_one_of(kTransparent, source_.tokens[i].text);
    opaque = opaque || (called && found == 0);
    flags |= found;
  }
  // The result of an unknown function is unknown.
  return opaque ? 0 : flags;
}

void DeviceValues::add_target(std::size_t at, unsigned flags) {
  // A bound on the names keeps hostile sources small.
  if (flags == 0 || !source_.is_word(at) || source_.is_member(at) || names_.size() > 100'000) return;
  names_[{source_.places[at].function, source_.tokens[at].text}] |= flags;
}

// Adds the destination of a copy to the host: `&count` in cudaMemcpy(&count, …), `h` in cudaMemcpy(h.data(), …).
void DeviceValues::add_destination(std::size_t call) {
  const std::size_t open = source_.call_of(call);
  if (open == kNoToken) return;
  const auto arguments = source_.arguments_of(open);
  const std::size_t which = source_.is(call, "clEnqueueReadBuffer") ? 5 : 0;
  if (which >= arguments.size()) return;
  for (std::size_t i = arguments[which].end; i > arguments[which].first; --i) {
    if (source_.is_word(i - 1) && !source_.is_member(i - 1)) return add_target(i - 1, kRead);
  }
}

void DeviceValues::add_statement(TokenRange statement) {
  std::size_t assignment = kNoToken;
  for (std::size_t i = statement.first; i < statement.end; ++i) {
    if (assignment == kNoToken && source_.is_assignment(i)) assignment = i;
    if (source_.language == Language::Cuda && is_read(i)) add_destination(i);
    if (source_.language == Language::Cuda && source_.is(i, "host_vector") && source_.is(i + 1, "<")) {
      const std::size_t angle = source_.close_of_angle(i + 1);
      if (angle != kNoToken) add_target(angle + 1, kHost | (is_thrust_read(i) ? kRead : 0));
    }
    // Code in brackets has no assignment, only keyword arguments.
    const std::size_t close = source_.tokens[i].close;
    if (source_.language == Language::Python && close != kNoToken && close > i && close < statement.end) i = close;
  }
  if (assignment == kNoToken) return;
  const unsigned flags = value_flags({assignment + 1, statement.end});
  if (flags == 0) return;
  if (source_.language == Language::Cuda) return add_target(assignment - 1, flags);
  for (std::size_t i = statement.first; i < assignment; ++i) {
    if (!source_.is(i + 1, ".") && !source_.is(i + 1, "[")) add_target(i, flags);
  }
}

// Returns the flags of a value. A list or tuple of arrays is on the host.
unsigned DeviceValues::value_flags(TokenRange range) const {
  const unsigned flags = expression_flags(range);
  const bool brackets = source_.is(range.first, "(") || source_.is(range.first, "[") || source_.is(range.first, "{");
  const bool list = brackets && source_.tokens[range.first].close == range.end - 1;
  return source_.language == Language::Python && list ? flags & kRead : flags;
}

bool DeviceValues::drive(const Loop& loop) const {
  const unsigned flags = value_flags({loop.range.first, std::min(loop.range.end, loop.range.first + kMaxExpression)});
  if (source_.language == Language::Cuda) return (flags & kRead) != 0;
  return (flags & (kRead | kDevice)) != 0;
}

}  // namespace kiln::source
