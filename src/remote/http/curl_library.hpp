// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>

#include <memory>

#include <kiln/result.hpp>

namespace kiln {

/// The functions of libcurl that kiln uses, loaded at run time and never unloaded. From its headers only types and
/// constants are used. Thread-safe.
struct CurlLibrary {
  /// Loads and initializes libcurl. Code::Unavailable names the package to install. Before libcurl 7.84, initialization
  /// is not safe while another thread initializes libcurl too. kiln serializes its own calls; a host program that uses
  /// libcurl should initialize it earlier.
  static Result<std::shared_ptr<const CurlLibrary>> open();

  CURLcode (*global_init)(long flags) = nullptr;
  curl_version_info_data* (*version_info)(CURLversion age) = nullptr;
  CURL* (*easy_init)() = nullptr;
  void (*easy_cleanup)(CURL* handle) = nullptr;
  CURLcode (*easy_setopt)(CURL* handle, CURLoption option, ...) = nullptr;
  CURLcode (*easy_getinfo)(CURL* handle, CURLINFO info, ...) = nullptr;
  CURLcode (*easy_perform)(CURL* handle) = nullptr;  ///< of the benchmarks, for comparison
  const char* (*easy_strerror)(CURLcode code) = nullptr;
  CURLM* (*multi_init)() = nullptr;
  CURLMcode (*multi_cleanup)(CURLM* multi) = nullptr;
  CURLMcode (*multi_setopt)(CURLM* multi, CURLMoption option, ...) = nullptr;
  CURLMcode (*multi_add_handle)(CURLM* multi, CURL* handle) = nullptr;
  CURLMcode (*multi_remove_handle)(CURLM* multi, CURL* handle) = nullptr;
  CURLMcode (*multi_perform)(CURLM* multi, int* running) = nullptr;
  CURLMcode (*multi_wait)(CURLM* multi, curl_waitfd* extra, unsigned extras, int milliseconds, int* ready) = nullptr;
  CURLMsg* (*multi_info_read)(CURLM* multi, int* left) = nullptr;
  curl_slist* (*slist_append)(curl_slist* list, const char* text) = nullptr;
  void (*slist_free_all)(curl_slist* list) = nullptr;
};

}  // namespace kiln
