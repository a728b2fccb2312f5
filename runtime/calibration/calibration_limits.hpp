// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::runtime {

/// The limits of a calibration file, listed in docs/internals/formats/small-files.md.
inline constexpr std::size_t kMaxCalibrationBytes = 1 << 20;
inline constexpr std::size_t kMaxCalibrationDepth = 16;  // current files have depth 6; later versions may be deeper
inline constexpr std::size_t kMaxCalibrationValues = 100'000;
inline constexpr std::size_t kMaxOperations = 1000;
inline constexpr std::size_t kMaxTimings = 256;  // per backend
inline constexpr std::size_t kMaxStages = 16;
inline constexpr std::size_t kMaxNotes = 16;
inline constexpr std::uint64_t kMaxRuns = 1'000'000'000;
inline constexpr std::size_t kMaxNameLength = 256;
inline constexpr std::size_t kMaxNoteLength = 1024;
inline constexpr std::size_t kMaxShownLength = 32;  // characters of an unknown version in a message

}  // namespace kiln::runtime
