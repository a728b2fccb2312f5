// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln::test {

enum class ToyOp : std::uint8_t { Scalar, Load, Store, Add, Mul };

/// An instruction of a stack machine of floats.
struct ToyInstruction {
  ToyOp op = ToyOp::Add;
  std::uint32_t parameter = 0;  ///< index of a parameter of the kernel, for Scalar, Load and Store
};

/// A kernel: element i is computed by thread i, for all i below the first argument.
struct ToyKernelCode {
  std::string name;
  std::string parameters;  ///< a letter for each: c (count, an unsigned int), f (float) or b (buffer of floats)
  std::vector<ToyInstruction> code;
};

/// A program of the toy language. A line is `kernel NAME PARAMETER...`, with the parameters count, float and buffer, or
/// an instruction of the kernel above it: `scalar N`, `load N`, `store N`, `add` or `mul`.
using ToyProgram = std::vector<ToyKernelCode>;

/// Translates a source. Returns Code::CompileFailed with a log if the source is invalid.
Result<ToyProgram> parse_toy(std::string_view source);

/// The bytes of an artifact: a magic, the kernels and a digest of both.
std::string encode_toy(const ToyProgram& program);
/// Returns Code::LoadRejected if the bytes are damaged or contain an invalid kernel.
Result<ToyProgram> decode_toy(std::string_view bytes);

}  // namespace kiln::test
