// The text form of specs, docs/cccl-spec.md.
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
constexpr std::size_t kDeepest = 16;  // a spec goes to five
constexpr const char* kWhole = "the whole";
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

/// Reads a spec's JSON. It goes on after the first thing that is wrong, which it remembers.
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
  int number(const SortedJson& value, const std::string& where, int most);
  std::size_t choice(const SortedJson& value, const std::string& where, std::span<const std::string_view> words);

  Type type(const SortedJson& value, const std::string& where);
  Operator op(const SortedJson& value, const std::string& where);
  Iterator iterator(const SortedJson& value, const std::string& where);
  void parts(const SortedJson& value, Spec& spec);
  void options(const SortedJson& value, Spec& spec);
  void histogram(const SortedJson& value, Spec& spec);
  void unused(const SortedJson& value, const Shape& shape);

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
    const std::string name = key.substr(0, kMostName);
    if (!found) fail(where == kWhole ? name : where + "." + name, "there is no such field");
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

int SpecReader::number(const SortedJson& value, const std::string& where, int most) {
  const auto refuse = [&] {
    fail(where, "must be a whole number from 0 to " + std::to_string(most));
    return 0;
  };
  if (!value.is_number_unsigned()) return refuse();
  const auto read = value.get<std::uint64_t>();
  return read <= static_cast<std::uint64_t>(most) ? static_cast<int>(read) : refuse();
}

std::size_t SpecReader::choice(const SortedJson& value, const std::string& where,
                               std::span<const std::string_view> words) {
  const std::string given = text(value, where);
  std::string all;
  for (std::size_t i = 0; i != words.size(); ++i) {
    if (given == words[i]) return i;
    all += (all.empty() ? "" : ", ") + std::string(words[i]);
  }
  fail(where, "'" + given.substr(0, kMostName) + "' is none of " + all);
  return 0;
}

Type SpecReader::type(const SortedJson& value, const std::string& where) {
  if (value.is_object()) {
    fields(value, where, {"storage", "alignment"});
    if (!value.contains("storage") || !value.contains("alignment")) {
      fail(where, "bytes need a 'storage' (their number) and an 'alignment'");
      return {};
    }
    return Type::storage(static_cast<std::size_t>(number(value["storage"], where + ".storage", kMostState)),
                         static_cast<std::size_t>(number(value["alignment"], where + ".alignment", kMostState)));
  }
  const auto scalar = static_cast<Scalar>(choice(value, where, scalar_names()));
  if (scalar == Scalar::Storage) fail(where, "bytes are written {\"storage\": size, \"alignment\": alignment}");
  return Type::of(scalar);
}

Operator SpecReader::op(const SortedJson& value, const std::string& where) {
  if (!value.is_object()) {
    const auto kind = static_cast<OperatorKind>(choice(value, where, operator_names()));
    if (has_code(Operator::of(kind))) fail(where, "an operator with code is an object with a 'name' and a 'source'");
    return Operator::of(kind);
  }
  fields(value, where, {"name", "source", "shared", "state_size", "state_alignment"});
  Operator read = Operator::from_source({}, {});
  if (value.contains("name")) read.name = text(value["name"], where + ".name");
  if (value.contains("source")) read.source = text(value["source"], where + ".source");
  if (value.contains("shared")) read.shared = flag(value["shared"], where + ".shared");
  if (value.contains("state_size"))
    read.state_size = static_cast<std::size_t>(number(value["state_size"], where + ".state_size", kMostState));
  if (read.state_size != 0)
    read.kind = OperatorKind::Stateful;
  else if (value.contains("state_alignment"))
    fail(where + ".state_alignment", "there is no state without a 'state_size'");
  if (value.contains("state_alignment"))
    read.state_alignment =
        static_cast<std::size_t>(number(value["state_alignment"], where + ".state_alignment", kMostState));
  return read;
}

Iterator SpecReader::iterator(const SortedJson& value, const std::string& where) {
  if (!value.is_object() || value.contains("storage")) return Iterator::pointer(type(value, where));
  fields(value, where, {"value", "state_size", "state_alignment", "advance", "dereference"});
  for (const char* needed : {"value", "advance", "dereference"}) {
    if (value.contains(needed)) continue;
    fail(where, "there is no '" + std::string(needed) + "'");
    return {};
  }
  Iterator read = Iterator::pointer(type(value["value"], where + ".value"));
  read.custom = true;
  if (value.contains("state_size"))
    read.state_size = static_cast<std::size_t>(number(value["state_size"], where + ".state_size", kMostState));
  if (value.contains("state_alignment"))
    read.state_alignment =
        static_cast<std::size_t>(number(value["state_alignment"], where + ".state_alignment", kMostState));
  read.advance = op(value["advance"], where + ".advance");
  read.dereference = op(value["dereference"], where + ".dereference");
  return read;
}

void SpecReader::parts(const SortedJson& value, Spec& spec) {
  for (const char* what : {"iterators", "operators"}) {
    if (!value.contains(what)) continue;
    const SortedJson& list = value[what];
    if (!list.is_array() || list.size() > kMostParts) {
      fail(what, "must be a list of at most " + std::to_string(kMostParts));
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
  if (value.contains("channels")) spec.channels = number(value["channels"], "channels", kMostChannels);
  if (value.contains("active_channels"))
    spec.active_channels = number(value["active_channels"], "active_channels", kMostChannels);
  if (value.contains("levels")) spec.levels = number(value["levels"], "levels", kMostLevels);
  if (value.contains("even")) spec.even = flag(value["even"], "even");
}

void SpecReader::options(const SortedJson& value, Spec& spec) {
  const Shape& shape = shape_of(spec.algorithm);
  if (value.contains("type"))
    spec.type = type(value["type"], "type");
  else if (shape.histogram)
    fail("type", "a histogram needs that of its levels");
  else if (!spec.iterators.empty())
    spec.type = spec.iterators.front().value;  // what people mean who do not say in which type to add
  if (value.contains("init")) spec.init = static_cast<Init>(choice(value["init"], "init", kInits));
  if (value.contains("order")) spec.order = static_cast<Order>(choice(value["order"], "order", kOrders));
  if (value.contains("determinism"))
    spec.determinism = static_cast<Determinism>(choice(value["determinism"], "determinism", kDeterminisms));
  if (value.contains("bound")) spec.bound = static_cast<Bound>(choice(value["bound"], "bound", kBounds));
  if (value.contains("inclusive")) spec.inclusive = flag(value["inclusive"], "inclusive");
  if (value.contains("shared_for")) spec.shared_for = number(value["shared_for"], "shared_for", kMostCapability);
  histogram(value, spec);
}

/// A field that says nothing to this algorithm is a mistake of whoever wrote it.
void SpecReader::unused(const SortedJson& value, const Shape& shape) {
  const std::pair<const char*, bool> used[] = {
      {"type", shape.type},          {"init", shape.init},
      {"order", shape.order},        {"determinism", shape.determinism},
      {"bound", shape.bound},        {"inclusive", shape.inclusive},
      {"channels", shape.histogram}, {"active_channels", shape.histogram},
      {"levels", shape.histogram},   {"even", shape.histogram},
  };
  for (const auto& [name, is_used] : used) {
    if (!is_used && value.contains(name)) fail(name, std::string(shape.name) + " has no such field");
  }
}

Result<Spec> SpecReader::read(const SortedJson& value) {
  Spec spec;
  if (fields(value, kWhole,
             {"version", "name", "algorithm", "iterators", "operators", "type", "init", "order", "determinism", "bound",
              "inclusive", "channels", "active_channels", "levels", "even", "shared_for"})) {
    if (value.contains("version") && value["version"] != kVersion) fail("version", "this kiln reads version 1");
    if (value.contains("name")) spec.name = text(value["name"], "name");
    std::string_view names[16];
    std::size_t count = 0;
    for (const Shape& shape : shapes()) names[count++] = shape.name;
    if (value.contains("algorithm"))
      spec.algorithm = static_cast<Algorithm>(choice(value["algorithm"], "algorithm", {names, count}));
    else
      fail("algorithm", "is missing");
    parts(value, spec);
    options(value, spec);
    unused(value, shape_of(spec.algorithm));
  }
  if (error_) return std::move(*error_);
  if (Status status = spec.check(); !status) return status.error();
  return spec;
}

SortedJson write(const Spec& spec) {
  const Shape& shape = shape_of(spec.algorithm);
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
  if (shares_code(spec)) out["shared_for"] = spec.shared_for;
  return out;
}

}  // namespace

bool is_text(const Spec& spec) {
  SortedJson all = write(spec);
  all["name"] = spec.name;
  // The one way to have it checked without an exception: what is no UTF-8 is left out, or something stands for it.
  return all.dump(-1, ' ', false, SortedJson::error_handler_t::ignore) == json_text(all);
}

std::string Spec::text() const {
  // Text that is no UTF-8 cannot be JSON. What stands for it is what is compiled, so equal texts still compile alike.
  return json_text(write(*this));
}

Result<Spec> Spec::parse(std::string_view text) {
  if (text.size() > kMostText) return failure(Code::InvalidArgument, "CCCL spec: has more than a megabyte of text");
  const Result<SortedJson> value = parse_json(text, kDeepest);
  if (!value) return failure(Code::InvalidArgument, "CCCL spec: " + value.error().message);
  return SpecReader().read(*value);
}

}  // namespace kiln::cccl
