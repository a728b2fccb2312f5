// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "support/servers/loopback.hpp"

namespace kiln::test {

/// An HTTP server on a free port of the loopback with scripted responses: one request for each connection. Thread-safe.
class MetadataServer {
 public:
  /// Returns the body for a request, up to its first empty line; an empty body becomes status 404.
  using Answer = std::function<std::string(const std::string& request)>;

  explicit MetadataServer(Answer answer) : answer_(std::move(answer)), listener_(listen_on()) {
    thread_ = std::thread([this] { serve(); });
  }
  ~MetadataServer() {
    stop_ = true;
    thread_.join();
  }
  MetadataServer(const MetadataServer&) = delete;
  MetadataServer& operator=(const MetadataServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(listener_.port); }
  std::vector<std::string> requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (!stop_) {
      pollfd watched{listener_.socket.get(), POLLIN, 0};
      if (poll(&watched, 1, 20) <= 0) continue;
      const Fd connection(accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::string request;
      char some[4096];
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t got = recv(connection.get(), some, sizeof some, 0);
        if (got <= 0) break;
        request.append(some, static_cast<std::size_t>(got));
      }
      {
        const MutexLock lock(mutex_);
        requests_.push_back(request);
      }
      const std::string body = answer_(request);
      const std::string text = std::string("HTTP/1.1 ") + (body.empty() ? "404 Not Found" : "200 OK") +
                               "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                               body;
      (void)send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL);
    }
  }

  const Answer answer_;
  const Listener listener_;
  mutable Mutex mutex_;
  std::vector<std::string> requests_ KILN_GUARDED_BY(mutex_);
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace kiln::test
