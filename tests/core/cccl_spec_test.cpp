// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <kiln/cccl.hpp>

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using cccl::Algorithm;
using cccl::Iterator;
using cccl::Operator;
using cccl::OperatorKind;
using cccl::Scalar;
using cccl::Spec;
using cccl::Type;

Spec stateful_transform() {
  Spec spec;
  spec.algorithm = Algorithm::UnaryTransform;
  Operator op = Operator::from_source("scale", "extern \"C\" __device__ void scale(void*, void*, void*) {}");
  op.kind = OperatorKind::Stateful;
  op.state_size = 8;
  op.state_alignment = 8;
  op.shared = true;
  Iterator counting = Iterator::pointer(Type::of(Scalar::I64));
  counting.custom = true;
  counting.advance = Operator::from_source("step", "step's source");
  counting.dereference = Operator::from_source("look", "look's source");
  spec.iterators = {counting, Iterator::pointer(Type::storage(24, 8))};
  spec.operators = {op};
  spec.shared_capability = 80;
  return spec;
}

Spec histogram() {
  Spec spec;
  spec.algorithm = Algorithm::Histogram;
  spec.iterators = {Iterator::pointer(Type::of(Scalar::U8)), Iterator::pointer(Type::of(Scalar::I32))};
  spec.levels = 257;
  return spec;
}

struct Change {
  const char* field;
  Spec base;
  std::function<void(Spec&)> make;
};

std::vector<Change> changes_that_matter() {
  const Spec transform = stateful_transform();
  const Spec reduce = cccl::reduce<double>();
  const Spec scan = cccl::exclusive_scan<std::int32_t>();
  return {
      {"algorithm", scan, [](Spec& s) { s.algorithm = Algorithm::Reduce; }},
      {"operator kind", reduce, [](Spec& s) { s.operators[0] = Operator::of(OperatorKind::Maximum); }},
      {"operator name", transform, [](Spec& s) { s.operators[0].name = "other"; }},
      {"operator source", transform, [](Spec& s) { s.operators[0].source += " "; }},
      {"operator state size", transform, [](Spec& s) { s.operators[0].state_size = 16; }},
      {"operator state alignment", transform, [](Spec& s) { s.operators[0].state_alignment = 16; }},
      {"operator shared", transform, [](Spec& s) { s.operators[0].shared = false; }},
      {"shared_for", transform, [](Spec& s) { s.shared_capability = 90; }},
      {"iterator type", reduce, [](Spec& s) { s.iterators[0].value = Type::of(Scalar::F32); }},
      {"storage size", transform, [](Spec& s) { s.iterators[1].value.size = 32; }},
      {"storage alignment", transform, [](Spec& s) { s.iterators[1].value.alignment = 4; }},
      {"iterator custom", transform, [](Spec& s) { s.iterators[0].custom = false; }},
      {"iterator state size", transform, [](Spec& s) { s.iterators[0].state_size = 16; }},
      {"iterator state alignment", transform, [](Spec& s) { s.iterators[0].state_alignment = 16; }},
      {"advance name", transform, [](Spec& s) { s.iterators[0].advance.name = "other"; }},
      {"advance source", transform, [](Spec& s) { s.iterators[0].advance.source = "other"; }},
      {"dereference name", transform, [](Spec& s) { s.iterators[0].dereference.name = "other"; }},
      {"dereference source", transform, [](Spec& s) { s.iterators[0].dereference.source = "other"; }},
      {"dereference shared", transform, [](Spec& s) { s.iterators[0].dereference.shared = true; }},
      {"type", reduce, [](Spec& s) { s.type = Type::of(Scalar::F32); }},
      {"init", reduce, [](Spec& s) { s.init = cccl::Init::None; }},
      {"determinism", reduce, [](Spec& s) { s.determinism = cccl::Determinism::GpuToGpu; }},
      {"order", cccl::find_predefined("radix_sort_i32_i32").value(),
       [](Spec& s) { s.order = cccl::SortOrder::Descending; }},
      {"bound", cccl::lower_bound<std::int32_t>(), [](Spec& s) { s.bound = cccl::Bound::Upper; }},
      {"inclusive", scan, [](Spec& s) { s.inclusive = true; }},
      {"channels", histogram(), [](Spec& s) { s.channels = 4; }},
      {"active channels", histogram(), [](Spec& s) { s.channels = 4, s.active_channels = 3; }},
      {"levels", histogram(), [](Spec& s) { s.levels = 17; }},
      {"even", histogram(), [](Spec& s) { s.even = false; }},
      {"level type", histogram(), [](Spec& s) { s.type = Type::of(Scalar::F32); }},
  };
}

TEST(CcclSpec, TextAndKeyCoverFieldsThatAffectCode) {
  for (const Change& change : changes_that_matter()) {
    Spec changed = change.base;
    change.make(changed);
    const Status status = changed.validate();
    ASSERT_TRUE(status.has_value()) << change.field << ": " << status.error().message;
    EXPECT_NE(changed.text(), change.base.text()) << change.field;
    EXPECT_FALSE(changed.unit().key() == change.base.unit().key()) << change.field;
    const Result<Spec> back = Spec::parse(changed.text());
    ASSERT_TRUE(back.has_value()) << change.field << ": " << back.error().message;
    EXPECT_EQ(back->text(), changed.text()) << change.field;
  }
}

TEST(CcclSpec, TextIgnoresFieldsThatDoNotAffectCode) {
  const Spec base = cccl::find_predefined("radix_sort_i32_i32").value();
  const std::pair<const char*, std::function<void(Spec&)>> changes[] = {
      {"name", [](Spec& s) { s.name = "my name"; }},
      {"type", [](Spec& s) { s.type = Type::of(Scalar::F64); }},
      {"init", [](Spec& s) { s.init = cccl::Init::None; }},
      {"determinism", [](Spec& s) { s.determinism = cccl::Determinism::GpuToGpu; }},
      {"bound", [](Spec& s) { s.bound = cccl::Bound::Upper; }},
      {"inclusive", [](Spec& s) { s.inclusive = true; }},
      {"levels", [](Spec& s) { s.levels = 9; }},
      {"shared_for without shared code", [](Spec& s) { s.shared_capability = 90; }},
      {"state of a pointer", [](Spec& s) { s.iterators[0].state_size = 16; }},
  };
  for (const auto& [field, make] : changes) {
    Spec changed = base;
    make(changed);
    EXPECT_EQ(changed.text(), base.text()) << field;
    EXPECT_EQ(changed.unit().key(), base.unit().key()) << field;
  }
}

TEST(CcclSpec, TextIsStable) {
  EXPECT_EQ(cccl::reduce<double>().text(),
            R"({"algorithm":"reduce","determinism":"run_to_run","init":"value","iterators":["f64","f64"],)"
            R"("operators":["plus"],"type":"f64","version":1})");
}

TEST(CcclSpec, ParsesShortForms) {
  const Result<Spec> scan =
      Spec::parse(R"({ "iterators": ["i32", "i32"], "algorithm": "scan", "operators": ["plus"], "name": "mine" })");
  ASSERT_TRUE(scan.has_value()) << scan.error().message;
  EXPECT_EQ(scan->text(), cccl::exclusive_scan<std::int32_t>().text());
  EXPECT_EQ(scan->name, "mine");

  const Result<Spec> wide =
      Spec::parse(R"({"algorithm": "reduce", "iterators": ["f64", "f64"], "operators": ["plus"]})");
  ASSERT_TRUE(wide.has_value()) << wide.error().message;
  EXPECT_EQ(wide->text(), cccl::reduce<double>().text()) << "the accumulator has the type of the input";

  const Result<Spec> bytes = Spec::parse(
      R"({"algorithm": "radix_sort", "iterators": ["bf16", {"storage": 12, "alignment": 4}], "order": "descending"})");
  ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
  EXPECT_TRUE(bytes->iterators[1].value == Type::storage(12, 4));
  EXPECT_EQ(bytes->order, cccl::SortOrder::Descending);
  EXPECT_EQ(bytes->unit().name(), "radix_sort_bf16_storage12");
}

TEST(CcclSpec, UnitNameIsDerivedIfSpecHasNone) {
  Spec scan = cccl::exclusive_scan<std::int32_t>();
  EXPECT_EQ(scan.unit().name(), "exclusive_scan_i32");
  EXPECT_EQ(scan.unit().kind(), "cccl");
  EXPECT_EQ(scan.unit().source(), scan.text());
  scan.name.clear();
  EXPECT_EQ(scan.unit().name(), "scan_i32");
  Spec sort = cccl::find_predefined("radix_sort_u64_i32").value();
  sort.name.clear();
  EXPECT_EQ(sort.unit().name(), "radix_sort_u64_i32");
}

TEST(CcclSpec, SharedCodeUsesLowestTarget) {
  const Spec spec = stateful_transform();
  EXPECT_EQ(spec.for_targets({Target::sm(120), Target{"sm_90a", Form::Cccl}, Target::sm(100)}).shared_capability, 90);
  EXPECT_EQ(spec.for_targets({}).shared_capability, 0);
  EXPECT_EQ(spec.for_targets({Target::opencl("pocl")}).shared_capability, 0);
}

TEST(CcclSpec, RejectsInvalidTextAndNamesField) {
  const std::pair<const char*, const char*> rejected[] = {
      {"", "JSON"},
      {"[", "JSON at byte"},
      {"[]", "must be an object"},
      {R"({"algorithm": "scan", "levels": 1e999})", "number that is out of range"},
      {R"({"iterators": []})", "algorithm"},
      {R"({"algorithm": "sort"})", "algorithm"},
      {R"({"algorithm": 3})", "algorithm"},
      {R"({"algorithm": "scan", "version": 2})", "version"},
      {R"({"algorithm": "scan", "color": 1})", "color"},
      {R"({"algorithm": "scan"})", "iterators"},
      {R"({"algorithm": "scan", "iterators": "i32"})", "iterators"},
      {R"({"algorithm": "scan", "iterators": ["i32"], "operators": ["plus"]})", "scan takes 2 (in, out), not 1"},
      {R"({"algorithm": "scan", "iterators": ["i32", "i32"]})", "operators"},
      {R"({"algorithm": "scan", "iterators": ["i32", "i33"], "operators": ["plus"]})", "iterators[1]"},
      {R"({"algorithm": "scan", "iterators": ["i32", "storage"], "operators": ["plus"]})", "iterators[1]"},
      {R"({"algorithm": "scan", "iterators": ["i32", "i32"], "operators": ["sum"]})", "operators[0]"},
      {R"({"algorithm": "scan", "iterators": ["i32", "i32"], "operators": ["stateless"]})", "operators[0]"},
      {R"({"algorithm": "scan", "iterators": ["i32", "i32"], "operators": ["plus"], "order": "ascending"})", "order"},
      {R"({"algorithm": "scan", "iterators": ["i32", "i32"], "operators": ["plus"], "inclusive": 1})", "inclusive"},
      {R"({"algorithm": "scan", "iterators": ["i32", "i32"], "operators": ["plus"], "init": "zero"})", "init"},
      {R"({"algorithm": "for", "iterators": ["i32"], "operators": [{"name": "f"}]})", "operators[0].source"},
      {R"({"algorithm": "for", "iterators": ["i32"], "operators": [{"source": "x"}]})", "operators[0].name"},
      {R"({"algorithm": "for", "iterators": ["i32"], "operators": [{"name": "a b", "source": "x"}]})", "[0].name"},
      {R"({"algorithm": "for", "iterators": ["i32"], "operators": [{"name": "f", "source": "x", "code": 1}]})", "code"},
      {R"({"algorithm": "for", "iterators": ["i32"],
           "operators": [{"name": "f", "source": "x", "state_size": 4097}]})",
       "operators[0].state_size"},
      {R"({"algorithm": "for", "iterators": ["i32"],
           "operators": [{"name": "f", "source": "x", "state_size": -1}]})",
       "operators[0].state_size"},
      {R"({"algorithm": "for", "iterators": ["i32"],
           "operators": [{"name": "f", "source": "x", "state_size": 8, "state_alignment": 3}]})",
       "operators[0].state_alignment"},
      {R"({"algorithm": "for", "iterators": ["i32"],
           "operators": [{"name": "f", "source": "x", "state_alignment": 4}]})",
       "operators[0].state_alignment"},
      {R"({"algorithm": "for", "iterators": [{"storage": 8}], "operators": ["plus"]})", "iterators[0]"},
      {R"({"algorithm": "for", "iterators": [{"storage": 6, "alignment": 4}], "operators": ["plus"]})", "storage"},
      {R"({"algorithm": "for", "iterators": [{"storage": 8192, "alignment": 4}], "operators": ["plus"]})", "storage"},
      {R"({"algorithm": "for", "iterators": [{"value": "i32"}], "operators": ["plus"]})", "iterators[0]"},
      {R"({"algorithm": "for", "iterators": [{"value": "i32", "advance": "plus", "dereference": "plus"}],
           "operators": ["plus"]})",
       "iterators[0].advance"},
      {R"({"algorithm": "histogram", "iterators": ["u8", "i32"], "levels": 9})", "type"},
      {R"({"algorithm": "histogram", "iterators": ["u8", "i32"], "type": "i32"})", "levels"},
      {R"({"algorithm": "histogram", "iterators": ["u8", "i32"], "type": "i32", "levels": 9, "channels": 5})",
       "channels"},
      {R"({"algorithm": "histogram", "iterators": ["u8", "i32"], "type": "i32", "levels": 9, "active_channels": 2})",
       "active_channels"},
  };
  for (const auto& [text, part] : rejected) {
    const Result<Spec> spec = Spec::parse(text);
    ASSERT_FALSE(spec.has_value()) << text;
    EXPECT_EQ(spec.error().code, Code::InvalidArgument) << text;
    EXPECT_NE(spec.error().message.find(part), std::string::npos) << text << "\n" << spec.error().message;
  }
}

TEST(CcclSpec, RejectsOversizedText) {
  EXPECT_FALSE(Spec::parse(std::string((1 << 20) + 1, ' ')).has_value());
  std::string many = R"({"algorithm": "for", "operators": ["plus"], "iterators": ["i32")";
  for (int i = 0; i != 16; ++i) many += R"(, "i32")";
  EXPECT_FALSE(Spec::parse(many + "]}").has_value());
  Spec spec = stateful_transform();
  spec.operators[0].source.assign(1 << 20, 'x');
  EXPECT_FALSE(spec.validate().has_value());
  EXPECT_FALSE(Spec::parse(std::string(50'000, '[')).has_value());
}

TEST(CcclSpec, RejectsInvalidStateSize) {
  const std::vector<std::pair<std::function<void(Spec&)>, const char*>> rejected = {
      {[](Spec& s) { s.operators[0].state_alignment = 3; }, "operators[0].state_alignment"},
      {[](Spec& s) { s.operators[0].state_alignment = 8192; }, "operators[0].state_alignment"},
      {[](Spec& s) { s.operators[0].state_size = 4097; }, "operators[0].state_size"},
      {[](Spec& s) { s.iterators[0].state_size = 0; }, "iterators[0].state_size"},
      {[](Spec& s) { s.iterators[0].state_size = 4097; }, "iterators[0].state_size"},
      {[](Spec& s) { s.iterators[0].state_alignment = 12; }, "iterators[0].state_alignment"},
  };
  for (const auto& [make, part] : rejected) {
    Spec spec = stateful_transform();
    ASSERT_TRUE(spec.validate().has_value());
    make(spec);
    const Status status = spec.validate();
    ASSERT_FALSE(status.has_value()) << part;
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
  }
}

TEST(CcclSpec, AcceptsFunctionDefinedByAnotherOperator) {
  Spec spec = stateful_transform();
  spec.iterators[1] = spec.iterators[0];
  spec.iterators[1].advance.source.clear();
  spec.iterators[1].dereference.source.clear();
  const Status status = spec.validate();
  EXPECT_TRUE(status.has_value()) << status.error().message;
  spec.iterators[0].advance.name = "another";
  EXPECT_FALSE(spec.validate().has_value());
}

TEST(CcclSpec, RejectsTypeSizeMismatch) {
  Spec spec = cccl::reduce<double>();
  spec.type.size = 4;
  EXPECT_FALSE(spec.validate().has_value());
  spec = cccl::reduce<double>();
  spec.iterators[0].value.alignment = 16;
  EXPECT_FALSE(spec.validate().has_value());
}

TEST(CcclSpec, RejectsSourceThatIsNotUtf8) {
  Spec spec = stateful_transform();
  spec.operators[0].source = "\xff\xfe";
  EXPECT_FALSE(spec.validate().has_value());
  EXPECT_FALSE(spec.text().empty());
}

TEST(CcclSpec, UsesLibraryAlgorithmNames) {
  const std::pair<Algorithm, const char*> names[] = {{Algorithm::Scan, "scan"},
                                                     {Algorithm::Reduce, "reduce"},
                                                     {Algorithm::SegmentedReduce, "segmented_reduce"},
                                                     {Algorithm::ThreeWayPartition, "three_way_partition"},
                                                     {Algorithm::BinarySearch, "binary_search"},
                                                     {Algorithm::RadixSort, "radix_sort"},
                                                     {Algorithm::MergeSort, "merge_sort"},
                                                     {Algorithm::UniqueByKey, "unique_by_key"},
                                                     {Algorithm::UnaryTransform, "unary_transform"},
                                                     {Algorithm::BinaryTransform, "binary_transform"},
                                                     {Algorithm::For, "for"},
                                                     {Algorithm::Histogram, "histogram"},
                                                     {Algorithm::SegmentedSort, "segmented_sort"}};
  for (const auto& [algorithm, name] : names) EXPECT_STREQ(cccl::to_string(algorithm), name);
}

}  // namespace
}  // namespace kiln::test
