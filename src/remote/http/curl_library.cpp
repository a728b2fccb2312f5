// SPDX-License-Identifier: Apache-2.0
#include "remote/http/curl_library.hpp"

#include <string>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/process/dynamic_library.hpp"
#include "base/process/process_lifecycle.hpp"

namespace kiln {
namespace {

bool bind_all(CurlLibrary& curl, const DynamicLibrary& library) {
  return library.bind(curl.global_init, "curl_global_init") && library.bind(curl.version_info, "curl_version_info") &&
         library.bind(curl.easy_init, "curl_easy_init") && library.bind(curl.easy_cleanup, "curl_easy_cleanup") &&
         library.bind(curl.easy_setopt, "curl_easy_setopt") && library.bind(curl.easy_getinfo, "curl_easy_getinfo") &&
         library.bind(curl.easy_perform, "curl_easy_perform") &&
         library.bind(curl.easy_strerror, "curl_easy_strerror") && library.bind(curl.multi_init, "curl_multi_init") &&
         library.bind(curl.multi_cleanup, "curl_multi_cleanup") &&
         library.bind(curl.multi_setopt, "curl_multi_setopt") &&
         library.bind(curl.multi_add_handle, "curl_multi_add_handle") &&
         library.bind(curl.multi_remove_handle, "curl_multi_remove_handle") &&
         library.bind(curl.multi_perform, "curl_multi_perform") && library.bind(curl.multi_wait, "curl_multi_wait") &&
         library.bind(curl.multi_info_read, "curl_multi_info_read") &&
         library.bind(curl.slist_append, "curl_slist_append") &&
         library.bind(curl.slist_free_all, "curl_slist_free_all");
}

}  // namespace

Result<std::shared_ptr<const CurlLibrary>> CurlLibrary::open() {
  // libcurl counts its initializations, but two of them must not run at the same time.
  static Mutex& one_at_a_time = *new Mutex;
  const MutexLock lock(one_at_a_time);
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    const Result<DynamicLibrary> library = DynamicLibrary::open(name);
    if (!library) continue;
    auto curl = std::make_shared<CurlLibrary>();
    if (!bind_all(*curl, *library)) continue;
    if (curl->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      return make_error(Code::Unavailable, std::string(name) + ": initialization failed");
    }
    // Initialization has just made the TLS library register its exit handlers.
    reregister_exit_handler();
    return std::shared_ptr<const CurlLibrary>(std::move(curl));
  }
  return make_error(Code::Unavailable,
                    "libcurl.so.4 not found, but the remote store requires it; install it (Debian: libcurl4)");
}

}  // namespace kiln
