// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kiln/event.hpp>

/// The events of `kiln jit` and `kiln run`, which the report shows. docs/reference/events.md describes them.
namespace kiln::report {

inline constexpr EventType kCacheFilled{"jit", "cache_filled"};
inline constexpr EventType kCachePublished{"jit", "cache_published"};
inline constexpr EventType kEntrySkipped{"jit", "entry_skipped"};

}  // namespace kiln::report
