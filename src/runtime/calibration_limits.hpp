#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::runtime {

/// What a calibration has at most. docs/calibration-format.md lists them.
inline constexpr std::size_t kLargestCalibration = 1 << 20;
inline constexpr std::size_t kDeepestCalibration = 16;  // ours are 6 deep; members to come may be deeper
inline constexpr std::size_t kMostOperations = 1000;
inline constexpr std::size_t kMostTimings = 256;  // of one backend
inline constexpr std::size_t kMostStages = 16;
inline constexpr std::size_t kMostNotes = 16;
inline constexpr std::uint64_t kMostRuns = 1'000'000'000;
inline constexpr std::size_t kLongestName = 256;
inline constexpr std::size_t kLongestNote = 1024;
inline constexpr std::size_t kLongestShown = 32;  // of a version from elsewhere, in a message

}  // namespace kiln::runtime
