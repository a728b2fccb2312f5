// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// The limits of all trace readers (docs/internals/trace-format.md): traces can come from other machines.
namespace kiln::audit {

inline constexpr std::size_t kMaxTraceBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxDepth = 16;  // kiln's traces have depth 4, those of PyTorch 7
inline constexpr std::size_t kMaxEvents = 1'000'000;
inline constexpr std::size_t kMaxTextLength = 64 << 10;
inline constexpr std::size_t kMaxThreads = 10'000;

}  // namespace kiln::audit
