// SPDX-License-Identifier: Apache-2.0
int embedded_archive() { return 1; }
