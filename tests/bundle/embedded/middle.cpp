// SPDX-License-Identifier: Apache-2.0
int embedded_middle() { return 1; }
