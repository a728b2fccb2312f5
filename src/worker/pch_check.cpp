// SPDX-License-Identifier: Apache-2.0
#include "worker/pch_check.hpp"

#include <kiln/version.hpp>

#include "base/clock.hpp"
#include "base/codec.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

// How kiln-worker manages the compiler's heap. Increase this number when that changes, so that checks are repeated.
constexpr std::uint32_t kHeapMode = 2;  // fixed address, retained as one mapping, can grow

constexpr const char* kHeaderName = "kiln_pch_check.h";
constexpr const char* kHeader = R"(#pragma once
#define KILN_CHECK_SCALE 3
__device__ inline int kiln_check_warned() { int unused_in_header; return KILN_CHECK_SCALE; }
namespace kiln_check {
enum class Order { Up, Down };
template <class T, int N>
struct Row {
  T values[N];
  __device__ T sum() const {
    T total = T();
    for (int i = 0; i < N; ++i) total += values[i];
    return total;
  }
};
template <class T>
struct Pair {
  T first;
  T second;
  __device__ T larger() const { return first < second ? second : first; }
};
template <>
struct Pair<int> {
  int first;
  int second;
  __device__ int larger() const { return first > second ? first : second + KILN_CHECK_SCALE; }
};
struct Shape {
  __device__ virtual float area() const { return 0.0f; }
};
struct Box : Shape {
  float side = 1.0f;
  __device__ float area() const override { return side * side; }
};
template <Order order, class... Values>
__device__ __forceinline__ auto folded(Values... values) {
  return order == Order::Up ? (values + ...) : (values * ...);
}
}  // namespace kiln_check
)";

// The header and each source have their own warnings, so that logs are compared, too.
constexpr const char* kFirst = R"(#include "kiln_pch_check.h"
template <class T>
__global__ void first(T* out, const T* in) {
  int unused_by_first;
  kiln_check::Row<T, 8> row;
  for (int i = 0; i < 8; ++i) row.values[i] = in[i];
  out[threadIdx.x] = row.sum() + kiln_check::folded<kiln_check::Order::Up>(in[0], in[1], T(2));
}
)";
constexpr const char* kSecond = R"(#include "kiln_pch_check.h"
__global__ void second(int* out, float* areas) {
  int unused_by_second;
  const kiln_check::Pair<int> pair{out[0], out[1]};
  const kiln_check::Box box;
  const kiln_check::Shape& shape = box;
  areas[threadIdx.x] = shape.area() * KILN_CHECK_SCALE;
  out[threadIdx.x] = pair.larger() * kiln_check::folded<kiln_check::Order::Down>(out[2], out[3]);
}
)";

// A sample unit and its output without precompiled headers.
struct Sample {
  Unit unit;
  std::string plain = {};
};

Sample sample(const char* name, const char* source, const char* entry) {
  return {Unit::cuda(name, source).with_option("-std=c++17").with_header(kHeaderName, kHeader).with_entry(entry)};
}

// Returns everything that a caller sees of a compile, except its duration.
std::string seen(const CompileResult& compiled) {
  BinaryWriter out;
  out.text(compiled.artifact.bytes.view()).text(compiled.artifact.metadata.log);
  for (const EntryPoint& entry : compiled.artifact.entries) out.text(entry.name).text(entry.symbol);
  return std::move(out).bytes();
}

// The compiles of one check. Not thread-safe.
class Checking {
 public:
  Checking(const Recipe& like, const CompilerIdentity& nvrtc, const PchRequest& create, const AskWorker& ask)
      : like_(like), nvrtc_(nvrtc), create_(create), ask_(ask) {}

  bool learn(Sample& sample) {
    const Result<WorkerReply> reply = ask_(job(sample, {}));
    if (reply) sample.plain = seen(reply->compiled);
    return reply.has_value();
  }

  /// Returns Good if the output equals the one without precompiled headers.
  PchVerdict::Kind compare(const Sample& sample, const PchRequest& order, PchResult::Outcome expected,
                           const std::string& what) {
    const Result<WorkerReply> reply = ask_(job(sample, order));
    reason_ = what + ": ";
    if (!reply) {
      const Code code = reply.error().code;
      interrupted_ = code == Code::Cancelled;
      reason_ += reply.error().message;
      if (code == Code::Internal) return PchVerdict::Kind::Rejected;
      return code == Code::CompileFailed ? PchVerdict::Kind::Differs : PchVerdict::Kind::Unusable;
    }
    report_ = reply->pch;
    if (seen(reply->compiled) != sample.plain) {
      reason_ += "the compiler's output or log differs";
      return PchVerdict::Kind::Differs;
    }
    if (report_.outcome == expected) return PchVerdict::Kind::Good;
    reason_ += report_.reason;
    const bool rejected = report_.outcome == PchResult::Outcome::Rejected;
    return rejected ? PchVerdict::Kind::Rejected : PchVerdict::Kind::Unusable;
  }

  const PchRequest& create() const { return create_; }
  PchRequest use() const {
    return {PchRequest::Mode::Use, create_.path, made_.size, made_.checksum, made_.log, false, create_.file};
  }
  void keep_report() { made_ = std::move(report_); }
  const std::string& reason() const { return reason_; }
  /// Returns true if the last compile was killed externally.
  bool interrupted() const { return interrupted_; }

 private:
  WorkerJob job(const Sample& sample, const PchRequest& order) const {
    // PTX is enough: precompiled headers can only affect the steps before machine code.
    const Target target{like_.target.architecture, Form::Ptx};
    return {Recipe{sample.unit, target, nvrtc_, like_.working_directory}, order};
  }

  const Recipe& like_;
  const CompilerIdentity& nvrtc_;
  const PchRequest& create_;
  const AskWorker& ask_;
  PchResult report_;
  PchResult made_;
  std::string reason_;
  bool interrupted_ = false;
};

}  // namespace

std::optional<PchVerdict> check_pch(const Recipe& like, const CompilerIdentity& nvrtc, const PchRequest& create,
                                    const AskWorker& ask) {
  Sample first = sample("kiln_pch_first.cu", kFirst, "first<float>");
  Sample second = sample("kiln_pch_second.cu", kSecond, "second");
  Checking checking(like, nvrtc, create, ask);
  for (Sample* one : {&first, &second}) {
    if (!checking.learn(*one)) return std::nullopt;
  }
  using Kind = PchVerdict::Kind;
  using Outcome = PchResult::Outcome;
  Kind kind = checking.compare(first, checking.create(), Outcome::Created, "creating one");
  checking.keep_report();
  const auto go_on = [&](const Sample& sample, const PchRequest& order, Outcome expected, const char* what) {
    if (kind == Kind::Good) kind = checking.compare(sample, order, expected, what);
  };
  go_on(second, checking.use(), Outcome::Used, "using one");
  go_on(first, {}, Outcome::None, "compiling without one afterwards");
  go_on(first, checking.use(), Outcome::Used, "using one again");
  if (checking.interrupted()) return std::nullopt;
  return PchVerdict{kind, kind == Kind::Good ? std::string() : checking.reason(), system_clock().wall()};
}

Digest pch_verdict_key(const CompilerIdentity& nvrtc) {
  BinaryWriter out;
  out.text("kiln pch verdict").text(version()).u32(kHeapMode).digest(nvrtc.digest);
  return sha256(out.bytes());
}

Digest pch_failure_key(const Digest& headers, std::uint64_t max_bytes, std::uint64_t worker_memory) {
  BinaryWriter out;
  out.text("kiln pch failure").text(version()).digest(headers).u64(max_bytes).u64(worker_memory);
  return sha256(out.bytes());
}

// The cause of a rejection may have been a full disk.
std::chrono::nanoseconds expiry_of(const PchVerdict& verdict) {
  return verdict.made + (verdict.kind == PchVerdict::Kind::Rejected ? 24h : 30 * 24h);
}

bool is_current(const PchVerdict& verdict, std::chrono::nanoseconds now) {
  return now <= expiry_of(verdict) && verdict.made <= now + 1h;
}

}  // namespace kiln
