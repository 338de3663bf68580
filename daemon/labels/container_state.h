// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "ksym/base/result.h"

namespace profd {

// What container engines keep of their containers, as JSON on the disk. The
// files are internals of theirs: what does not look as expected is refused.
// Texts are parsed as they come, without a tree in memory.

// Objects and lists in each other.
inline constexpr size_t kMaxStateLevels = 64;
inline constexpr size_t kMaxContainerNameBytes = 255;

// Whether engines give a container such a name: letters, digits, "_", "." and
// "-", the first of them a letter or a digit.
bool IsContainerName(std::string_view name);

// Docker's config.v2.json of one container: {"ID": "...", "Name": "/web", ...}.
// kCorrupt: it is not that, or of another id.
ksym::Result<std::string> ParseDockerName(std::string_view text,
                                          std::string_view id);

// The containers.json of containers/storage, which Podman uses:
// [{"id": "...", "names": ["web", ...], ...}, ...]. By id, with the first name
// of each; those without a name that engines give are left out, and so are ids
// that are there twice. kCorrupt: it is not that.
using ContainerNamesById = std::map<std::string, std::string, std::less<>>;
ksym::Result<ContainerNamesById> ParsePodmanNames(std::string_view text);

}  // namespace profd
