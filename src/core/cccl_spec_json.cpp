// SPDX-License-Identifier: Apache-2.0
// The JSON form of specs (docs/reference/cccl.md).
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "core/cccl_spec.hpp"

namespace kiln::cccl {

namespace {

constexpr int kVersion = 1;
constexpr std::size_t kMaxDepth = 16;  // a spec uses five levels
constexpr std::size_t kMaxValues = 100'000;
constexpr const char* kWhole = "document";
constexpr std::string_view kInits[] = {"value", "future", "none"};
constexpr std::string_view kOrders[] = {"ascending", "descending"};
constexpr std::string_view kDeterminisms[] = {"not_guaranteed", "run_to_run", "gpu_to_gpu"};
constexpr std::string_view kBounds[] = {"lower", "upper"};

template <class Enum>
std::string word(std::span<const std::string_view> words, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < words.size() ? std::string(words[index]) : "?";
}

SortedJson write(const Type& type) {
  if (type.scalar == Scalar::Storage) return {{"storage", type.size}, {"alignment", type.alignment}};
  return word(scalar_names(), type.scalar);
}

SortedJson write(const Operator& op) {
  if (!has_code(op)) return word(operator_names(), op.kind);
  SortedJson out = {{"name", op.name}, {"source", op.source}, {"shared", op.shared}};
  if (op.kind == OperatorKind::Stateful) {
    out["state_size"] = op.state_size;
    out["state_alignment"] = op.state_alignment;
  }
  return out;
}

SortedJson write(const Iterator& it) {
  if (!it.custom) return write(it.value);
  return {{"value", write(it.value)},
          {"state_size", it.state_size},
          {"state_alignment", it.state_alignment},
          {"advance", write(it.advance)},
          {"dereference", write(it.dereference)}};
}

/// A reader of a spec's JSON. It continues after the first error and reports that one. Not thread-safe.
class SpecReader {
 public:
  Result<Spec> read(const SortedJson& value);

 private:
  void fail(const std::string& where, const std::string& what) {
    if (!error_) error_ = spec_error(where, what);
  }
  bool fields(const SortedJson& value, const std::string& where, std::initializer_list<std::string_view> known);
  std::string text(const SortedJson& value, const std::string& where);
  bool flag(const SortedJson& value, const std::string& where);
  int number(const SortedJson& value, const std::string& where, int maximum);
  std::size_t choice(const SortedJson& value, const std::string& where, std::span<const std::string_view> words);

  Type type(const SortedJson& value, const std::string& where);
  Operator op(const SortedJson& value, const std::string& where);
  Iterator iterator(const SortedJson& value, const std::string& where);
  void parts(const SortedJson& value, Spec& spec);
  void options(const SortedJson& value, Spec& spec);
  void histogram(const SortedJson& value, Spec& spec);
  void unused(const SortedJson& value, const AlgorithmTraits& shape);

  std::optional<Error> error_;
};

bool SpecReader::fields(const SortedJson& value, const std::string& where,
                        std::initializer_list<std::string_view> known) {
  if (!value.is_object()) {
    fail(where, "must be an object, not " + std::string(value.type_name()));
    return false;
  }
  for (const auto& [key, ignored] : value.items()) {
    bool found = false;
    for (const std::string_view name : known) found = found || key == name;
    const std::string name = key.substr(0, kMaxNameLength);
    if (!found) fail(where == kWhole ? name : where + "." + name, "unknown field");
  }
  return true;
}

std::string SpecReader::text(const SortedJson& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  fail(where, "must be a string, not " + std::string(value.type_name()));
  return {};
}

bool SpecReader::flag(const SortedJson& value, const std::string& where) {
  if (value.is_boolean()) return value.get<bool>();
  fail(where, "must be true or false, not " + std::string(value.type_name()));
  return false;
}

int SpecReader::number(const SortedJson& value, const std::string& where, int maximum) {
  const auto reject = [&] {
    fail(where, "must be a whole number from 0 to " + std::to_string(maximum));
    return 0;
  };
  if (!value.is_number_unsigned()) return reject();
  const auto read = value.get<std::uint64_t>();
  return read <= static_cast<std::uint64_t>(maximum) ? static_cast<int>(read) : reject();
}

std::size_t SpecReader::choice(const SortedJson& value, const std::string& where,
                               std::span<const std::string_view> words) {
  const std::string given = text(value, where);
  std::string all;
  for (std::size_t i = 0; i != words.size(); ++i) {
    if (given == words[i]) return i;
    all += (all.empty() ? "" : ", ") + std::string(words[i]);
  }
  fail(where, "'" + given.substr(0, kMaxNameLength) + "' is not one of " + all);
  return 0;
}

Type SpecReader::type(const SortedJson& value, const std::string& where) {
  if (value.is_object()) {
    fields(value, where, {"storage", "alignment"});
    if (!value.contains("storage") || !value.contains("alignment")) {
      fail(where, "a byte type needs 'storage' (its size) and 'alignment'");
      return {};
    }
    return Type::storage(static_cast<std::size_t>(number(value["storage"], where + ".storage", kMaxState)),
                         static_cast<std::size_t>(number(value["alignment"], where + ".alignment", kMaxState)));
  }
  const auto scalar = static_cast<Scalar>(choice(value, where, scalar_names()));
  if (scalar == Scalar::Storage) fail(where, "a byte type is written {\"storage\": size, \"alignment\": alignment}");
  return Type::of(scalar);
}

Operator SpecReader::op(const SortedJson& value, const std::string& where) {
  if (!value.is_object()) {
    const auto kind = static_cast<OperatorKind>(choice(value, where, operator_names()));
    if (has_code(Operator::of(kind))) fail(where, "an operator with code must be an object with 'name' and 'source'");
    return Operator::of(kind);
  }
  fields(value, where, {"name", "source", "shared", "state_size", "state_alignment"});
  Operator read = Operator::from_source({}, {});
  if (value.contains("name")) read.name = text(value["name"], where + ".name");
  if (value.contains("source")) read.source = text(value["source"], where + ".source");
  if (value.contains("shared")) read.shared = flag(value["shared"], where + ".shared");
  if (value.contains("state_size"))
    read.state_size = static_cast<std::size_t>(number(value["state_size"], where + ".state_size", kMaxState));
  if (read.state_size != 0)
    read.kind = OperatorKind::Stateful;
  else if (value.contains("state_alignment"))
    fail(where + ".state_alignment", "needs a 'state_size'");
  if (value.contains("state_alignment"))
    read.state_alignment =
        static_cast<std::size_t>(number(value["state_alignment"], where + ".state_alignment", kMaxState));
  return read;
}

Iterator SpecReader::iterator(const SortedJson& value, const std::string& where) {
  if (!value.is_object() || value.contains("storage")) return Iterator::pointer(type(value, where));
  fields(value, where, {"value", "state_size", "state_alignment", "advance", "dereference"});
  for (const char* needed : {"value", "advance", "dereference"}) {
    if (value.contains(needed)) continue;
    fail(where, "missing field '" + std::string(needed) + "'");
    return {};
  }
  Iterator read = Iterator::pointer(type(value["value"], where + ".value"));
  read.custom = true;
  if (value.contains("state_size"))
    read.state_size = static_cast<std::size_t>(number(value["state_size"], where + ".state_size", kMaxState));
  if (value.contains("state_alignment"))
    read.state_alignment =
        static_cast<std::size_t>(number(value["state_alignment"], where + ".state_alignment", kMaxState));
  read.advance = op(value["advance"], where + ".advance");
  read.dereference = op(value["dereference"], where + ".dereference");
  return read;
}

void SpecReader::parts(const SortedJson& value, Spec& spec) {
  for (const char* what : {"iterators", "operators"}) {
    if (!value.contains(what)) continue;
    const SortedJson& list = value[what];
    if (!list.is_array() || list.size() > kMaxParts) {
      fail(what, "must be a list of at most " + std::to_string(kMaxParts));
      continue;
    }
    for (std::size_t i = 0; i != list.size(); ++i) {
      const std::string where = what + ("[" + std::to_string(i)) + "]";
      if (*what == 'i')
        spec.iterators.push_back(iterator(list[i], where));
      else
        spec.operators.push_back(op(list[i], where));
    }
  }
}

void SpecReader::histogram(const SortedJson& value, Spec& spec) {
  if (value.contains("channels")) spec.channels = number(value["channels"], "channels", kMaxChannels);
  if (value.contains("active_channels"))
    spec.active_channels = number(value["active_channels"], "active_channels", kMaxChannels);
  if (value.contains("levels")) spec.levels = number(value["levels"], "levels", kMaxLevels);
  if (value.contains("even")) spec.even = flag(value["even"], "even");
}

void SpecReader::options(const SortedJson& value, Spec& spec) {
  const AlgorithmTraits& shape = traits_of(spec.algorithm);
  if (value.contains("type"))
    spec.type = type(value["type"], "type");
  else if (shape.histogram)
    fail("type", "a histogram needs the type of its levels");
  else if (!spec.iterators.empty())
    spec.type = spec.iterators.front().value;  // the default accumulator type
  if (value.contains("init")) spec.init = static_cast<Init>(choice(value["init"], "init", kInits));
  if (value.contains("order")) spec.order = static_cast<SortOrder>(choice(value["order"], "order", kOrders));
  if (value.contains("determinism"))
    spec.determinism = static_cast<Determinism>(choice(value["determinism"], "determinism", kDeterminisms));
  if (value.contains("bound")) spec.bound = static_cast<Bound>(choice(value["bound"], "bound", kBounds));
  if (value.contains("inclusive")) spec.inclusive = flag(value["inclusive"], "inclusive");
  if (value.contains("shared_for")) spec.shared_capability = number(value["shared_for"], "shared_for", kMaxCapability);
  histogram(value, spec);
}

/// Reports fields that the algorithm does not use; they are mistakes of the author.
void SpecReader::unused(const SortedJson& value, const AlgorithmTraits& shape) {
  const std::pair<const char*, bool> used[] = {
      {"type", shape.type},          {"init", shape.init},
      {"order", shape.order},        {"determinism", shape.determinism},
      {"bound", shape.bound},        {"inclusive", shape.inclusive},
      {"channels", shape.histogram}, {"active_channels", shape.histogram},
      {"levels", shape.histogram},   {"even", shape.histogram},
  };
  for (const auto& [name, is_used] : used) {
    if (!is_used && value.contains(name)) fail(name, std::string(shape.name) + " does not use this field");
  }
}

Result<Spec> SpecReader::read(const SortedJson& value) {
  Spec spec;
  if (fields(value, kWhole,
             {"version", "name", "algorithm", "iterators", "operators", "type", "init", "order", "determinism", "bound",
              "inclusive", "channels", "active_channels", "levels", "even", "shared_for"})) {
    if (value.contains("version") && value["version"] != kVersion)
      fail("version", "this version of kiln reads version 1");
    if (value.contains("name")) spec.name = text(value["name"], "name");
    std::string_view names[16];
    std::size_t count = 0;
    for (const AlgorithmTraits& shape : all_traits()) names[count++] = shape.name;
    if (value.contains("algorithm"))
      spec.algorithm = static_cast<Algorithm>(choice(value["algorithm"], "algorithm", {names, count}));
    else
      fail("algorithm", "is missing");
    parts(value, spec);
    options(value, spec);
    unused(value, traits_of(spec.algorithm));
  }
  if (error_) return std::move(*error_);
  if (Status status = spec.validate(); !status) return status.error();
  return spec;
}

SortedJson write(const Spec& spec) {
  const AlgorithmTraits& shape = traits_of(spec.algorithm);
  SortedJson out = {{"version", kVersion}, {"algorithm", shape.name}};
  out["iterators"] = SortedJson::array();
  for (const Iterator& it : spec.iterators) out["iterators"].push_back(write(it));
  out["operators"] = SortedJson::array();
  for (const Operator& op : spec.operators) out["operators"].push_back(write(op));
  if (shape.type) out["type"] = write(spec.type);
  if (shape.init) out["init"] = word(kInits, spec.init);
  if (shape.order) out["order"] = word(kOrders, spec.order);
  if (shape.determinism) out["determinism"] = word(kDeterminisms, spec.determinism);
  if (shape.bound) out["bound"] = word(kBounds, spec.bound);
  if (shape.inclusive) out["inclusive"] = spec.inclusive;
  if (shape.histogram) {
    out["channels"] = spec.channels;
    out["active_channels"] = spec.active_channels;
    out["levels"] = spec.levels;
    out["even"] = spec.even;
  }
  if (shares_code(spec)) out["shared_for"] = spec.shared_capability;
  return out;
}

}  // namespace

bool is_utf8(const Spec& spec) {
  SortedJson all = write(spec);
  all["name"] = spec.name;
  // The only check that throws no exception: `ignore` drops invalid UTF-8, `json_text` replaces it.
  return all.dump(-1, ' ', false, SortedJson::error_handler_t::ignore) == json_text(all);
}

std::string Spec::text() const {
  // Invalid UTF-8 cannot be JSON. Its replacement is also what is compiled, so equal texts still compile to equal code.
  return json_text(write(*this));
}

Result<Spec> Spec::parse(std::string_view text) {
  if (text.size() > kMaxTextLength) return make_error(Code::InvalidArgument, "CCCL spec: must be at most one megabyte");
  const Result<SortedJson> value = parse_json(text, {kMaxDepth, kMaxValues});
  if (!value) return make_error(Code::InvalidArgument, "CCCL spec: " + value.error().message);
  return SpecReader().read(*value);
}

}  // namespace kiln::cccl
