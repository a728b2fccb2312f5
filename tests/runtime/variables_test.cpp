// SPDX-License-Identifier: Apache-2.0
// Every variable of kiln-runtime and every boolean setting of a session, with valid and invalid values. An invalid
// value is a warning that names the variable and the valid values, and the default applies. Device memory is the driver
// double's; no GPU is involved.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "runtime/memory_fixture.hpp"
#include "session/config/runtime_variables.hpp"
#include "session/config/settings.hpp"
#include "support/fixtures/runtime_fixture.hpp"

namespace kiln::test {
namespace {

using runtime::Backend;
using runtime::Determinism;
using runtime::Dispatch;
using runtime::Memory;
using runtime::MemoryOptions;
using runtime::MemoryTier;
using runtime::Mode;
using runtime::Precision;
using runtime::PrecisionPolicy;
using runtime::Robustness;
using runtime::Runtime;
using runtime::RuntimeOptions;
using runtime::SettingSource;

using Nothing = Result<int>(Dispatch&);
Result<int> nothing(Dispatch&) { return 0; }
using NothingDone = runtime::Implementation<Nothing>;

// Without a request for determinism, the first variant runs.
constexpr auto kSum = runtime::operation<Nothing>(
    "sum", runtime::PrecisionClass::Metric,
    NothingDone{{Backend::Cpu, Robustness::Exact, Precision::Fp64, Determinism::Unordered}, &nothing},
    NothingDone{{Backend::Cpu, Robustness::Exact, Precision::Fp64, Determinism::Deterministic}, &nothing});
constexpr runtime::Rewrite kRewrite{"sum of nothing", &kSum, &kSum};

/// A value of a variable, and the expected effect; no effect means that the value is invalid.
struct Try {
  std::string value;
  const char* effect = nullptr;
};

std::vector<Try> booleans(const char* if_true, const char* if_false) {
  std::vector<Try> tries;
  for (const char* value : {"1", "true", "yes", "on", "TRUE", "Yes", "oN"}) tries.push_back({value, if_true});
  for (const char* value : {"0", "false", "no", "off", "FALSE", "No", "oFF"}) tries.push_back({value, if_false});
  for (const char* value : {"2", "-1", "y", "n", "t", "perhaps", "on ", " 1", "onn", "\x1b[31m"}) {
    tries.push_back({value, nullptr});
  }
  tries.push_back({std::string(5000, '1'), nullptr});
  return tries;
}

class VariablesTest : public MemoryTest {
 protected:
  /// Sets a variable, runs `effect` and checks the effect and the warnings. Prints a row.
  void check(const char* variable, const Try& tried, const std::function<std::string()>& effect,
             const std::string& otherwise) {
    log_.clear();
    runtime_.log.clear();
    const ScopedEnv set(variable, tried.value.c_str());
    testing::internal::CaptureStderr();
    const std::string found = effect();
    const std::string printed = testing::internal::GetCapturedStderr();
    std::vector<std::string> said;
    for (const Event& event : warnings()) said.push_back(event.message);
    if (!printed.empty()) said.push_back(printed);
    const std::string what = std::string(variable) + "=" + tried.value.substr(0, 50);
    std::printf("%-26s %-16s %-15s %s\n", variable, visible_text(tried.value.substr(0, 16)).c_str(), found.c_str(),
                said.empty() ? "" : visible_text(said.front()).c_str());
    if (tried.effect != nullptr) {
      EXPECT_EQ(found, tried.effect) << what;
      EXPECT_TRUE(said.empty()) << what << ": " << said.front();
      return;
    }
    EXPECT_EQ(found, otherwise) << what << " has an effect";
    ASSERT_EQ(said.size(), 1U) << what << " is ignored silently";
    EXPECT_TRUE(has(said.front(), variable));
    EXPECT_TRUE(has(said.front(), "; use ")) << "the valid values are missing";
    EXPECT_LT(said.front().size(), 300U) << "the value is not shortened";
  }
  void check_all(const char* variable, const std::vector<Try>& tries, const std::function<std::string()>& effect) {
    tried_.insert(variable);
    const std::string otherwise = effect();
    EXPECT_TRUE(std::any_of(tries.begin(), tries.end(), [](const Try& one) { return one.effect == nullptr; }));
    for (const Try& tried : tries) check(variable, tried, effect, otherwise);
    check(variable, {"", otherwise.c_str()}, effect, otherwise);
  }

  Runtime make_runtime(const RuntimeOptions& options = {}) { return Runtime(session_, options); }
  Program open_tier(const std::optional<MemoryTier>& tier = {}, const std::function<bool(std::size_t)>& callback = {}) {
    MemoryOptions options;
    options.tier = tier;
    options.on_out_of_memory = callback;
    return open(std::move(options));
  }
  /// Returns the tier after an allocation.
  std::string tier_in_use(const std::function<bool(std::size_t)>& callback = [](std::size_t) { return false; }) {
    const Program program = open_tier({}, callback);
    std::vector<Buffer> kept;
    EXPECT_TRUE(program.reserve(kept, kPiece).has_value());
    return memory_tier_name(program.memory);
  }
  /// Returns whether 32 KiB can be allocated; a driver function fails while the memory is set up.
  std::string limit_in_force(MemoryTier tier, const char* failing = nullptr) {
    const Program program = open_tier(tier);
    if (failing != nullptr) driver_.fail(failing, 1, cuda::DriverResult::NotSupported);
    std::vector<Buffer> kept;
    EXPECT_TRUE(program.reserve(kept, 1024).has_value());
    return program.reserve(kept, 2 * kPiece).has_value() ? "fits" : "exceeds limit";
  }
  /// Returns the number of retries of an allocation that fails each time.
  std::string retries_in_force() {
    unsigned asked = 0;
    const Program program = open_tier(MemoryTier::RetryingPool, [&](std::size_t) { return ++asked != 0; });
    driver_.fail("cuMemAllocFromPoolAsync", 1, cuda::DriverResult::OutOfMemory, 4);
    std::vector<Buffer> kept;
    EXPECT_FALSE(program.reserve(kept, kPiece).has_value());
    driver_.fail("cuMemAllocFromPoolAsync", 1, cuda::DriverResult::OutOfMemory, 0);
    return std::to_string(asked) + " retries";
  }
  std::vector<Event> warnings() const {
    std::vector<Event> all = events(Event::Kind::ConfigWarning);
    for (const Event& event : runtime_.events(Event::Kind::ConfigWarning)) all.push_back(event);
    return all;
  }

  RuntimeFixture runtime_;
  Session session_ = runtime_.session();
  std::set<std::string> tried_;
};

TEST_F(VariablesTest, EveryVariableHasEffectOrWarning) {
  runtime_.allow_cpu_device.set(nullptr);
  check_all("KILN_EXECUTION_MODE",
            {{"auto", "auto"}, {"cpu", "cpu"}, {"gpu", "gpu"}, {"GPU"}, {"cuda"}, {"1"}, {"cpu "}, {"auto,gpu"}},
            [&] { return std::string(to_string(make_runtime().mode())); });
  check_all("KILN_REWRITES", booleans("rewritten", "unchanged"),
            [&] { return std::string(make_runtime().should_rewrite(kRewrite, 1) ? "rewritten" : "unchanged"); });
  check_all("KILN_DETERMINISTIC", booleans("deterministic", "unordered"), [&] {
    return std::string(to_string(make_runtime().decide(kSum, {.rows = 1}).value().variant->determinism));
  });
  check_all("KILN_ALLOW_CPU_DEVICE", booleans("allowed", "left out"),
            [&] { return std::string(make_runtime().allow_cpu_device() ? "allowed" : "left out"); });
  check_all("KILN_PRECISION", {{"auto", "fp32"}, {"fp64", "fp64"}, {"fp32"}, {"mixed"}, {"FP64"}, {"double"}, {"64"}},
            [&] {
              constexpr unsigned kSlowFp64 = 64;
              return std::string(
                  to_string(planned_precision(runtime::PrecisionClass::Metric, kSlowFp64, make_runtime().precision())));
            });
  check_all("KILN_TIME_STAGES", booleans("waits", "does not wait"),
            [&] { return std::string(make_runtime().time_stages() ? "waits" : "does not wait"); });
  check_all("KILN_MEMORY_TIER",
            {{"pool", "pool"},
             {"retrying_pool", "retrying_pool"},
             {"managed", "managed"},
             {"plain", "plain"},
             {"none"},
             {"retrying pool"},
             {"Pool"},
             {"1"},
             {"pool,managed"}},
            [&] { return tier_in_use(); });
  check_all("KILN_MEMORY_LIMIT",
            {{"16384", "exceeds limit"},
             {"16K", "exceeds limit"},
             {"16KB", "exceeds limit"},
             {"16KiB", "exceeds limit"},
             {"1M", "fits"},
             {"4G", "fits"},
             {"1T", "fits"},
             {"none", "fits"},
             {"0", "fits"},
             {"0G"},
             {"-1"},
             {"16k"},
             {"1.5G"},
             {"16X"},
             {"much"},
             {"99999999999T"},
             {"18446744073709551616"}},
            [&] { return limit_in_force(MemoryTier::Pool); });
  check_all("KILN_OOM_RETRIES",
            {{"0", "0 retries"},
             {"1", "1 retries"},
             {"2", "2 retries"},
             {"3", "3 retries"},
             {"4"},
             {"-1"},
             {"03"},
             {"two"},
             {"1.0"},
             {"99999999999999999999"}},
            [&] { return retries_in_force(); });
  const ScopedEnv calibrate("KILN_CALIBRATE", "/result.json");
  check_all("KILN_CALIBRATE_QUICK", booleans("few sizes", "all sizes"), [&] {
    const auto asked = runtime::requested_calibration();
    const bool few = asked->options.sizes.size() < runtime::CalibrationOptions().sizes.size();
    return std::string(few ? "few sizes" : "all sizes");
  });
  for (const RuntimeVariable& variable : kRuntimeVariables) {
    if (std::string_view(variable.valid) == "a path") continue;  // any text is valid
    EXPECT_EQ(tried_.count(variable.name), 1U) << variable.name << " is not tried here";
  }
}

TEST_F(VariablesTest, EveryBooleanSettingOfSessionTakesTheSameValues) {
  const TemporaryDirectory home;
  const ScopedEnv own("HOME", home.path().c_str());
  const ScopedEnv configuration("XDG_CONFIG_HOME", nullptr);
  unsigned settings = 0;
  for (const SettingSpec& spec : all_settings()) {
    const bool plain = spec.format.form == Format::Form::Plain;
    const auto* const flag = std::get_if<bool Config::*>(&spec.field);
    const auto* const optional = std::get_if<std::optional<bool> Config::*>(&spec.field);
    if (!plain || (flag == nullptr && optional == nullptr)) continue;
    ++settings;
    check_all(spec.variable, booleans("on", "off"), [&] {
      const Config config = Config::load({}, EventEmitter(log_.callback()), home.path("none.toml"));
      const std::optional<bool> value = flag != nullptr ? std::optional(config.**flag) : config.**optional;
      return std::string(!value ? "auto" : *value ? "on" : "off");
    });
  }
  EXPECT_GE(settings, 6U);
}

TEST_F(VariablesTest, OverridesPrecedeVariablesOfRuntime) {
  runtime_.mode.set("cpu");
  runtime_.precision.set("fp64");
  for (ScopedEnv* variable :
       {&runtime_.rewrites, &runtime_.deterministic, &runtime_.time_stages, &runtime_.allow_cpu_device}) {
    variable->set("yes");
  }
  Runtime runtime = make_runtime();
  struct Setting {
    std::function<bool()> get;
    std::function<SettingSource()> source;
    std::function<void(std::optional<bool>)> set;
  };
  const std::map<std::string, Setting> settings = {
      {"rewrites",
       {[&] { return runtime.rewrites(); }, [&] { return runtime.rewrites_source(); },
        [&](std::optional<bool> to) { runtime.set_rewrites(to); }}},
      {"deterministic",
       {[&] { return runtime.deterministic(); }, [&] { return runtime.deterministic_source(); },
        [&](std::optional<bool> to) { runtime.set_deterministic(to); }}},
      {"allow_cpu_device",
       {[&] { return runtime.allow_cpu_device(); }, [&] { return runtime.allow_cpu_device_source(); },
        [&](std::optional<bool> to) { runtime.set_allow_cpu_device(to); }}},
      {"time_stages",
       {[&] { return runtime.time_stages(); }, [&] { return runtime.time_stages_source(); },
        [&](std::optional<bool> to) { runtime.set_time_stages(to); }}},
  };
  for (const auto& [name, setting] : settings) {
    EXPECT_TRUE(setting.get()) << name;
    EXPECT_EQ(setting.source(), SettingSource::Environment) << name;
    setting.set(false);
    EXPECT_FALSE(setting.get()) << name;
    EXPECT_EQ(setting.source(), SettingSource::Override) << name;
    setting.set(std::nullopt);
    EXPECT_TRUE(setting.get()) << name;
  }
  EXPECT_EQ(runtime.precision(), PrecisionPolicy::Fp64);
  EXPECT_EQ(runtime.precision_source(), SettingSource::Environment);
  runtime.set_precision(PrecisionPolicy::Auto);
  EXPECT_EQ(runtime.precision(), PrecisionPolicy::Auto);
  EXPECT_EQ(runtime.precision_source(), SettingSource::Override);
  RuntimeOptions options;
  options.mode = Mode::Auto;
  options.precision = PrecisionPolicy::Auto;
  options.allow_cpu_device = false;
  options.rewrites = options.deterministic = options.time_stages = false;
  const Runtime other = make_runtime(options);
  EXPECT_EQ(other.mode(), Mode::Auto);
  EXPECT_EQ(other.precision(), PrecisionPolicy::Auto);
  EXPECT_FALSE(other.allow_cpu_device() || other.rewrites() || other.deterministic() || other.time_stages());
}

TEST_F(VariablesTest, DeterminismDiscardsCachedDecisions) {
  Runtime runtime = make_runtime();
  const auto chosen = [&] { return runtime.decide(kSum, {.rows = 1}).value().variant->determinism; };
  EXPECT_EQ(chosen(), Determinism::Unordered);
  runtime.set_deterministic(true);
  EXPECT_EQ(chosen(), Determinism::Deterministic);
  runtime.set_deterministic(std::nullopt);
  EXPECT_EQ(chosen(), Determinism::Unordered);
}

TEST_F(VariablesTest, OverridesPrecedeVariablesOfMemory) {
  tier_variable_.set("managed");
  limit_variable_.set("16K");
  retries_variable_.set("1");
  const Memory memory;
  EXPECT_EQ(memory.settings().tier, MemoryTier::Managed);
  EXPECT_EQ(memory.settings().limit, 16384U);
  EXPECT_EQ(memory.settings().retries, 1U);
  for (const SettingSource source :
       {memory.settings().tier_source, memory.settings().limit_source, memory.settings().retries_source}) {
    EXPECT_EQ(source, SettingSource::Environment);
  }
  EXPECT_TRUE(memory.set_tier(MemoryTier::Plain).has_value());
  EXPECT_TRUE(memory.set_limit(0).has_value());
  EXPECT_TRUE(memory.set_retries(2).has_value());
  EXPECT_EQ(memory.settings().tier, MemoryTier::Plain);
  EXPECT_EQ(memory.settings().limit, 0U);
  EXPECT_EQ(memory.settings().retries, 2U);
  for (const SettingSource source :
       {memory.settings().tier_source, memory.settings().limit_source, memory.settings().retries_source}) {
    EXPECT_EQ(source, SettingSource::Override);
  }
  EXPECT_TRUE(memory.set_tier(std::nullopt).has_value());
  EXPECT_EQ(memory.settings().tier, MemoryTier::Managed);

  MemoryOptions options;
  options.tier = MemoryTier::Pool;
  const Program program = open(options);
  std::vector<Buffer> kept;
  ASSERT_TRUE(program.reserve(kept, kPiece).has_value());
  EXPECT_EQ(memory_tier_name(program.memory), "pool");
  const Status late = program.memory.set_tier(MemoryTier::Plain);
  ASSERT_FALSE(late.has_value());
  EXPECT_TRUE(has(late.error().message, "before the first allocation"));
  EXPECT_EQ(program.memory.settings().tier, MemoryTier::Pool);
}

TEST_F(VariablesTest, ManagedAndFallbackMemoryIgnoreLimit) {
  limit_variable_.set("16K");
  EXPECT_EQ(limit_in_force(MemoryTier::Pool), "exceeds limit");
  EXPECT_EQ(limit_in_force(MemoryTier::RetryingPool), "exceeds limit");
  EXPECT_EQ(limit_in_force(MemoryTier::Managed), "fits");
  EXPECT_EQ(limit_in_force(MemoryTier::Plain), "fits");
  for (const MemoryTier tier : {MemoryTier::Pool, MemoryTier::Managed}) {
    log_.clear();
    EXPECT_EQ(limit_in_force(tier, "cuDeviceGetAttribute"), "fits") << to_string(tier) << " fell back to plain memory";
    const std::vector<Event> set = events(runtime::events::kMemoryTierSelected);
    ASSERT_EQ(set.size(), 1U);
    EXPECT_EQ(set[0].selected, "plain");
    EXPECT_EQ(says(set[0].message, "without a limit"), tier == MemoryTier::Pool) << set[0].message;
  }
}

TEST_F(VariablesTest, RetryingPoolWithoutCallbackOrWithTooManyRetriesWarns) {
  tier_variable_.set("retrying_pool");
  EXPECT_EQ(tier_in_use({}), "retrying_pool");
  ASSERT_EQ(events(Event::Kind::ConfigWarning).size(), 1U);
  EXPECT_TRUE(has(events(Event::Kind::ConfigWarning)[0].message, "MemoryOptions::on_out_of_memory"));

  log_.clear();
  MemoryOptions options;
  options.retries = 7;
  options.on_out_of_memory = [](std::size_t) { return true; };
  const Program program = open(options);
  EXPECT_EQ(program.memory.settings().retries, 3U);
  std::vector<Buffer> kept;
  ASSERT_TRUE(program.reserve(kept, kPiece).has_value());
  ASSERT_EQ(events(Event::Kind::ConfigWarning).size(), 1U);
  EXPECT_TRUE(has(events(Event::Kind::ConfigWarning)[0].message, "at most 3"));
}

TEST_F(VariablesTest, WarningsArePrintedIfNothingListens) {
  runtime_.rewrites.set("perhaps");
  tier_variable_.set("best");
  const ScopedEnv disable("KILN_DISABLE", "perhaps");
  const ScopedEnv misspelled("KILN_REWRITE", "1");
  const ScopedEnv of_another_program("KILN_SCHEDULE_OF_POTTERY", "1");
  for (const bool traced : {false, true}) {
    SessionOptions options = session_options();
    options.on_event = {};
    if (traced) options.settings["trace"] = cache_.path("trace.json");
    const Memory memory;
    testing::internal::CaptureStderr();
    Session session = runtime::open_session(options, memory).value();
    (void)Runtime(session).rewrites();
    ASSERT_TRUE(session.make_current(kiln::Backend::Cuda, 0).has_value());
    const Stream stream = session.stream(kiln::Backend::Cuda).value();
    driver_.fail("cuMemPoolCreate", 1, cuda::DriverResult::NotSupported);
    EXPECT_TRUE(stream.allocate(kPiece).has_value());
    const std::string printed = testing::internal::GetCapturedStderr();
    for (const char* line :
         {"kiln: warning: KILN_REWRITES is ignored: invalid value 'perhaps'; use 1, true",
          "kiln: warning: KILN_MEMORY_TIER is ignored: invalid value 'best'; use pool",
          "kiln: warning: KILN_DISABLE: disable: invalid value 'perhaps'; use 1, true",
          "kiln: warning: the environment: unknown variable KILN_REWRITE; did you mean KILN_REWRITES?"}) {
      EXPECT_TRUE(has(printed, line));
    }
    if (!traced) {
      EXPECT_FALSE(has(printed, "POTTERY"));
      EXPECT_TRUE(has(printed, "kiln: warning: device 0 does not support memory tier pool"));
    }
  }
}

}  // namespace
}  // namespace kiln::test
