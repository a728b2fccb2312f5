// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln {

/// True in a build with the address or thread sanitizer. These builds need unlimited memory, and a separate process
/// that traces this one when it ends.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kIsSanitized = false;
#endif

}  // namespace kiln
