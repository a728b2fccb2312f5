// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln::test {

/// Whether this is a thread sanitizer build, which is about ten times slower, so campaigns are shorter.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool kThreadSanitizer = false;
#endif

/// Whether the address sanitizer intercepts dlopen, which breaks libraries that find their parts by their own RUNPATH.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool kAddressSanitizer = false;
#endif

/// Whether a sanitizer uses shadow memory in proportion to the program's memory. Workers then have no memory limit.
inline constexpr bool kShadowMemory = kAddressSanitizer || kThreadSanitizer;

}  // namespace kiln::test
