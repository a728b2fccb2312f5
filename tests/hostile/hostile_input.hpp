// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <random>

#include "apps/run_kiln.hpp"
#include "bundle/bundle_forger.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {

using Strings = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

inline const Variables kUnsignedAllowed = {{"KILN_TRUST_UNSIGNED", "1"}};
inline constexpr long kMaxKilobytes = 256 << 10;

/// Returns text that compresses badly: a reader rejects a frame that expands to more than 1024 times its size.
inline std::string noise(std::size_t size) {
  std::mt19937 random(7);
  std::string text(size, 'a');
  for (char& c : text) c = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[random() % 64];
  return text;
}

/// One zstd frame of `head`, as many copies of `element` as fit into `size` bytes, and `tail`. It is compressed in
/// pieces, because the peak memory of this process would count as that of the programs that it starts.
struct Packed {
  std::string stored;
  std::size_t raw = 0;
};
inline Packed packed(const std::string& head, const std::string& element, std::size_t size, const std::string& tail) {
  std::string piece;
  while (piece.size() < 100'000) piece += element;
  const std::size_t pieces = size / piece.size();
  Packed out{{}, head.size() + pieces * piece.size() + tail.size()};
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setPledgedSrcSize(context, out.raw);
  const auto add = [&](const std::string& text, ZSTD_EndDirective end) {
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    std::string part(ZSTD_CStreamOutSize(), '\0');
    std::size_t left = 0;
    do {
      ZSTD_outBuffer to{part.data(), part.size(), 0};
      left = ZSTD_compressStream2(context, &to, &in, end);
      ASSERT_FALSE(ZSTD_isError(left));
      out.stored.append(part, 0, to.pos);
    } while (in.pos < in.size || (end == ZSTD_e_end && left > 0));
  };
  add(head, ZSTD_e_continue);
  for (std::size_t i = 0; i < pieces; ++i) add(piece, ZSTD_e_continue);
  add(tail, ZSTD_e_end);
  ZSTD_freeCCtx(context);
  return out;
}

/// The kiln program, and files to attack it with.
class HostileInput : public KilnProgram {
 protected:
  /// The resource usage and output of a program.
  struct Cost {
    int code = -1;
    long kilobytes = 0;
    double seconds = 0;  ///< CPU time, which other load does not change
    std::string text;
  };
  Cost cost_of(Strings arguments, const Variables& variables = {}) {
    arguments.insert(arguments.begin(), KILN_PROGRAM);
    Cost cost;
    const pid_t child = fork();
    if (child == 0) {
      const int out = open(path(".said").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      if (out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(98);
      setenv("HOME", path("home").c_str(), 1);
      setenv("KILN_CACHE_DIR", path("cache").c_str(), 1);
      for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
      std::vector<char*> values;
      for (std::string& each : arguments) values.push_back(each.data());
      values.push_back(nullptr);
      execv(values[0], values.data());
      _exit(97);
    }
    int status = 0;
    rusage used{};
    EXPECT_EQ(wait4(child, &status, 0, &used), child);
    cost.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    cost.kilobytes = used.ru_maxrss;
    for (const timeval& time : {used.ru_utime, used.ru_stime}) {
      cost.seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    }
    cost.text = read_text(path(".said"));
    return cost;
  }

  /// Creates an unsigned bundle with an artifact and this description.
  std::string with_description(const Packed& description, const std::vector<BundleMember>& members = {}) {
    Forge forge(members.empty() ? std::vector{member_of("a.cu", Target::parse("sm_80").value())} : members);
    forge.groups[0].clear();
    forge.header.description = forge.append(0, description.stored, BlobLocation::Method::Zstd, description.raw);
    write_text(path("bomb.kiln"), forge.build());
    return path("bomb.kiln");
  }
  std::string description_bomb() {
    return with_description(
        packed(R"({"kiln":"bundle description 1","generator":")" + noise(400'000) + R"(","artifacts":[{})", ",{}",
               (255U << 20), "]}"));
  }
  static void expect_bounded(const Cost& cost, const std::string& what) {
    EXPECT_LT(cost.kilobytes, kMaxKilobytes) << what;
    EXPECT_LT(cost.seconds, 10) << what;
    RecordProperty("kilobytes", std::to_string(cost.kilobytes));
    std::printf("%s: %ld KB, %.2f s: %s\n", what.c_str(), cost.kilobytes, cost.seconds,
                cost.text.substr(0, 300).c_str());
  }
};

}  // namespace kiln::test
