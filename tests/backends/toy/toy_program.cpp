// SPDX-License-Identifier: Apache-2.0
#include "backends/toy/toy_program.hpp"

#include <sstream>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln::test {
namespace {

constexpr std::string_view kMagic = "kiln toy 1";
constexpr std::size_t kMaxInstructions = 1000;
constexpr const char* kOps[] = {"scalar", "load", "store", "add", "mul"};

// Returns the reason why a kernel is invalid; empty if it is valid.
std::string reason_invalid(const ToyKernelCode& kernel) {
  if (kernel.parameters.empty() || kernel.parameters.front() != 'c') return "the first parameter is not 'count'";
  if (kernel.code.size() > kMaxInstructions) return "it has more than 1000 instructions";
  std::size_t depth = 0;
  for (const ToyInstruction& step : kernel.code) {
    const std::string name = kOps[static_cast<std::size_t>(step.op)];
    const bool has_parameter = step.op == ToyOp::Scalar || step.op == ToyOp::Load || step.op == ToyOp::Store;
    const char wanted = step.op == ToyOp::Scalar ? 'f' : 'b';
    if (has_parameter && (step.parameter >= kernel.parameters.size() || kernel.parameters[step.parameter] != wanted)) {
      return "'" + name + " " + std::to_string(step.parameter) + "' does not name a parameter of the right type";
    }
    const std::size_t taken = step.op == ToyOp::Store ? 1 : has_parameter ? 0 : 2;
    if (depth < taken) return "'" + name + "' takes more values than the stack has";
    depth = depth - taken + (step.op == ToyOp::Store ? 0 : 1);
  }
  return depth == 0 ? std::string() : "the stack is not empty at the end";
}

Result<ToyInstruction> parse_instruction(const std::string& op, std::istringstream& line) {
  for (std::size_t i = 0; i < std::size(kOps); ++i) {
    if (op != kOps[i]) continue;
    ToyInstruction step{static_cast<ToyOp>(i), 0};
    if (step.op <= ToyOp::Store && !(line >> step.parameter)) break;
    return step;
  }
  return make_error(Code::CompileFailed, "'" + op + "' is not an instruction");
}

Result<ToyKernelCode> parse_kernel(std::istringstream& line) {
  ToyKernelCode kernel;
  line >> kernel.name;
  for (std::string type; line >> type;) {
    if (type != "count" && type != "float" && type != "buffer") {
      return make_error(Code::CompileFailed, "'" + type + "' is not a type");
    }
    kernel.parameters += type.front();
  }
  return kernel;
}

Error failed(const std::string& log) {
  return make_error(Code::CompileFailed, "the toy compiler rejected the source", log + '\n');
}

}  // namespace

Result<ToyProgram> parse_toy(std::string_view source) {
  ToyProgram program;
  std::istringstream lines{std::string(source)};
  std::size_t number = 0;
  for (std::string text; std::getline(lines, text);) {
    const std::string where = "line " + std::to_string(++number) + ": ";
    std::istringstream line(text);
    std::string word;
    if (!(line >> word)) continue;
    if (word == "kernel") {
      auto kernel = parse_kernel(line);
      if (!kernel) return failed(where + kernel.error().message);
      program.push_back(std::move(*kernel));
      continue;
    }
    if (program.empty()) return failed(where + "an instruction outside a kernel");
    const auto step = parse_instruction(word, line);
    if (!step) return failed(where + step.error().message);
    program.back().code.push_back(*step);
  }
  for (const ToyKernelCode& kernel : program) {
    if (const std::string reason = reason_invalid(kernel); !reason.empty()) return failed(kernel.name + ": " + reason);
  }
  return program;
}

std::string encode_toy(const ToyProgram& program) {
  BinaryWriter out;
  out.text(kMagic).u32(static_cast<std::uint32_t>(program.size()));
  for (const ToyKernelCode& kernel : program) {
    out.text(kernel.name).text(kernel.parameters).u32(static_cast<std::uint32_t>(kernel.code.size()));
    for (const ToyInstruction& step : kernel.code) out.u8(static_cast<std::uint8_t>(step.op)).u32(step.parameter);
  }
  const Digest digest = sha256(out.bytes());
  return std::move(out.digest(digest)).bytes();
}

Result<ToyProgram> decode_toy(std::string_view bytes) {
  const Error damaged = make_error(Code::LoadRejected, "the bytes are not a program of the toy machine");
  constexpr std::size_t kDigest = sizeof(Digest);
  if (bytes.size() < kDigest) return damaged;
  const std::string_view body = bytes.substr(0, bytes.size() - kDigest);
  if (BinaryReader(bytes.substr(body.size())).digest() != sha256(body)) return damaged;
  BinaryReader in(body);
  if (in.text() != kMagic) return damaged;
  ToyProgram program(in.count(3 * sizeof(std::uint32_t)));
  for (ToyKernelCode& kernel : program) {
    kernel.name = in.text();
    kernel.parameters = in.text();
    kernel.code.resize(in.count(1 + sizeof(std::uint32_t)));
    for (ToyInstruction& step : kernel.code) {
      const std::uint8_t op = in.u8();
      if (op >= std::size(kOps)) return damaged;
      step = {static_cast<ToyOp>(op), in.u32()};
    }
    if (!reason_invalid(kernel).empty()) return damaged;
  }
  if (!in.at_end()) return damaged;
  return program;
}

}  // namespace kiln::test
