// SPDX-License-Identifier: Apache-2.0
// PoCL's device is a CPU: it is used only with permission, and reports name it.
#include <gtest/gtest.h>

#include "support/fixtures/doubling_operation.hpp"

namespace kiln::test {
namespace {

using runtime::Backend;
using runtime::Decision;
using runtime::DispatchRequest;
using runtime::Mode;
using runtime::Reason;
using runtime::Runtime;
using runtime::RuntimeOptions;
using runtime::SettingSource;

constexpr DispatchRequest kMany{1000, Residency::Host, Backend::Cpu};
constexpr DispatchRequest kResident{5, Residency::Device, Backend::OpenCl};
constexpr const char* kNextStep = "is a CPU; set KILN_ALLOW_CPU_DEVICE=1 to use it";

constexpr auto kAlone = runtime::operation<Failing>(
    "alone", runtime::PrecisionClass::Metric, runtime::Implementation<Failing>{exact_variant(Backend::OpenCl), &fail});

class CpuDeviceTest : public testing::Test {
 protected:
  CpuDeviceTest() { fixture_.allow_cpu_device.set(nullptr); }
  Runtime make(std::optional<Mode> mode = {}, std::optional<bool> allowed = {}) {
    RuntimeOptions options;
    options.mode = mode;
    options.allow_cpu_device = allowed;
    return Runtime(fixture_.session(), options);
  }

  RuntimeFixture fixture_;
};

TEST_F(CpuDeviceTest, OverridePrecedesEnvironmentPrecedesDefault) {
  EXPECT_FALSE(make().allow_cpu_device());
  EXPECT_EQ(make().allow_cpu_device_source(), SettingSource::Default);
  fixture_.allow_cpu_device.set("yes");
  EXPECT_TRUE(make().allow_cpu_device());
  EXPECT_EQ(make().allow_cpu_device_source(), SettingSource::Environment);
  Runtime runtime = make({}, false);
  EXPECT_FALSE(runtime.allow_cpu_device());
  EXPECT_EQ(runtime.allow_cpu_device_source(), SettingSource::Override);
  runtime.set_allow_cpu_device({});
  EXPECT_TRUE(runtime.allow_cpu_device());
  fixture_.allow_cpu_device.set("perhaps");
  runtime.set_allow_cpu_device({});
  EXPECT_FALSE(runtime.allow_cpu_device());
  EXPECT_TRUE(has(fixture_.only(Event::Kind::ConfigWarning).message, "KILN_ALLOW_CPU_DEVICE is ignored"));
}

TEST_F(CpuDeviceTest, IsListedAsCpu) {
  Session session = fixture_.session();
  EXPECT_TRUE(session.has_only_cpu_devices(kiln::Backend::OpenCl)) << "by the installed drivers";
  EXPECT_FALSE(session.has_only_cpu_devices(kiln::Backend::Cuda));
  const auto devices = session.devices(kiln::Backend::OpenCl);
  ASSERT_TRUE(devices.has_value()) << devices.error().message;
  EXPECT_TRUE(devices->front().is_cpu);
  EXPECT_TRUE(session.has_only_cpu_devices(kiln::Backend::OpenCl)) << "by the open driver";
}

TEST_F(CpuDeviceTest, GpuModeRejectsItWithoutPermission) {
  Runtime runtime = make(Mode::Gpu);
  const auto refused = runtime.decide(kDoubling, kMany);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::Unavailable);
  EXPECT_TRUE(has(refused.error().message, "opencl: the OpenCL device \""));
  EXPECT_TRUE(has(refused.error().message, kNextStep));
  runtime.set_allow_cpu_device(true);
  const auto accepted = runtime.decide(kDoubling, kMany);
  ASSERT_TRUE(accepted.has_value()) << accepted.error().message;
  EXPECT_EQ(accepted->selected, Backend::OpenCl);
  EXPECT_TRUE(accepted->cpu_device);
  runtime.set_allow_cpu_device(false);
  EXPECT_FALSE(runtime.decide(kDoubling, kMany).has_value());
}

TEST_F(CpuDeviceTest, AutoRunsOnTheCpuWithoutPermission) {
  Runtime runtime = make();
  const Decision decision = runtime.decide(kDoubling, kMany).value();
  EXPECT_EQ(decision.selected, Backend::Cpu);
  EXPECT_EQ(decision.reason, Reason::NoDevice);
  EXPECT_TRUE(has(decision.explanation, "CPU")) << decision.explanation;
  EXPECT_TRUE(has(decision.explanation, "set KILN_ALLOW_CPU_DEVICE=1 to use it"));
  EXPECT_FALSE(fixture_.only(runtime::events::kDecided).cpu_device) << "the CPU variant has no device";
  EXPECT_TRUE(fixture_.only(runtime::events::kFellBack).cpu_device) << "the device that was not used is a CPU";
  EXPECT_EQ(make({}, true).decide(kDoubling, kMany).value().selected, Backend::OpenCl);
}

TEST_F(CpuDeviceTest, OperationWithDeviceVariantAloneFailsWithoutPermission) {
  const auto refused = make().decide(kAlone, kMany);
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(has(refused.error().message, "KILN_ALLOW_CPU_DEVICE=1"));
}

TEST_F(CpuDeviceTest, AutoKeepsRowsThatTheProgramBroughtThere) {
  const Decision decision = make().decide(kDoubling, kResident).value();
  EXPECT_EQ(decision.selected, Backend::OpenCl);
  EXPECT_TRUE(has(decision.explanation, "the rows are on opencl, a CPU device, and stay there"));
  EXPECT_TRUE(fixture_.only(runtime::events::kDecided).cpu_device);
  const auto refused = make(Mode::Gpu).decide(kDoubling, kResident);
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(has(refused.error().message, "gpu was requested by the program, but the rows of doubling are on opencl"));
  EXPECT_TRUE(has(refused.error().message, kNextStep));
}

TEST_F(CpuDeviceTest, RunsAndLaunchesAreMarkedAndNotCountedAsGpu) {
  Runtime runtime = make({}, true);
  ASSERT_TRUE(doubled(runtime, 1000).has_value());
  EXPECT_TRUE(fixture_.only(runtime::events::kDecided).cpu_device);
  EXPECT_TRUE(fixture_.only(runtime::events::kDispatched).cpu_device);
  EXPECT_TRUE(fixture_.only(Event::Kind::Launched).cpu_device);
  EXPECT_EQ(runtime.counts().on_device, 1U);
  EXPECT_EQ(runtime.counts().on_gpu, 0U);
}

TEST_F(CpuDeviceTest, RequestCompilesNothingWithoutPermission) {
  Runtime runtime = make();
  runtime.request(Backend::OpenCl, kDoublingNeeds);
  EXPECT_EQ(runtime.session().status().submitted, 0U);
  runtime.set_allow_cpu_device(true);
  runtime.request(Backend::OpenCl, kDoublingNeeds);
  EXPECT_EQ(runtime.session().status().submitted, 1U);
}

}  // namespace
}  // namespace kiln::test
