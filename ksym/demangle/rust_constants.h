// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ksym {

// libiberty 2.40 writes a constant of more than 64 bits, which a Rust name of
// the v0 scheme has as hexadecimal digits and "_", one place too late:
// "0x23456789abcdef01_" for "o123456789abcdef01_". Makes that
// "0x123456789abcdef01" in `text`. False where `mangled` does not tell the
// missing digit; then `text` is not to be used.
bool RestoreLongConstants(std::string_view mangled, std::string& text);

}  // namespace ksym
