#pragma once

namespace kiln::test {

/// Whether this is the build in which every access to memory is watched: some ten times slower, so campaigns are
/// shorter there.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace kiln::test
