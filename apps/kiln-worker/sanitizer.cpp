// SPDX-License-Identifier: Apache-2.0
// Part of kiln-worker only in builds with the address sanitizer. Disables the leak check at the end of a worker: the
// host can kill the worker at that time, and the checking process would remain with the host's descriptors.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off();
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the sanitizer calls this name
int __lsan_is_turned_off() { return 1; }
