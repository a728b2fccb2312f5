#include "http/curl_library.hpp"

#include <string>

#include "base/dynamic_library.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/process_life.hpp"

namespace kiln {
namespace {

bool bind_all(CurlLibrary& curl, const DynamicLibrary& library) {
  return library.bind(curl.global_init, "curl_global_init") && library.bind(curl.easy_init, "curl_easy_init") &&
         library.bind(curl.easy_cleanup, "curl_easy_cleanup") && library.bind(curl.easy_setopt, "curl_easy_setopt") &&
         library.bind(curl.easy_getinfo, "curl_easy_getinfo") && library.bind(curl.easy_perform, "curl_easy_perform") &&
         library.bind(curl.easy_strerror, "curl_easy_strerror") &&
         library.bind(curl.slist_append, "curl_slist_append") &&
         library.bind(curl.slist_free_all, "curl_slist_free_all");
}

}  // namespace

Result<std::shared_ptr<const CurlLibrary>> CurlLibrary::open() {
  // libcurl counts how often it was made ready; what must not happen is twice at the same moment.
  static Mutex& one_at_a_time = *new Mutex;
  const MutexLock lock(one_at_a_time);
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    const Result<DynamicLibrary> library = DynamicLibrary::open(name);
    if (!library) continue;
    auto curl = std::make_shared<CurlLibrary>();
    if (!bind_all(*curl, *library)) continue;
    if (curl->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      return failure(Code::Unavailable, std::string(name) + " could not be made ready for use");
    }
    // It has just made its TLS library register what it does at the end.
    stay_ahead_of_exit_handlers();
    return std::shared_ptr<const CurlLibrary>(std::move(curl));
  }
  return failure(
      Code::Unavailable,
      "there is no libcurl.so.4 on this machine, and the remote store needs it; install it (Debian: libcurl4)");
}

}  // namespace kiln
