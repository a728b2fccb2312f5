// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The common part of the C++ adapters: the command line and the line of JSON that bench/peers/README.md describes. It
// does not use kiln, so that a peer is measured without it.
namespace kiln::peers {

/// Exit code of an adapter whose peer is not installed on this machine.
constexpr int kNotHere = 77;

inline std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct Question {
  std::string cache;
  std::string source;  ///< content of the file
  std::string name;    ///< file name without its directory
  std::string include;
  std::string arch;
  std::size_t times = 1;
  std::optional<std::uint64_t> limit;
};

struct Answer {
  std::vector<std::int64_t> ns;
  std::int64_t since_main_ns = 0;
  std::string code;
  std::optional<std::size_t> compiles;
  std::string error;
};

/// Parses the command line; returns nothing if it is invalid.
inline std::optional<Question> question(int argc, char** argv) {
  if (argc < 5) return std::nullopt;
  Question asked{.cache = argv[1], .include = argv[3], .arch = argv[4]};
  for (int i = 5; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const auto value = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--times") asked.times = value;
    if (name == "--limit") asked.limit = value;
  }
  const std::string path = argv[2];
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  asked.source.assign(std::istreambuf_iterator<char>(file), {});
  asked.name = path.substr(path.rfind('/') + 1);
  return asked;
}

inline std::string sha256_of(const std::string& code) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(code.data(), code.size(), digest, &size, EVP_sha256(), nullptr);
  std::string text;
  char two[3];
  for (unsigned i = 0; i < size; ++i) {
    std::snprintf(two, sizeof two, "%02x", digest[i]);
    text += two;
  }
  return text;
}

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  char escaped[8];
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Prints the line of JSON and returns the exit code.
inline int emit(const Answer& answer) {
  std::printf("{\"ns\": [");
  for (std::size_t i = 0; i < answer.ns.size(); ++i) {
    std::printf("%s%lld", i == 0 ? "" : ", ", static_cast<long long>(answer.ns[i]));
  }
  std::printf("], \"since_main_ns\": %lld, \"sha256\": \"%s\", \"bytes\": %zu, \"compiles\": %s, \"error\": %s}\n",
              static_cast<long long>(answer.since_main_ns), sha256_of(answer.code).c_str(), answer.code.size(),
              answer.compiles ? std::to_string(*answer.compiles).c_str() : "null",
              answer.error.empty() ? "null" : quoted(answer.error).c_str());
  return 0;
}

/// Calls a peer as often as the command line requests. A peer has `std::string get(const Question&)`, which returns an
/// error or an empty string, and `void finish(Answer&)`, which stores the last code and the number of compiles.
template <class Peer>
int ask(int argc, char** argv, Peer&& peer) {
  const std::int64_t start = now_ns();
  const std::optional<Question> asked = question(argc, argv);
  if (!asked) {
    std::fprintf(stderr, "usage: %s CACHE SOURCE INCLUDE ARCH [--times N] [--limit BYTES]\n", argv[0]);
    return 2;
  }
  Answer answer;
  for (std::size_t i = 0; i < asked->times; ++i) {
    const std::int64_t before = now_ns();
    answer.error = peer.get(*asked);
    if (!answer.error.empty()) break;
    answer.ns.push_back(now_ns() - before);
    if (i == 0) answer.since_main_ns = now_ns() - start;
  }
  peer.finish(answer);
  return emit(answer);
}

inline bool wants_version(int argc, char** argv) { return argc == 2 && std::strcmp(argv[1], "--version") == 0; }

}  // namespace kiln::peers
