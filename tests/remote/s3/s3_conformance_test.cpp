// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "conformance/object_store_conformance.hpp"
#include "swift_fixture.hpp"

namespace kiln::test {
namespace {

class SwiftObjectStoreSetup final : public ObjectStoreSetup {
 public:
  explicit SwiftObjectStoreSetup(bool path_style) : path_style_(path_style) {
    static std::atomic<int> count = 0;
    prefix_ = "conformance/" + std::to_string(++count);
    // Names below localhost are those of the loopback.
    environment_.set("AWS_ENDPOINT_URL_S3", shared_swift().url("localhost").c_str());
    environment_.set_keys(Swift::kOwner, Swift::kOwnerKey);
  }
  std::unique_ptr<ObjectStore> open() override {
    S3Options options;
    options.url = "s3://kiln-test/" + prefix_;
    options.path_style = path_style_;
    return open_s3_object_store(options).value();
  }

 private:
  AwsEnvironment environment_;
  const bool path_style_;
  std::string prefix_;
};

ObjectStoreHarness on_swift(const std::string& name, bool path_style) {
  return {name, [path_style] { return std::make_unique<SwiftObjectStoreSetup>(path_style); }};
}

// Empty if Swift cannot run here; the tests of s3_swift_test.cpp print the reason.
std::vector<ObjectStoreHarness> harnesses() {
  if (!Swift::unavailable().empty()) return {};
  return {on_swift("path_style", true), on_swift("virtual_host_style", false)};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ObjectStoreConformance);
INSTANTIATE_TEST_SUITE_P(S3, ObjectStoreConformance, testing::ValuesIn(harnesses()),
                         [](const testing::TestParamInfo<ObjectStoreHarness>& tested) { return tested.param.name; });

}  // namespace
}  // namespace kiln::test
