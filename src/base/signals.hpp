#pragma once

#include <pthread.h>
#include <signal.h>

namespace kiln {

/// While it lives no signal is delivered to the calling thread, nor ever to a thread that it starts meanwhile: the
/// host's signals are for the host's threads, and a handler of its must not find itself on one of ours.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace kiln
