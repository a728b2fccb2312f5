// SPDX-License-Identifier: Apache-2.0
// The target that builds the precompiled header of the tests.
int main() { return 0; }
