#pragma once

namespace kiln::test {

/// Whether this is the build in which every access to memory is watched: some ten times slower, so campaigns are
/// shorter there.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool kThreadSanitizer = false;
#endif

/// Whether dlopen goes by way of the address sanitizer, which makes a library that finds its parts by its own RUNPATH
/// find them no more.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool kAddressSanitizer = false;
#endif

/// Whether a sanitizer keeps books as large as the program's memory: then a worker has no limit of memory.
inline constexpr bool kShadowMemory = kAddressSanitizer || kThreadSanitizer;

}  // namespace kiln::test
