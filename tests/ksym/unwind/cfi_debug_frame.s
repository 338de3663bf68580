/* SPDX-License-Identifier: Apache-2.0 */
# The same with the debugger's section instead of the loaded one.
        .cfi_sections .debug_frame
        .include "cfi_fixture.s"
