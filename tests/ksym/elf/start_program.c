/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose begin is the C library's. */
int main(void) { return 0; }
