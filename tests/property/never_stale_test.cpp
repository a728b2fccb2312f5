// After any change kiln gives what bare NVRTC gives for the present inputs, bit for bit, and what changes nothing hits.
// Real compiles, and a new toolbox on one cache folder for every question, as new processes would have.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include "bare_nvrtc.hpp"
#include "project.hpp"
#include "session/toolbox.hpp"
#include "support/event_log.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// In CI; the campaign makes a thousand (docs/campaigns.md).
constexpr int kChanges = 200;
constexpr int kChangesPerProject = 50;

struct Got {
  bool ok = false;
  std::string bytes;
  std::vector<std::string> symbols;
  std::string origin;
  std::size_t compiles = 0;
  bool published = false;
  std::string why;  // an error, or why it was not published
};

class NeverStale : public testing::Test {
 protected:
  void SetUp() override {
    nvrtc_[0] = toolkit_nvrtc();
    nvrtc_[1] = package_nvrtc(KILN_SOURCE_DIR);
    if (nvrtc_[0].empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    if (nvrtc_[1].empty()) GTEST_SKIP() << "no second NVRTC in .venv: run tools/setup.sh";
    start_ = fs::current_path().string();
  }
  void TearDown() override {
    if (!start_.empty()) fs::current_path(start_);
    for (const char* variable : {"NVRTC_APPEND_FLAGS", "NVRTC_PREPEND_FLAGS", "PWD"}) unsetenv(variable);
  }

  Got get(const Project& project) {
    project.enter();
    EventLog events;
    Config config;
    config.cache_path = {folder_.path("cache")};
    config.nvrtc = nvrtc_[project.compiler];
    config.pch = pch_ ? Config::Pch::On : Config::Pch::Off;
    Toolbox toolbox(config, events.observer());
    Got got;
    const auto recipe = toolbox.recipe(project.unit(), project.target());
    if (!recipe) {
      got.why = recipe.error().message;
      return got;
    }
    const auto answer = toolbox.resolver().get(*recipe, **toolbox.compiler(recipe->unit, project.target()));
    got.compiles = events.count(Event::Kind::Compiled) + events.count(Event::Kind::CompileFailed);
    compiles_ += got.compiles;
    if (!answer) {
      got.why = answer.error().message + "\n" + answer.error().log;
      return got;
    }
    got.ok = true;
    got.bytes = answer->artifact.bytes.view();
    for (const Entry& entry : answer->artifact.entries) got.symbols.push_back(entry.symbol);
    got.origin = to_string(answer->origin);
    hits_ += answer->origin != Origin::Compiled;
    headers_kept_ += events.count(Event::Kind::HeadersKept);
    headers_used_ += events.count(Event::Kind::HeadersUsed);
    headers_dropped_ += events.count(Event::Kind::HeadersDropped);
    got.published = answer->origin != Origin::Compiled || events.count(Event::Kind::Published) > 0;
    if (const auto not_published = events.of(Event::Kind::NotPublished); !not_published.empty()) {
      got.why = not_published[0].message;
    }
    return got;
  }

  BareResult bare(const Project& project) {
    project.enter();
    ++bare_compiles_;
    return bare_.compile(nvrtc_[project.compiler], project.unit(), project.target());
  }

  // Asks kiln, and NVRTC itself, and compares.
  Got check(const Project& project, const std::string& what) {
    Got got = get(project);
    truth_ = bare(project);
    compare(got, truth_, project, what);
    if (pch_) check_sibling(project, what);
    return got;
  }

  // Another unit with the same headers, which nobody has compiled yet: it uses what is precompiled, if that is good.
  void check_sibling(Project sibling, const std::string& what) {
    sibling.constant = 100 + ++siblings_ % 900;
    compare(get(sibling), bare(sibling), sibling, what + ", in another unit");
  }

  void compare(const Got& got, const BareResult& truth, const Project& project, const std::string& what) {
    const bool same = got.ok == truth.ok && (!got.ok || (got.bytes == truth.bytes && got.symbols == truth.symbols));
    if (same) return;
    ++mismatches_;
    ADD_FAILURE() << "after " << what << " in " << project.folder() << " for " << project.targets_name << ": kiln "
                  << (got.ok ? got.origin + " " + std::to_string(got.bytes.size()) + " bytes" : got.why)
                  << "; bare NVRTC " << (truth.ok ? std::to_string(truth.bytes.size()) + " bytes" : truth.log);
  }

  // One change, a look, and half of the time back again, which must hit where the earlier state had been kept.
  void step(Project& project, const ChangeKind& kind, Random& random) {
    const Got before = get(project);
    // Nothing has happened since the last check but what changes nothing, so what was true then still is.
    const BareResult truth_before = truth_;
    const bool was_timed = project.timed();
    const Undo undo = kind.apply(project, random);
    ++by_kind_[kind.name];
    if (kind.settle) std::this_thread::sleep_for(25ms);
    const Got after = check(project, kind.name);
    if (after.ok && random() % 2 != 0) return;
    undo();
    std::this_thread::sleep_for(25ms);
    const Got back = was_timed ? check(project, std::string("the way back from ") + kind.name) : get(project);
    ++by_kind_["back"];
    if (was_timed) return;
    truth_ = truth_before;
    compare(back, truth_before, project, std::string("the way back from ") + kind.name);
    if (before.published && before.ok) {
      EXPECT_EQ(back.compiles, 0U) << "the way back from " << kind.name << " in " << project.folder() << ": "
                                   << back.why;
      needless_ += back.compiles;
    }
  }

  // Somebody saves a header while the compiler runs: that answer may be of either state, the next one may not.
  void edit_during_compile(Project& project, Random& random) {
    const std::size_t i = random() % project.headers.size();
    const std::string path = project.at(project.headers[i].folder + "/" + project.headers[i].name);
    ++project.scale;  // so that there is a compile to run into
    project.headers[i].constant = project.headers[i].constant % 900 + 100;
    const std::string text = project.text_of(i);
    const auto delay = std::chrono::microseconds(random() % 90'000);
    const Manner manner = random() % 2 != 0 ? Manner::InPlace : Manner::ByRename;
    std::thread editor([=] {
      std::this_thread::sleep_for(delay);
      write_file(path, text, manner);
    });
    (void)get(project);
    editor.join();
    ++by_kind_["edit-during-compile"];
    if (random() % 2 != 0) std::this_thread::sleep_for(25ms);
    (void)check(project, "an edit during the compile");
  }

  // What changes nothing hits.
  void neutral(Project& project, Random& random) {
    const Got before = get(project);
    if (!before.ok || !before.published || project.timed()) return;
    const auto expect_hit = [&](const Project& p, const char* what) {
      const Got after = get(p);
      ++by_kind_[what];
      needless_ += after.compiles;
      EXPECT_EQ(after.compiles, 0U) << what << " in " << project.folder() << ": " << after.why;
      EXPECT_EQ(after.bytes, before.bytes) << what;
    };
    switch (random() % 4) {
      case 0: {
        const auto& header = project.headers[random() % project.headers.size()];
        const std::string path = project.at(header.folder + "/" + header.name);
        if (fs::exists(path)) fs::last_write_time(path, fs::file_time_type::clock::now() - 1h * (random() % 99));
        expect_hit(project, "neutral:mtime");
        break;
      }
      case 1: {
        const std::string unrelated = project.at("r1/unrelated_" + std::to_string(random() % 99) + ".h");
        write_file(unrelated, "#error nobody includes this\n");
        expect_hit(project, "neutral:unrelated-file");
        break;
      }
      case 2: {
        if (project.located() || project.shadowed_here || !project.working_directory.ends_with("here")) return;
        const std::string old = project.working_directory;
        project.working_directory = project.at("nowhere");
        expect_hit(project, "neutral:other-directory");
        project.working_directory = old;
        break;
      }
      default: {
        // A copy of a link is a file of its own, or a link to the old place: not the same project.
        if (project.located() || fs::equivalent(project.at("r1/twin_a.h"), project.at("r2/twin_b.h"))) return;
        const Project copy = project.copy_to(folder_.path("copy-" + std::to_string(++copies_)));
        expect_hit(copy, "neutral:other-checkout");
        project.enter();
        fs::remove_all(copy.folder());
      }
    }
  }

  TemporaryDirectory folder_;
  std::string nvrtc_[2];
  std::string start_;
  const bool pch_ = std::getenv("KILN_TEST_PCH") != nullptr;  // whether headers are precompiled
  BareNvrtc bare_;
  BareResult truth_;  // for the present state of the project
  std::map<std::string, int> by_kind_;
  std::size_t compiles_ = 0;
  std::size_t bare_compiles_ = 0;
  std::size_t hits_ = 0;
  std::size_t needless_ = 0;
  std::size_t mismatches_ = 0;
  std::size_t headers_kept_ = 0;
  std::size_t headers_used_ = 0;
  std::size_t headers_dropped_ = 0;
  int copies_ = 0;
  int siblings_ = 0;
};

// A number from the environment, or this one.
int number_from(const char* variable, int otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? std::atoi(given) : otherwise;
}

TEST_F(NeverStale, RandomChangesNeverGiveOtherBytesThanBareNvrtc) {
  const auto seed = static_cast<unsigned>(number_from("KILN_TEST_SEED", 20261115));
  const int wanted = number_from("KILN_TEST_CHANGES", kChanges);
  Random random(seed);
  const auto start = std::chrono::steady_clock::now();
  int changes = 0;
  for (int number = 0; changes < wanted && mismatches_ < 5 && needless_ < 5; ++number) {
    Project project(folder_.path("project-" + std::to_string(number)), random);
    std::this_thread::sleep_for(25ms);
    (void)check(project, "the beginning");
    for (int i = 0; i < kChangesPerProject && changes < wanted && mismatches_ < 5 && needless_ < 5; ++i, ++changes) {
      if (i % 12 == 11) {
        edit_during_compile(project, random);
      } else {
        // Each kind equally often over the whole run, in an order that no project shares with another.
        const auto& kinds = change_kinds();
        step(project, kinds[random() % kinds.size()], random);
      }
      if (i % 3 == 0) neutral(project, random);
    }
  }
  std::printf(
      "figure: never stale: seed=%u changes=%d compiles=%zu bare=%zu hits=%zu mismatches=%zu needless=%zu "
      "seconds=%.0f\n",
      seed, changes, compiles_, bare_compiles_, hits_, mismatches_, needless_,
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (pch_) {
    std::printf("figure: never stale, precompiled headers: kept=%zu used=%zu dropped=%zu\n", headers_kept_,
                headers_used_, headers_dropped_);
    EXPECT_GT(headers_used_, 0U) << "there was nothing to be stale";
  }
  for (const auto& [kind, count] : by_kind_) std::printf("  %s=%d", kind.c_str(), count);
  std::printf("\n");
  EXPECT_GE(changes, wanted);
  EXPECT_EQ(mismatches_, 0U);
}

}  // namespace
}  // namespace kiln::test
