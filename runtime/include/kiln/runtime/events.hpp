// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <kiln/event.hpp>

/// The events of kiln-runtime. They have the kind `Event::Kind::Extension`; `docs/reference/events.md` describes them.
/// A program with its own dispatch can emit them too.
namespace kiln::runtime::events {

/// The backend of a workflow was selected; the message has the reason.
inline constexpr EventType kDecided{"runtime", "decided"};
/// An operation runs on another backend than decided or preferred; the message has the reason.
inline constexpr EventType kFellBack{"runtime", "fell_back"};
/// An operation ran; `selected` is its backend.
inline constexpr EventType kDispatched{"runtime", "dispatched"};
/// A stage of an operation ran; `selected` is its location.
inline constexpr EventType kStageFinished{"runtime", "stage_finished"};
/// Results were copied to the host because the caller requested them.
inline constexpr EventType kMaterialized{"runtime", "materialized"};
/// An operation was replaced by a cheaper one with the same result.
inline constexpr EventType kRewritten{"runtime", "rewritten"};
/// The memory tier in use was selected; the message has the reason if it is not the requested one.
inline constexpr EventType kMemoryTierSelected{"runtime", "memory_tier_selected"};
/// An allocation was retried after the program was asked to free memory.
inline constexpr EventType kAllocationRetried{"runtime", "allocation_retried"};
/// A pool returned memory to the driver.
inline constexpr EventType kMemoryTrimmed{"runtime", "memory_trimmed"};

inline constexpr std::array kAll = {kDecided,   kFellBack,           kDispatched,        kStageFinished, kMaterialized,
                                    kRewritten, kMemoryTierSelected, kAllocationRetried, kMemoryTrimmed};

}  // namespace kiln::runtime::events
