// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ksym {

// The build-id in hex among notes as the kernel shows its own
// (/sys/kernel/notes) and its modules'; empty if there is none or it is cut
// off.
std::string FindBuildIdNote(std::string_view notes);

}  // namespace ksym
