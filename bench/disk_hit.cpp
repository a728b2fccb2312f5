// SPDX-License-Identifier: Apache-2.0
// The overhead of DiskStore::get over reading a file and checking it: the path, the stamps, decoding, owned memory.
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/scratch.hpp"
#include "cache/cache_directory.hpp"
#include "cache/disk_store.hpp"

namespace kiln::bench {
namespace {

// Enough for the clock, and few enough that most rounds are undisturbed on a busy machine.
std::size_t calls_per_round(std::size_t size) { return size < 64 * 1024 ? 50 : 10; }

Artifact artifact_of(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  Artifact artifact;
  artifact.bytes = Bytes::of(std::move(bytes));
  artifact.target = Target::sm(80);
  artifact.entries = {{"first", "first"}, {"second", "second"}, {"third", "third"}};
  artifact.metadata = {"bench", "nvrtc 13.0", 170, ""};
  return artifact;
}

// Reads into existing memory, which is less than any caller that keeps the bytes can do.
bool read_and_check(const std::string& path, std::vector<std::uint8_t>& buffer, std::uint64_t expected) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t size = ::read(fd, buffer.data(), buffer.size());
  ::close(fd);
  return size == static_cast<ssize_t>(buffer.size()) && xxh3({buffer.data(), buffer.size()}) == expected;
}

Result<Outcome> measure(const std::string& name, std::size_t size) {
  const Scratch scratch;
  auto store = DiskStore::open({.root = scratch / "cache"});
  if (!store) return std::move(store).error();
  const ArtifactKey key{sha256(name)};
  if (Status put = (*store)->put(key, artifact_of(size), {}); !put) return std::move(put).error();

  const std::string path = scratch / ("cache/v1/" + ShardedName("entries", key.digest).str());
  const auto file = read_file(path);
  if (!file || !*file) return make_error(Code::Internal, "the entry is missing: " + path);
  std::vector<std::uint8_t> buffer((*file)->size());
  const std::uint64_t checksum = xxh3({(*file)->data(), (*file)->size()});

  const std::size_t calls = calls_per_round(size);
  bool good = true;
  const auto answer = [&](double time) -> Result<double> {
    if (!good) return make_error(Code::Internal, name + " read other bytes than were stored");
    return time;
  };
  Plan plan;
  plan.name = name;
  plan.limit = 1.5;
  plan.min_rounds = 200;
  plan.max_rounds = 5000;
  plan.ours = [&] {
    return answer(microseconds_each(calls, [&] {
      const auto hit = (*store)->get(key, {});
      good = good && hit && *hit && (*hit)->artifact.bytes.size() == size;
    }));
  };
  plan.theirs = [&] {
    return answer(microseconds_each(calls, [&] { good = read_and_check(path, buffer, checksum) && good; }));
  };
  return compare(plan);
}

}  // namespace

Result<Outcomes> disk_hit() {
  Outcomes outcomes;
  for (const auto& [name, size] :
       {std::pair("disk_hit_4k", 4 * 1024), {"disk_hit_28k", 28 * 1024}, {"disk_hit_193k", 193 * 1024}}) {
    Status added = add(outcomes, measure(name, static_cast<std::size_t>(size)));
    if (!added) return std::move(added).error();
  }
  return outcomes;
}

}  // namespace kiln::bench
