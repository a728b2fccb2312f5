#pragma once

#include <curl/curl.h>

#include <memory>

#include <kiln/result.hpp>

namespace kiln {

/// libcurl, opened at run time, as far as kiln uses it; of its headers only types and constants are taken. Never
/// closed. Any thread.
struct CurlLibrary {
  /// Code::Unavailable says what to install. Makes libcurl ready for use, which before 7.84 is not safe while another
  /// thread does the same: here nobody does, and a host program that uses libcurl too should have done so before.
  static Result<std::shared_ptr<const CurlLibrary>> open();

  CURLcode (*global_init)(long flags) = nullptr;
  CURL* (*easy_init)() = nullptr;
  void (*easy_cleanup)(CURL* handle) = nullptr;
  CURLcode (*easy_setopt)(CURL* handle, CURLoption option, ...) = nullptr;
  CURLcode (*easy_getinfo)(CURL* handle, CURLINFO info, ...) = nullptr;
  CURLcode (*easy_perform)(CURL* handle) = nullptr;
  const char* (*easy_strerror)(CURLcode code) = nullptr;
  curl_slist* (*slist_append)(curl_slist* list, const char* text) = nullptr;
  void (*slist_free_all)(curl_slist* list) = nullptr;
};

}  // namespace kiln
