// SPDX-License-Identifier: Apache-2.0
// A library with a bundle, linked to the test program.
extern "C" __attribute__((visibility("default"))) int embedded_library() { return 1; }
